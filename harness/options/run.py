"""All options of a run, and which can be combined; the options of the commands that make runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from harness.core.errors import UsageError
from harness.core.literals import ApiName, Thinking, ToolChoice, TransportName
from harness.core.option_kinds import ADDRESS, COMMAS, POINTS, PRICES, SEED, TURNS, Kind
from harness.core.option_kinds import LIMITS as TIMES
from harness.core.options import Option, options_of
from harness.core.records import MAX_SAMPLES
from harness.options.command import (
    ASKED,
    BATCH,
    LIMITS,
    MONEY,
    OUTPUT,
    REQUEST,
    RESUMING,
    SAMPLING,
    WHOM,
    CommandOptions,
    JudgeFlag,
    prints,
)
from harness.options.server import HowWritten, WhichServer
from harness.presets.sampling import SamplingOptions
from harness.tools.table import TOOL

if TYPE_CHECKING:
    from harness.runs import RunFolder


def _shard(value: Any) -> Any:
    """A shard as text in its canonical form; any other value is unchanged. Raises `UsageError` for an invalid text."""
    from harness.benchmarks.shards import Shard

    return str(Shard.parse(value)) if isinstance(value, str) else value


SHARD = Kind("str", _shard)
"""Kind of an option for a part of a run, such as `2/8`; the value gets its canonical form."""

OF_DATA = ("question_key", "answer_key", "id_key", "choices_key", "split")
"""Names of the options that determine how the file in `data` is read."""


class RunOptions(WhichServer, SamplingOptions, HowWritten):
    """All options of a run. Only the benchmark is required. See docs/running.md and docs/provenance.md.

    Each option is described in the table below and in `harness run --help-all`. Timeouts are in seconds.
    """

    # what to ask
    benchmarks: Annotated[tuple[str, ...], Option(argument=True, kind=COMMAS)] = ()
    """NAME, NAME:SAMPLES, a card's file, or a file of questions."""
    samples: Annotated[float | None, Option(under=ASKED, least=1, most=MAX_SAMPLES)] = None
    """Samples per question. 1.25 means two samples for a quarter of the questions; `aime24:64` sets the number for one
    benchmark. Default: the card's.

    Samples of each question; an error if every benchmark names its own number.
    """
    limit: Annotated[int | None, Option(under=ASKED, least=1)] = None
    """Use only the first N questions."""
    ids: Annotated[tuple[str, ...] | None, Option(under=ASKED, kind=COMMAS)] = None
    """Use only the questions with these IDs (comma-separated)."""
    filter: Annotated[tuple[str, ...], Option(under=ASKED, metavar="COLUMN=VALUE")] = ()
    """Use only questions with this value in this column. Repeatable."""
    shard: Annotated[str | None, Option(under=ASKED, metavar="I/N", kind=SHARD)] = None
    """Sample only part I of N of the questions; other clients sample the other parts (docs/scaling.md).

    The part of the questions; see docs/scaling.md.
    """
    data: Annotated[str | None, Option(under=ASKED, kind=ADDRESS)] = None
    """File of questions: JSONL, JSON, CSV, Parquet or Arrow, optionally compressed (.gz, .zst)."""
    question_key: Annotated[str | None, Option(under=ASKED)] = None
    """Column of `data` that contains the question."""
    answer_key: Annotated[str | None, Option(under=ASKED)] = None
    """Column of `data` that contains the reference answer."""
    choices_key: Annotated[tuple[str, ...], Option(under=ASKED, metavar="COLUMN[,COLUMN...]", kind=COMMAS)] = ()
    """Column of `data` that contains the list of choices, or one column per choice (docs/benchmarks.md)."""
    id_key: Annotated[str | None, Option(under=ASKED)] = None
    """Column of `data` that contains the question ID. Default: id, otherwise a checksum of the row."""
    split: Annotated[str | None, Option(under=ASKED)] = None
    """Split to read if `data` has multiple splits."""
    prompt: Annotated[str | None, Option(under=ASKED)] = None
    """Prompt name. Default: the card's."""
    system_prompt: Annotated[str | None, Option(under=ASKED)] = None
    """System prompt: a name or the text itself. `none` sends none."""

    # how to reach the servers
    api: Annotated[ApiName, Option(under=WHOM)] = "chat"
    """API: chat, responses and messages send a conversation; completions sends plain text, without a chat template."""
    transport: Annotated[TransportName, Option(under=WHOM)] = "http"
    """HTTP client: the built-in one (http) or the openai package (openai)."""

    # named settings, the seed, and how long the model thinks
    preset: Annotated[str | None, Option(under=SAMPLING)] = None
    """Named settings for a model (qwq-32b …) or for sampling (r1, greedy …)."""
    seed: Annotated[int | None, Option(under=SAMPLING, strict=False, kind=SEED)] = 0
    """Seed of the run, from which each sample's seed is derived. With `none`, no seed is sent."""
    thinking: Annotated[Thinking | None, Option(under=SAMPLING)] = None
    """Turn thinking on or off, or set its effort to a level that the provider or chat template supports. Default: the
    server's.
    """
    thinking_tokens: Annotated[int | None, Option(under=SAMPLING, metavar="N", least=1)] = None
    """Maximum number of thinking tokens, sent in the provider's or engine's own field (docs/hosted.md)."""

    # a tool, and batches
    tool: Annotated[str | None, Option(under=REQUEST, metavar="NAME[,LIMIT=N...]", kind=TOOL)] = None
    """Offer the model a tool, such as python, which runs the model's code in a sandbox (docs/tools.md). The value
    `none` turns off a tool set by the card or preset.
    """
    turns: Annotated[str | None, Option(under=REQUEST, metavar="SETTING,...", kind=TURNS)] = None
    """For conversations: `live` asks the user's messages one after the other, without the replies in the data;
    `history=reasoning` sends the reasoning back, too; `delay=2s`; `max=10` turns (docs/conversations.md).
    """
    tool_choice: Annotated[ToolChoice | None, Option(under=REQUEST)] = None
    """For questions with tools: the model may (auto), must (required) or must not (none) call one. Default: not sent
    (auto).
    """
    parallel_calls: Annotated[bool | None, Option(under=REQUEST)] = None
    """For questions with tools: allow multiple calls per reply. Default: the server's setting."""
    batch: Annotated[bool, Option(under=BATCH)] = False
    """Send all samples through the provider's batch API (half the price, but takes hours) and wait for them. Ctrl-C
    leaves batches running; rerun to resume.
    """

    # limits of a session
    rpm: Annotated[float | None, Option(under=LIMITS, above=0)] = None
    """Maximum number of requests per minute."""
    rate: Annotated[float | None, Option(under=LIMITS, above=0)] = None
    """Mean number of requests per second, which arrive at random times (Poisson), up to `concurrency` in flight
    (docs/load.md).
    """
    budget_tokens: Annotated[int | None, Option(under=LIMITS, metavar="N", least=1)] = None
    """Stop before the run generates more than N tokens in total, over all its sessions (docs/running.md)."""
    budget_usd: Annotated[float | None, Option(under=LIMITS, metavar="USD", above=0)] = None
    """Stop before the run costs more than this in total, over all its sessions. Requires `prices` (docs/running.md)."""
    target_error: Annotated[float | None, Option(under=LIMITS, above=0, below=50, kind=POINTS)] = None
    """Stop after the round in which the sampling error falls to this many points."""
    timeout: Annotated[float | None, Option(under=LIMITS, above=0)] = None
    """Maximum time without a new token, in seconds. Default: 600 before the first token, then 120."""
    attempts: Annotated[int | None, Option(under=LIMITS, least=1)] = None
    """Maximum number of requests per sample. Default: 5."""
    fit_context: Annotated[bool, Option(under=LIMITS)] = False
    """If `max_tokens` does not fit in the server's context, lower it instead of failing. A default `max_tokens` is
    always lowered to fit.
    """
    prices: Annotated[str | None, Option(under=MONEY, metavar="IN,OUT[,CACHED]", kind=PRICES)] = None
    """USD per million prompt, completion (thinking included) and cached prompt tokens, such as 0.5,2 or 0.5,2,0.1."""

    # where the run is stored, and how it continues
    out: Annotated[Path | None, Option(under=RESUMING)] = None
    """Run folder. Default: results/MODEL. An unfinished output FILE from another tool is continued in the run
    folder FILE.run.
    """
    accept_server_change: Annotated[bool, Option(under=RESUMING)] = False
    """Resume even if the server now reports a different model, chat template or quantization."""
    canary: Annotated[bool, Option(under=RESUMING)] = True
    """Do not stop when the first samples are all empty, identical or truncated."""

    @property
    def calling(self) -> dict[str, Any]:
        """The request fields for whether and how often the model calls tools, in the chat API's form."""
        fields = {"tool_choice": self.tool_choice, "parallel_tool_calls": self.parallel_calls}
        return {name: value for name, value in fields.items() if value is not None}

    @property
    def unfinished_outputs(self) -> Path | None:
        """The unfinished file of another tool that the run starts from; None if `out` names a folder."""
        return self.out if self.out is not None and self.out.is_file() else None

    def _check(self) -> None:
        """Raise `UsageError` for the first options that cannot be combined."""
        super()._check()
        if self.shard is not None and self.target_error is not None:
            raise UsageError(
                "it does not work with `shard`, because a shard's error differs from the run's error: "
                "set the same number of `samples` for all shards instead",
                field="target_error",
                value=self.target_error,
            )
        if self.rate is not None and self.rpm is not None:
            raise UsageError("`rate` already sets how often requests are sent: omit one of them", field="rpm")
        if self.batch:
            self._check_batch()

    def folder(self, model: str | None) -> RunFolder | None:
        """The folder of the run or its shard; None if its name depends on a model that is not known yet."""
        from harness.runs.layout import RunFolder, continuation_of  # imported late: a help text needs no folder

        if self.unfinished_outputs is not None:
            run = continuation_of(self.unfinished_outputs)
        elif self.out is not None:
            run = RunFolder(self.out)
        elif model is not None:
            run = RunFolder.default(model)
        else:
            return None
        return run if self.shard is None else run.of_shard(self.shard)

    def _check_batch(self) -> None:
        """Raise `UsageError` for options that make no sense if all samples are requested at once and answered later."""
        others = ("target_error", "budget_tokens", "budget_usd", "rpm", "rate", "serve")
        if given := [name for name in others if getattr(self, name) is not None]:
            raise UsageError(
                "it does not work with `batch`, which sends all requests at once: omit one of them",
                field=given[0],
            )
        if len(self.base_url) > 1:
            raise UsageError("`batch` works with only one address: remove the others", field="base_url")


def recorded_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a manifest records as they were given."""
    return {name: given[name] for name in options_of(RunOptions) if name in given and name not in _RECORDED_ELSEWHERE}


_RECORDED_ELSEWHERE = frozenset(
    ["benchmarks", "samples", "ids", "shard", "data", "model", "base_url", "serve", "api_key_env", "header", "out"]
)
"""Options that a manifest stores in another form: names, plan, endpoints. A header may be a key and is never recorded.
"""

# ---- the commands that make runs

FIRST = (
    *("samples", "limit", "data", "model", "base_url", "serve", "preset", "temperature", "max_tokens", "concurrency"),
    *("wait", "out", "dry_run"),
)
"""Options that most people use; the short help of a run shows only these."""


class RunFlags(RunOptions, CommandOptions):
    """The options of a run, as on a command line."""

    serve_option: Annotated[tuple[str, ...], Option(under=WHOM, metavar="KEY=VALUE")] = ()
    """`harness serve ENGINE` option for the server that --serve starts, such as tp=8. engine-flag=WORD passes WORD to
    the engine. Repeatable.
    """
    quiet: Annotated[bool, Option(under=OUTPUT)] = False
    """Print only warnings, errors and results. Set NO_COLOR to turn off colors."""

    def _check(self) -> None:
        """Check nothing: a file or a candidate completes these, and the run's options are checked when created."""
        self._check_combination()


class RunCommand(RunFlags, JudgeFlag):
    """Sample completions for BENCHMARK[,BENCHMARK...] into a run folder. BENCHMARK is NAME, NAME:SAMPLES, a card file,
    a file of questions, or hf://datasets/OWNER/NAME if that repository contains an eval.yaml.

    Run the same command again to request only missing samples, or increase --samples to extend the run. Then score it
    with `harness score RUN_FOLDER`. The judge in --judge is first tested on two answers; if it does not respond,
    nothing is sampled.

    \b
    harness run aime24:64 --model Qwen/QwQ-32B --base-url http://127.0.0.1:8000
    harness run aime24:64 --serve vllm --model Qwen/QwQ-32B --serve-option tp=8
    harness run --data questions.jsonl --question-key Problem --answer-key Answer
    """

    first: ClassVar = (*FIRST, "judge")
    apart: ClassVar = (("as_json", "dry_run"), ("scores", "on"))
    on: Annotated[str | None, Option(under=WHOM, metavar="ray[://HOST:PORT]")] = None
    """Sample from the nodes of a Ray cluster into one run folder, with one shard of the questions per node
    (docs/scaling.md).
    """
    as_json: Annotated[bool, prints("the result", "harness.cli.run:SessionEnd", OUTPUT)] = False
    dry_run: Annotated[bool, Option(under=OUTPUT)] = False
    """Show every setting and the first prompt, without sending requests."""
    scores: Annotated[bool, Option(under=OUTPUT, flag="score")] = False
    """Score while sampling, in a separate process."""


class SweepCommand(RunFlags, JudgeFlag, without=("benchmarks",)):
    """Run and score every combination listed in FILE: models × servers × prompts × sampling × benchmarks. Instead of
    FILE, you can specify a SUITE (see --list), which requires a model and a server; or, to measure a line of loads,
    BENCHMARK[,BENCHMARK...] with several numbers for --concurrency.

    Each combination is a cell. Each server is started once, runs all its cells, and is then stopped. Run the same
    command again to resume. If a cell fails, the others continue and the exit code is 4. Options given here override
    those in the file. The tables include the models' published scores.

    \b
    harness sweep budgets.yaml --dry-run
    harness sweep budgets.yaml
    harness sweep math500:2 --base-url URL --concurrency 1,8,32,128 --limits first_token=2s,token_gap=50ms
    harness sweep limo10 --model GAIR/LIMO --serve vllm --serve-option tp=8 --judge org/judge@URL
    """

    first: ClassVar = (
        *("list_suites", "verify", "dry_run", "track", "as_json"),
        *("samples", "model", "base_url", "serve", "concurrency", "rate", "limits", "wait", "out", "judge"),
    )
    apart: ClassVar = (("as_json", "print_schema", "list_suites", "dry_run"),)

    file: Annotated[str | None, Option(argument=True, metavar="FILE|SUITE|BENCHMARK")] = None
    """The sweep's file, a suite, or benchmarks."""
    concurrency: Annotated[
        tuple[int, ...], Option(under=LIMITS, metavar="N[,N...]", kind=COMMAS, strict=False, least=1)
    ] = ()  # type: ignore[assignment]  # a run has one of these numbers
    """Maximum number of requests in flight. Several numbers measure a load curve (docs/load.md)."""
    rate: Annotated[
        tuple[float, ...], Option(under=LIMITS, metavar="N[,N...]", kind=COMMAS, strict=False, above=0)
    ] = ()  # type: ignore[assignment]  # a run has one of these numbers
    """Mean number of requests per second, which arrive at random times (Poisson). Several numbers measure a load curve
    (docs/load.md).
    """
    limits: Annotated[str | None, Option(metavar="NAME=TIME[,...]", kind=TIMES)] = None
    """Limits on the times of a request, as in `harness score`, such as first_token=2s,token_gap=50ms."""
    print_schema: Annotated[bool, Option(flag="schema")] = False
    """Print the JSON schema of a sweep file, for use in editors."""
    list_suites: Annotated[bool, Option(flag="list")] = False
    """List the suites included in the harness."""
    verify: Annotated[bool, Option()] = False
    """Exit with code 1 if a score does not agree with the model's published scores."""
    dry_run: Annotated[bool, Option()] = False
    """Show the servers, the cells and their maximum number of tokens, without starting servers or sending requests."""
    k: Annotated[int | None, Option(metavar="K", least=1)] = None
    """Value of k for pass@k in the tables, for all benchmarks. Default: the file's value."""
    track: Annotated[tuple[str, ...], Option(metavar="TOOL")] = ()
    """Send the scores to wandb, mlflow, trackio or a plug-in's tracker. All checkpoints of a series are sent to one
    tracker run.
    """
    out: Annotated[Path | None, Option(under=RESUMING)] = None
    """Folder for cells and tables. Default: results/SWEEP_NAME."""
    as_json: Annotated[bool, prints("the cells instead of the tables", "harness.sweeps.rows:SweepEnd")] = False
