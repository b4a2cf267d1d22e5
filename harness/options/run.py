"""All options of a run, and which must go together; the options of the commands that make runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from harness.core.choices import Api, Thinking, ToolChoice, TransportName
from harness.core.errors import UsageError
from harness.core.options import ADDRESS, COMMAS, POINTS, PRICES, SEED, Kind, Option, options_of
from harness.core.records import MAX_SAMPLES
from harness.options.command import CommandOptions, JudgeFlag, prints
from harness.options.deciding import RaceRules
from harness.options.headings import ASKED, BATCH, LIMITS, MONEY, OUTPUT, REQUEST, RESUMING, SAMPLING, WHOM
from harness.options.whom import HowWritten, WhichServer
from harness.presets.sampling import SamplingOptions
from harness.tools.table import TOOL

if TYPE_CHECKING:
    from harness.runs import RunFolder


def _shard(value: Any) -> Any:
    """A shard as text in its canonical spelling; another value stays. Raises `UsageError` for a wrong text."""
    from harness.benchmarks.questions import Shard

    return str(Shard.parse(value)) if isinstance(value, str) else value


SHARD = Kind("str", _shard)
"""Kind of an option that holds a part of a run, such as `2/8`; its value gets the canonical spelling."""

OF_DATA = ("question_key", "answer_key", "id_key", "choices_key", "split")
"""Names of the options that say how the file in `data` is read."""


class RunOptions(WhichServer, SamplingOptions, HowWritten):
    """All options of a run; only the benchmark is required. See docs/running.md and docs/provenance.md.

    Each option is described where it is declared, and in the help of `harness run`. Timeouts are seconds.
    """

    # what is asked
    benchmarks: Annotated[tuple[str, ...], Option(argument=True, kind=COMMAS)] = ()
    """NAME, NAME:SAMPLES or a card's file."""
    samples: Annotated[float | None, Option(under=ASKED, least=1, most=MAX_SAMPLES)] = None
    """Samples per question, for all benchmarks; `aime24:64` asks for 64 of aime24 alone. With 1.25 a quarter of the
    questions have a second one. Default: the card's.

    Samples of each question; an error if every benchmark names its own number.
    """
    limit: Annotated[int | None, Option(under=ASKED, least=1)] = None
    """Only the first N questions."""
    ids: Annotated[tuple[str, ...] | None, Option(under=ASKED, kind=COMMAS)] = None
    """Only these question ids, separated by commas."""
    filter: Annotated[tuple[str, ...], Option(under=ASKED, metavar="COLUMN=VALUE")] = ()
    """Only questions whose column has this value; may be repeated."""
    shard: Annotated[str | None, Option(under=ASKED, metavar="I/N", kind=SHARD)] = None
    """Ask only the I-th of N parts of the questions, while other clients ask the other parts of the same run.

    The part of the questions; see docs/scaling.md.
    """
    data: Annotated[str | None, Option(under=ASKED, kind=ADDRESS)] = None
    """JSONL, JSON, CSV, Parquet or Arrow file of questions, also .gz and .zst."""
    question_key: Annotated[str | None, Option(under=ASKED)] = None
    """Column of the question in `data`."""
    answer_key: Annotated[str | None, Option(under=ASKED)] = None
    """Column of the reference answer in `data`."""
    choices_key: Annotated[tuple[str, ...], Option(under=ASKED, metavar="COLUMN[,COLUMN...]", kind=COMMAS)] = ()
    """Multiple choice: the column of `data` with the list of options, or several columns with one option each. The
    answer names an option by letter, by index from 0, or by its text.
    """
    id_key: Annotated[str | None, Option(under=ASKED)] = None
    """Column of the question's id in `data`. Default: id, or a checksum of the row."""
    split: Annotated[str | None, Option(under=ASKED)] = None
    """Split of `data`, a folder of splits."""
    prompt: Annotated[str | None, Option(under=ASKED)] = None
    """Prompt by name. Default: the card's."""
    system_prompt: Annotated[str | None, Option(under=ASKED)] = None
    """System prompt, by name or as text; `none` sends none."""

    # how the servers are reached
    api: Annotated[Api, Option(under=WHOM)] = "chat"
    """chat, responses and messages take turns of a conversation; completions one plain prompt, without a template."""
    transport: Annotated[TransportName, Option(under=WHOM)] = "http"
    """Transport of requests. http: our own. openai: the openai package."""

    # named settings, the seed, and how long the model thinks
    preset: Annotated[str | None, Option(under=SAMPLING)] = None
    """Name of a preset: a model's recommended settings (qwq-32b, deepseek-r1 …) or a sampling (r1, greedy …)."""
    seed: Annotated[int | None, Option(under=SAMPLING, strict=False, kind=SEED)] = 0
    """Run seed; each sample's seed is made from it. `none` sends no seed."""
    thinking: Annotated[Thinking | None, Option(under=SAMPLING)] = None
    """Switch thinking on or off, or set its effort, in the words of the provider or the model's template. Default: left
    to the server.
    """
    thinking_tokens: Annotated[int | None, Option(under=SAMPLING, metavar="N", least=1)] = None
    """Maximum tokens of thinking, in the provider's or engine's own field (docs/hosted.md)."""

    # a tool, and batches
    tool: Annotated[str | None, Option(under=REQUEST, metavar="python[,LIMIT=N...]", kind=TOOL)] = None
    """Offer the model a tool: `python` runs its code in a sandbox (docs/tools.md; limits: steps, seconds, characters,
    total_seconds, memory_mb). `none` offers none where the card or the preset has one.
    """
    tool_choice: Annotated[ToolChoice | None, Option(under=REQUEST)] = None
    """For questions that offer tools: whether the model may call (auto), has to, or must not. Default: not sent, which
    means auto.
    """
    parallel_calls: Annotated[bool | None, Option(under=REQUEST)] = None
    """For questions that offer tools: allow several calls in a reply. Default: left to the server."""
    batch: Annotated[bool, Option(under=BATCH)] = False
    """Ask for all samples by the provider's batches (half the price, answers take hours) and wait. Ctrl-C leaves the
    batches running; the same command continues.
    """

    # limits of a session
    rpm: Annotated[float | None, Option(under=LIMITS, above=0)] = None
    """Maximum requests per minute."""
    budget_tokens: Annotated[int | None, Option(under=LIMITS, metavar="N", least=1)] = None
    """Stop before the command exceeds N new tokens, over all stages and candidates: with max_tokens, a request that
    could exceed them is not sent.
    """
    budget_usd: Annotated[float | None, Option(under=LIMITS, metavar="USD", above=0)] = None
    """Stop before the command exceeds this much money, over all stages and candidates: with max_tokens, a request that
    could exceed it is not sent. A prompt counts by its bytes until its request has ended. Needs the prices.
    """
    target_error: Annotated[float | None, Option(under=LIMITS, above=0, below=50, kind=POINTS)] = None
    """Stop after the round that brings the sampling error to this many points or fewer."""
    timeout: Annotated[float | None, Option(under=LIMITS, above=0)] = None
    """Maximum seconds without a new token. Default: 600 before the first one, 120 between two."""
    attempts: Annotated[int | None, Option(under=LIMITS, least=1)] = None
    """Maximum requests for one sample. Default: 5."""
    fit_context: Annotated[bool, Option(under=LIMITS)] = False
    """Lower a given max_tokens to the server's context instead of refusing. The default is always lowered."""
    prices: Annotated[str | None, Option(under=MONEY, metavar="IN,OUT", kind=PRICES)] = None
    """USD per million tokens of prompts and of replies (thinking included), such as 0.5,2."""

    # where it is stored, and how it continues
    out: Annotated[Path | None, Option(under=RESUMING)] = None
    """Run folder. Default: results/ and the model's name. Another tool's unfinished FILE is the beginning of the run
    FILE.run.
    """
    accept_server_change: Annotated[bool, Option(under=RESUMING)] = False
    """Resume although the server reports another model, template or quantisation than the run's samples have."""
    canary: Annotated[bool, Option(under=RESUMING)] = True
    """Do not stop when the first samples are all empty, identical or truncated."""
    fingerprint: Annotated[bool | None, Option(under=RESUMING)] = None
    """Compare the beginnings of eight greedy replies of each server (some 350 to 500 tokens) with the run's. Default:
    of engines whose neutral sampling values the harness knows (vLLM, for example) always, of other servers in a run of
    16 samples or more.
    """

    @property
    def calling(self) -> dict[str, Any]:
        """The fields of requests on whether and how often the model calls, as the chat API has them."""
        fields = {"tool_choice": self.tool_choice, "parallel_tool_calls": self.parallel_calls}
        return {name: value for name, value in fields.items() if value is not None}

    @property
    def begins(self) -> Path | None:
        """The unfinished file of another tool with which the run begins; None if `out` names a folder."""
        return self.out if self.out is not None and self.out.is_file() else None

    def _check(self) -> None:
        """Raise `UsageError` for the first options that do not go together."""
        super()._check()
        if (keys := [key for key in OF_DATA if getattr(self, key)]) and not self.data:
            raise UsageError("it is for a file of questions: give `data` in place of the benchmark", field=keys[0])
        if self.shard is not None and self.target_error is not None:
            raise UsageError(
                "it does not work with `shard`, since a shard's error is not the run's: give all "
                "shards the same number of samples with `samples`",
                field="target_error",
                value=self.target_error,
            )
        if self.batch:
            self._check_batch()

    def folder(self, model: str | None) -> RunFolder | None:
        """The run's folder, or that of its shard; None if its name depends on a model, and that is not known yet."""
        from harness.runs.layout import RunFolder, begun_at  # imported late: a help text needs no folder

        if self.begins is not None:
            run = begun_at(self.begins)
        elif self.out is not None:
            run = RunFolder(self.out)
        elif model is not None:
            run = RunFolder.default(model)
        else:
            return None
        return run if self.shard is None else run.of_shard(self.shard)

    def _check_batch(self) -> None:
        """Raise `UsageError` for options that mean nothing when all samples are asked at once, answered hours later."""
        others = ("target_error", "budget_tokens", "budget_usd", "rpm", "serve")
        if given := [name for name in others if getattr(self, name) is not None]:
            raise UsageError(
                "it does not work with `batch`, which sends all requests at once: leave one of them out",
                field=given[0],
            )
        if len(self.base_url) > 1:
            raise UsageError("`batch` takes only one address: leave the others out", field="base_url")


def recorded_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the options that a manifest records as they were given."""
    return {name: given[name] for name in options_of(RunOptions) if name in given and name not in _RECORDED_ELSEWHERE}


_RECORDED_ELSEWHERE = frozenset(
    ["benchmarks", "samples", "ids", "shard", "data", "model", "base_url", "serve", "api_key_env", "header", "out"]
)
"""Options that a manifest holds in its own form: names, plan, endpoints. A header may be a key and is recorded nowhere.
"""

# ---- the commands that make runs

FIRST = (
    *("samples", "limit", "data", "model", "base_url", "serve", "preset", "temperature", "max_tokens", "concurrency"),
    *("out", "dry_run"),
)
"""Options that most people use: the short help of a run shows only these."""


class RunFlags(RunOptions, CommandOptions):
    """The options of a run, as a command line has them."""

    serve_option: Annotated[tuple[str, ...], Option(under=WHOM, metavar="KEY=VALUE")] = ()
    """An option of `harness serve ENGINE` for the server that --serve starts, such as tp=8; engine-flag=WORD hands a
    word to the engine unchanged. May be repeated.
    """
    quiet: Annotated[bool, Option(under=OUTPUT)] = False
    """Print only warnings, errors and results. NO_COLOR takes the colours out of the progress."""

    def _check(self) -> None:
        """A file or a candidate completes these: what must go together is checked when the run's options are made."""
        self._check_apart()


class RunCommand(RunFlags, JudgeFlag):
    """Sample completions for BENCHMARK[,BENCHMARK...] (NAME, NAME:SAMPLES, a card's file,
    hf://datasets/OWNER/NAME with an eval.yaml) into a run folder.

    The same command again asks only for what is missing; more --samples extend the run. Score it with
    `harness score RUN_FOLDER`. A judge that will score the run is tried on two answers before the first request; if the
    judge does not answer, nothing is sampled.

    \b
    harness run aime24:64 --model Qwen/QwQ-32B --base-url http://127.0.0.1:8000
    harness run aime24:64 --serve vllm --model Qwen/QwQ-32B --serve-option tp=8
    harness run --data questions.jsonl --question-key Problem --answer-key Answer
    """

    first: ClassVar = (*FIRST, "judge")
    apart: ClassVar = (("as_json", "dry_run"), ("scores", "on"))
    on: Annotated[str | None, Option(under=WHOM, metavar="ray[://HOST:PORT]")] = None
    """Ask from the nodes of a Ray cluster, each node a shard of the questions, into one run folder (docs/scaling.md).
    """
    as_json: Annotated[bool, prints("how the session ended", "harness.cli.printed.ends:SessionEnd", OUTPUT)] = False
    dry_run: Annotated[bool, Option(under=OUTPUT)] = False
    """Show every setting and the first prompt; request no sample."""
    scores: Annotated[bool, Option(under=OUTPUT, flag="score")] = False
    """Score while sampling, in a process of its own."""


class RaceCommand(RunFlags, RaceRules):
    """Sample BENCHMARK with each candidate, round by round, until it is clear how each compares with the first one.

    A candidate is a name with options of its own; all other options hold for every candidate. A round is one sample of
    each question, and --samples is the largest number of rounds. After every --step rounds the candidates are compared
    (a look); in 95 % of races no verdict of any look is false. The looks are fixed at the start.
    Verdicts: better, worse, equal within the margin, undecided. An early "better" or "worse" is checked
    by half as many rounds again, and withheld if those rounds contradict the verdict. The run folders are in --out, and
    the same command continues the race.

    \b
    harness race aime24:64 --base-url http://127.0.0.1:8000 --margin 1 --out races/temperature \\
        --candidate 'cool temperature=0.6' --candidate 'hot temperature=1.0'
    harness race aime24:64 --out races/tuned --candidate 'base model=org/base base_url=http://a:8000' \\
        --candidate 'tuned model=org/tuned base_url=http://b:8000'
    """

    first: ClassVar = ("candidates", "margin", "step", "as_json", *FIRST)

    benchmarks: Annotated[tuple[str, ...], Option(argument=True, kind=COMMAS, metavar="[BENCHMARK]")] = ()
    """NAME, NAME:SAMPLES or a card's file."""
    candidates: Annotated[tuple[str, ...], Option(flag="candidate", metavar="'NAME KEY=VALUE …'")] = ()
    """A candidate with its own options of a run, by their names in Python. The first is the baseline."""
    samples: Annotated[int | None, Option(under=ASKED, least=1)] = None
    """Samples per question that a candidate may use at most. Default: the card's."""
    out: Annotated[Path | None, Option(under=RESUMING)] = None
    """Folder of the candidates' run folders. Default: races/ and the benchmark's name."""
    as_json: Annotated[bool, prints("how it ended", "harness.cli.printed.scores:RaceEnd")] = False


class SweepCommand(RunFlags, JudgeFlag, without=("benchmarks",)):
    """Run and score every combination that FILE names: models × servers × prompts × sampling × benchmarks.

    Each combination is a cell. Each server is started once, all its cells are run and scored, and it is stopped. If the
    command is killed, the same command continues and asks for nothing twice. A cell that fails does not stop the
    others; the exit code is then 1. An option given here replaces that of the file. A SUITE is a shipped file (--list):
    give it a model and a server. The tables show published scores of the models beside the new ones, and with --verify
    the exit code says whether they agree.

    \b
    harness sweep budgets.yaml --dry-run
    harness sweep budgets.yaml
    harness sweep checkpoints.yaml --follow 90
    harness sweep limo10 --model GAIR/LIMO --serve vllm --serve-option tp=8 --judge org/judge@URL
    """

    first: ClassVar = (
        *("print_schema", "list_suites", "verify", "dry_run", "follow", "track", "k", "as_json"),
        *(*FIRST, "judge"),
    )
    apart: ClassVar = (("as_json", "print_schema", "list_suites", "dry_run", "follow"), ("follow", "dry_run"))

    file: Annotated[str | None, Option(argument=True, metavar="FILE|SUITE")] = None
    """The sweep's file, or a suite."""
    print_schema: Annotated[bool, Option(flag="schema")] = False
    """Print the JSON schema of the file, for editors."""
    list_suites: Annotated[bool, Option(flag="list")] = False
    """List the suites that ship with the harness."""
    verify: Annotated[bool, Option()] = False
    """Exit with 4 if a score does not agree with published scores of its model."""
    dry_run: Annotated[bool, Option()] = False
    """Show the servers, the cells and the most tokens that they take; start and send nothing."""
    follow: Annotated[float | None, Option(metavar="MINUTES", above=0)] = None
    """Run and score each checkpoint as it appears; end after MINUTES without a new checkpoint."""
    k: Annotated[int | None, Option(metavar="K", least=1)] = None
    """k of pass@k in the tables, for every benchmark. Default: what the file says."""
    track: Annotated[tuple[str, ...], Option(metavar="TOOL")] = ()
    """Send scores to wandb, mlflow, trackio or a plug-in's tracker; a series of checkpoints is one run there."""
    out: Annotated[Path | None, Option(under=RESUMING)] = None
    """Folder of the cells and tables. Default: results/ and the sweep's name."""
    as_json: Annotated[bool, prints("the cells instead of the tables", "harness.cli.printed.ends:SweepEnd")] = False
