"""Help that is read, words of other tools, completion, and `harness` without arguments.

For: harness.cli, harness.cli.flags, harness.cli.foreign.tables, harness.cli.help, harness.cli.flag_spelling.
"""

from __future__ import annotations

import ast
import errno
import importlib
import os
import pwd
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.flag_spelling import as_typed, typed_in
from harness.cli.flags import command_of, described_server
from harness.cli.foreign.tables import ASKED, COMMON, tables
from harness.cli.help import flags_and_arguments
from harness.cli.main import LazyGroup, cli
from harness.core import installation
from harness.core.errors import HarnessError, UsageError, misspelled, near_names
from harness.core.files import disk_error
from harness.core.installation import __version__
from harness.core.options import options_of
from harness.options.commands import COMMANDS, all_options, options_class
from harness.options.run import RunOptions
from harness.runs.commit import commit
from tests.budget import share_of
from tests.cli.test_flags import least
from tests.conftest import CHECKOUT
from tests.patience import PATIENCE_SECONDS
from tests.pins.stage import alone
from tests.system.command import harness
from tests.viewer.small_run import write_run


def asked(*words: str, columns: int = 110) -> str:
    done = CliRunner().invoke(cli, list(words), terminal_width=columns)
    assert done.exit_code in (0, 2), done.output
    return done.output


def commands() -> list[tuple[str, click.Command]]:
    group = LazyGroup("harness")
    named = []
    for name in COMMANDS:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        named.append((name, command))
        if isinstance(command, click.Group):
            named += [(f"{name} {inner}", one) for inner, one in command.commands.items()]
    return named


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_every_command_takes_help_all_and_shows_no_range_or_overlong_line(name: str) -> None:
    short, whole = asked(*name.split(), "--help"), asked(*name.split(), "--help-all")
    assert "No such option" not in whole
    # A command that shows all its options anyway has one help, in which this option is not listed.
    assert "--help-all" in short or whole.startswith(short.rstrip())
    for text in (short, whole):
        assert not re.search(r"RANGE|\[[^\]]*<=?x|x>=?\d", text)
        assert max(len(line) for line in text.splitlines()) <= 110


@pytest.mark.parametrize("name", ["run", "sweep", "score"])
def test_short_help_fits_a_screen_and_the_rest_is_one_flag_away(name: str) -> None:
    short, whole = asked(name, "--help"), asked(name, "--help-all")
    assert len(short.splitlines()) <= 60
    more = re.search(r"(\d+) more options: harness " + name + " --help-all", short.replace("cli ", "harness "))
    assert more, short
    command = dict(commands())[name]
    shown = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    assert all(one.opts[0] in whole for one in shown)
    assert sum(one.opts[0] in short for one in shown) < len(shown) * 2 / 3


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "--num-tries", "8"], "Use --samples instead."),
        (["run", "--temp", "1"], "Use --temperature instead."),
        (["run", "--greedy"], "Use --temperature 0 instead."),
        (["run", "--overwrite"], "Runs are never overwritten"),
        (["run", "--n", "8"], "Use --samples instead."),
        (["export", "r", "--format", "trl"], "Use --to instead."),
        (["score", "r", "--pass-at-k", "8"], "Use --k instead."),
        (["score", "x", "--tool", "y"], "Use --from instead."),
        (["sweep", "x", "--list-suites"], "Use --list instead."),
        (["probe", "--server", "x"], "Give its value without a flag, as in `harness probe http://127.0.0.1:8000`."),
        (["probe", "u", "--drop", "stream"], "drop='stream': expected one of "),
        (["grade", "--reference", "x", "y"], "without a flag, as in `harness grade '1/2' "),
        (["run", "--extra-body", '{"chat_template_kwargs": null}'], "a JSON object (or omit it)"),
        (["benchmarks", "shwo"], "Did you mean show?"),
        (["score", "x", "--max_workers", "8"], "Use --workers instead."),
        (["sweep", "x", "--token_budget", "2048"], "are server settings"),
        (["serve", "vllm", "m", "--uvx", "vllm"], "Create an environment yourself: `uv venv ENV"),
        (["run", "--input_file", "x"], "Use --data instead."),
        (["run", "--tp", "8"], "For the server that --serve starts, use --serve-option tp=VALUE."),
        (["run", "--host", "http://127.0.0.1"], "is a single option: --base-url http://HOST:PORT."),
        (["run", "--context-length", "8"], "use --serve-option max-model-len=VALUE."),
        (["run", "--attention", "x"], "Sparse attention and its budget are server settings"),
        (["run", "--config", "x"], "To read run settings from a file, use `harness sweep FILE`."),
        (["run", "--save-path", "x"], "Use --out instead."),
        (["audit", "r", "--n-samples", "8"], "Use --samples instead."),
        (["score", "r", "--cache_path", "x"], "Grades are stored in the run folder"),
        (
            ["serve", "vllm", "--swap-space", "60"],
            "Put engine flags after ` -- `: `cli serve vllm MODEL -- --swap-space`.",
        ),
        (["serve", "vllm", "--block-size", "60"], "Put engine flags after ` -- `: "),
        (["serve", "vllm", "m", "--tensor-parallel-size", "8"], "Use --tp instead."),
        (["run", "--max_tokens", "8"], "specify a benchmark"),
        (["run", "--tasks", "aime24"], "Give its value without a flag, as in `harness run aime24:64 "),
        (["run", "--num_fewshot", "5"], "long_thought shows examples"),
        (["run", "--zzzzzz", "8"], "No such option: --zzzzzz."),
        (["benchmarks", "demo"], "expected one of fetch, list, schema, show. To see demo: cli benchmarks show demo"),
        (["benchmarks", ""], "unknown command ''; expected one of fetch, list, schema, show.\n"),
        (["run", "demo", "--resume"], "To continue a run, repeat the same command."),
        (["run", "--no-fingerprint"], "It is gone: `harness probe URL --replies RUN` compares"),
        (["score", "r", "--no-salvaged"], "It is gone: samples that an earlier version continued always count."),
        (["status", "r", "--resume"], "To continue a run, repeat the same command."),
        (["status", "r", "--concurrency", "8"], "press Ctrl-C, then run its command again, perhaps with another"),
        (["status", "r", "--pause"], "To pause or change a run, press Ctrl-C, then run its command again"),
        (["grade", "--judge", "m"], "A judge grades stored replies"),
        (["score", "r", "--port", "3"], "The port is part of the server's address"),
        (["score", "r", "--output", "x.json"], "`harness score RUN --json > FILE`; --out names the run"),
        (["score", "r", "--k", "1,8"], "expected a whole number written in digits, such as 16."),
        (["plan", "demo", "--samples", "3"], "follows the name, as in `harness plan aime24:64`"),
        (["run", "--api-key", "k"], "export OPENAI_API_KEY=KEY, or name another variable with --api-key-env"),
        (["probe", "u", "--no-stream"], "--drop stream turns streaming off."),
        (["probe", "u", "--chat-template-kwargs", "{}"], "--extra-body '{\"chat_template_kwargs\": …}'"),
        (["run", "--extra-body", '{"chat_template_kwargs": 1}'], "extra_body: chat_template_kwargs: expected a JSON"),
        (["merge", "r", "--json"], "json: `harness merge` does not support this option; it belongs to `harness run`, "),
        (["run", "--from", "x"], "from: `harness run` does not support this option; it belongs to `harness score`"),
        (["grade", "--responce", "x", "y"], "lists all options. If it is"),
        (["run", "--limit", "10%"], "'10%': expected a whole number written in digits, such as 16."),
        (["run", "--max-tokens", "32k"], "'32k': expected a whole number written in digits"),
        (["run", "--timeout", "5m"], "'5m': expected a number, such as 0.6"),
        (["sweep", "--tasks", "x"], "Usage: cli sweep [OPTIONS] FILE|SUITE|BENCHMARK\n"),
    ],
)
def test_words_of_other_tools_are_understood(words: list[str], sentence: str) -> None:
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 2 or isinstance(done.exception, UsageError)
    assert sentence in f"{done.output}{done.exception}"


FIVE_PROJECTS = """
    allow_unsafe_code answer_key api_key attention_implementation backend base_url batch_size block_size
    bootstrap_samples code_k_values completions_save_dir confidence_level data_dir data_name data_path dataset
    device dp_size dtype enable_chunked_prefill enable_prefix_caching enable_thinking end_idx enforce_eager
    evaluator_model_path exec_timeout extra_body extra_body_dict fail_fast few_shot_file file_path
    gpu_memory_utilization host input_file input_key input_path k label_key limit loglikelihood_mode
    max_completion_tokens max_model_len max_num_batched_tokens max_num_seqs max_retries max_tokens max_workers
    mc_aggregation mode model_dir model_name model_name_or_path model_path model_paths model_revision model_size
    n_gpus n_samples n_sampling n_shot num_gpus num_tries organization output_dir output_file parallel
    pipeline_parallel_size port profile_sparsity prompt_file_path prompt_type quantization question_key rank
    raw_result_file repair_resume repetition_penalty request_timeout response_key result_file result_path
    rope_scaling rope_scaling_dict run_id scale seed skip_special_tokens sliding_window_size sparsity_method split
    start_idx start_layer stop surround_with_messages system_prompt system_prompt_type task_name tasks temperature
    tensor_parallel_size threshold timeout tok_limit token_budget top_k top_p total_run trust_remote_code
    use_batch_exist use_example_prompt use_few_shot use_fused_kernel
"""
"""Every option of the scripts of the five projects."""


def test_each_option_of_the_five_projects_is_ours_or_is_answered_with_ours() -> None:
    ours = {name for verb in ("run", "score") for one in dict(commands())[verb].params for name in one.opts}
    silent = []
    for flag in {*FIVE_PROJECTS.split()} - {name.lstrip("-").replace("-", "_") for name in ours}:
        told = [CliRunner().invoke(cli, [*words, f"--{flag}", "1"]) for words in (["run"], ["score", "run"])]
        said = "".join(f"{done.output}{done.exception}" for done in told)
        if not re.search(r"No such option: \S+\. (?!Did you mean|`cli)|: it is part of", said):
            silent.append(flag)
    assert silent == []


def test_no_word_of_other_tools_hides_a_flag_of_ours() -> None:
    taken = {name for _, command in commands() for name in flags_and_arguments(command)}
    words = [one for table in tables().values() for words in table.options for one in words.split(" / ") if one]
    assert [
        one for one in words if not taken.issuperset(re.findall(r"(?<!\S)--[a-z-]+", one) or [one.split()[0]])
    ] == []
    run = {flag.lstrip("-") for one in dict(commands())["run"].params for flag in one.opts}
    other = {name for name, one in tables()[COMMON].answers.items() if not one.text.startswith(f"--{name} ")}
    # The run's own flags come first; other commands lack them.
    assert other & run <= {"host", "judge", "n", "on", "port", "quiet", "model", "base-url"}


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_says_the_commit(flag: str) -> None:
    known = commit()
    assert asked(flag).strip() == f"harness, version {__version__}" + (f" ({known})" if known else "")
    assert known is None or re.fullmatch("[0-9a-f]{12}(-dirty)?", known)


def test_without_arguments_a_pipe_gets_the_help_and_a_refusal() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness"], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Usage: harness" in done.stderr


def test_commands_stand_in_groups_in_the_order_of_the_work() -> None:
    text = asked("--help")
    places = [text.index(f"\n{heading}:\n") for heading in ("Serve", "Ask", "Grade", "Read", "Decide", "More")]
    assert places == sorted(places)
    assert all(re.search(rf"^  {name} +\S", text, re.MULTILINE) for name in COMMANDS)


def test_help_all_shows_every_command_with_its_rare_options() -> None:
    text = asked("--help-all")
    assert all(f"Usage: cli {name} " in text for name, _ in commands())
    assert "--timeout" in text
    assert "--timeout" not in asked("run", "--help")


def test_a_missing_argument_gets_an_example_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = {}
    for name, command in commands():
        if isinstance(command, click.Group) or not any(parameter.required for parameter in command.params):
            continue
        error = asked(*name.split(), columns=1000)
        shown = re.search(rf"Error: Missing [^`]+ For example: `(harness {name} [^`]+)`", error)
        assert shown, (name, error)
        examples[name] = shown[1]
        words = shlex.split(shown[1], comments=True)[1 + len(name.split()) :]
        context = command.context_class(command, info_name=name)
        # A shell takes what follows the sign.
        command.parse_args(context, words[: words.index(">")] if ">" in words else words)
    assert len(examples) >= 12
    assert examples["report"] == "harness report results/base"


def test_a_former_command_says_what_stands_for_it(tmp_path: Path) -> None:
    assert harness(tmp_path, "verify").err.endswith("For example: `harness verify results/mine`\n")
    for name, instead in tables()[COMMON].commands.items():
        done = harness(tmp_path, name, "x")
        assert (done.code, f"`harness {name}` is not a command: {instead}." in done.err) == (2, True)
        for shown in re.findall(r"`harness ([^`]+)`", instead):
            first, *flags = re.findall(r"(?:--)?[a-z]+", re.sub(r"\b[A-Z]+\b", "", shown))
            helped = asked(*([] if first.startswith("--") else [first]), "--help-all", columns=1000)
            assert first.startswith("--") or first in COMMANDS, shown
            assert all(flag in helped for flag in [first, *flags]), shown
    with pytest.raises(AttributeError, match=r"^`harness\.race` no longer exists: `harness plan` .*--margin"):
        importlib.import_module("harness").race("demo")


def test_an_unwritable_folder_is_answered_by_a_helpful_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path / "my run")

    def refuse(path: object, *_: object, **__: object) -> None:
        raise disk_error(Path(str(path)), OSError(errno.EROFS, os.strerror(errno.EROFS)))

    monkeypatch.setattr("harness.commands.score.score", refuse)
    scored = harness(tmp_path, "score", "my run")
    line = "`cp -r 'my run' 'my run-copy' && chmod -R u+w 'my run-copy' && harness score 'my run-copy'`"
    assert (scored.code, line in scored.err) == (3, True), scored.err
    (tmp_path / "theirs.jsonl").write_text('{"question": "1", "answer": "1", "response": "1"}')
    assert "cp -r" not in harness(tmp_path, "score", "theirs.jsonl").err, "outputs have --out"
    monkeypatch.undo()
    monkeypatch.setattr("harness.judges.audit._audit", lambda *_, **__: None)
    monkeypatch.setattr("harness.judges.audit.write_lines", refuse)
    audited = harness(tmp_path, "audit", "my run", "--out", "x.jsonl")
    assert (audited.code, "Set --out to a different path" in audited.err) == (3, True), audited.err


# -- options of other tools --------------------------------------------------------------------------------------------


LEAVES = [(name, command) for name, command in commands() if not isinstance(command, click.Group)]
WORDS = """
    accelerator action adapter all2all-backend allowed-methods analysis-report approval attention-config best-of
    burstiness cache cache-dir cache-requests chat-template-content-format checkpoint chunk-ids cluster code-revision
    config-dir cot-prompt cpu-offload-gb csv dataset-split debug debug-port decode-attention-backend display
    dp-attention dry eval-type expname experts fail-on-error few-shots generation-backend goodput graph hub-mode ignore-errors
    include-path job-id judge-worker-num load-format log-level lora-modules max-lora-rank max-sandboxes max-tasks
    media-path message-limit metric-percentiles model-role model-impl moe-backend no-score num-chunks num-prompts
    num-scheduler-steps partition peft-path percentile-metrics predict-only push-to-hub random-input-len
    reasoning-history reasoning-tokens report-to rerun-done response-schema reuse role sample-shuffle scheduler
    server-entrypoint show-config solver starting-seed stop-seqs stream-interval tags task-config tokenizer tokenizer-mode
    token-limit top-logprobs use-vllm verbosity wandb-args with-sandbox working-limit write
"""  # noqa: E501
"""Options of lm-eval, Inspect, EvalScope, NeMo-Skills, LightEval, OpenCompass, vLLM and SGLang without one here."""


def answer(command: click.Command, name: str, word: str) -> str:
    """What the command says to an option; empty if it takes the option."""
    done = CliRunner().invoke(cli, [*name.split(), f"--{word}", "x"])
    return f"{done.output} {done.exception}" if done.exit_code else ""


def flags_of(command: click.Command) -> set[str]:
    return {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}


@pytest.mark.parametrize(("name", "command"), LEAVES, ids=[name for name, _ in LEAVES])
def test_an_answer_names_only_options_that_the_command_has(name: str, command: click.Command) -> None:
    asked = tables().values() if name.split()[0] in ASKED else [tables()[COMMON]]
    known = {word.rpartition(":")[2] for table in asked for word in table.answers}
    for word in share_of(sorted(word for word in known if re.fullmatch("[a-z][a-z-]+", word))):
        _, unknown, said = answer(command, name, word).partition("No such option: ")
        if unknown:
            plain = re.sub(r"`[^`]*`", "", said.partition(". ")[2])
            assert {*re.findall(r"(?<![\w-])--[a-z][a-z-]*", plain)} <= flags_of(command), word
            for key in re.findall(r"--serve-option ([a-z-]+)=VALUE", said):
                assert key == "chat-template" or described_server([f"{key}={'cpu' if key == 'device' else 1}"])


@pytest.mark.parametrize("word", WORDS.split())
def test_a_word_of_another_tool_is_no_slip_of_an_option_here(word: str) -> None:
    for _, command in LEAVES:
        assert misspelled(f"--{word}", flags_of(command)) == ""


def test_no_option_of_an_engine_is_a_slip_of_another_option_here(shared_data: Path) -> None:
    listed = {
        line for path in (shared_data / "flags").glob("*.txt") for line in path.read_text().split() if line[:2] == "--"
    }
    guesses = {(word, misspelled(word, flags_of(command))) for word in listed for _, command in LEAVES}
    ours = {flag for _, command in LEAVES for flag in flags_of(command)}
    wrong = {word for word, guess in guesses if guess and word not in ours}
    assert wrong <= {"--nnodes"}


@given(st.data())
def test_a_slip_of_typing_is_answered_with_the_option(data: st.DataObject) -> None:
    _, command = data.draw(st.sampled_from(LEAVES))
    flag = data.draw(st.sampled_from(sorted(one for one in flags_of(command) if len(one) >= 7) or ["--help-all"]))
    i = data.draw(st.integers(3, len(flag) - 2))
    slips = [flag[:i] + flag[i + 1 :], flag[:i] + flag[i] + flag[i:], flag[:i] + flag[i + 1] + flag[i] + flag[i + 2 :]]
    for typed in slips:
        assert flag in misspelled(typed, {flag, "--other"}) or typed == flag


def test_a_name_is_near_if_it_holds_what_was_typed() -> None:
    names = ("Qwen/QwQ-32B", "deepseek-r1", "aime24")
    for typed, near in (("qwq", "Qwen/QwQ-32B"), ("qwq32", "Qwen/QwQ-32B"), ("AIMME24", "aime24"), ("zz", "")):
        assert near_names(typed, names) == (f" Did you mean {near}?" if near else "")


# -- spelling of options -----------------------------------------------------------------------------------------------


WRONG = ("-1", "x y", "{")
"""Values that options of most types refuse."""
CASES = {
    (verb, name)
    for verb, declared in all_options().items()
    for name, option in options_of(declared).items()
    if not option.argument and option.type is not bool and (verb == "run" or name not in options_of(RunOptions))
}


def refusals(verb: str, name: str, values: tuple[str, ...] = WRONG) -> list[str]:
    """What a command says to these values of its option; no server is asked for."""
    flag = next(one for one in command_of(verb).params if one.name == name).opts[-1]
    served = ["--base-url", "http://127.0.0.1:9"] if verb == "run" else []
    said = []
    for value in values:
        done = CliRunner().invoke(cli, [verb, *least(verb), *served, flag, value])
        error = done.exception
        said.append(error.sentence if isinstance(error, HarnessError) else done.output.partition("Error: ")[2])
    return [sentence for sentence in said if sentence]


@pytest.mark.parametrize(("verb", "name"), share_of(sorted(CASES)))
def test_refusals_spell_options_as_typed(verb: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a path that is no mistake is written
    keywords = {option for option in options_of(options_class(verb)) if "_" in option}
    for sentence in refusals(verb, name):
        plain = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]* [^`]*`", "", sentence)
        assert keywords.isdisjoint(re.findall(r"[a-z]+(?:_[a-z]+)+", plain)), sentence
        assert not re.match(rf"{name}\b[=:]", plain), sentence


def test_each_value_that_a_refusal_proposes_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for verb, name in share_of(sorted(CASES)):
        flag = next(one for one in command_of(verb).params if one.name == name).opts[-1]
        blamed = re.compile(rf"[^:]*{flag}\b[^:]*: .*expected")
        for sentence in filter(blamed.match, refusals(verb, name)):
            for value in re.findall(r"(?:such as |equal to |expected one of )([^\s'\"`]+)", sentence):
                assert not any(map(blamed.match, refusals(verb, name, (value.rstrip(".,;"),)))), (verb, sentence)


COMMAND = re.compile(r"`harness ([^`\n]+)`")


def advised() -> dict[str, str]:
    """Each command that a sentence of the product gives → the file; what is filled in is X."""
    found = {}
    for path in (CHECKOUT / "harness").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr | ast.Constant):
                parts = node.values if isinstance(node, ast.JoinedStr) else [node]
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in parts)
                found |= dict.fromkeys(COMMAND.findall(text), path.name)
    return found


def test_each_command_that_a_sentence_gives_is_there_with_its_options() -> None:
    known = {name.removeprefix("harness "): flags_of(command) for name, command in commands()}
    for line, file in advised().items():
        words = line.split()
        name = next((name for name in (" ".join(words[:2]), words[0]) if name in known), None)
        assert name or words[0].isupper() or words[0] == "--help", (line, file)
        flags = [word.partition("=")[0] for word in words if re.fullmatch(r"--[a-z][a-z-]*(=.*)?", word)]
        assert name is None or {*flags} <= known[name] | {"--help", "--help-all", "--version"}, (line, file)


@pytest.mark.parametrize(
    ("verb", "sentence", "typed"),
    [
        ("run", "give `budget_usd` at least 3, as `max_tokens`", "give --budget-usd at least 3, as --max-tokens"),
        ("run", "`canary=False` or `seed=None`: name `model`", "--no-canary or --seed none: name --model"),
        ("run", "name one with `base_url`, or `drop=stream`", "name one with --base-url, or --drop stream"),
        (
            "run",
            "lower `context`: `dp_mode=router`",
            "lower --serve-option max-model-len: --serve-option dp-mode=router",
        ),
        ("serve vllm", "lower `context`: `dp_mode=router`", "lower --max-model-len: --dp-mode router"),
        ("sweep", "s.yaml:3: set `max_tokens=8`", "s.yaml:3: set `max_tokens: 8`"),
        ("plan", "give `detect=2`, or `margin=2.5`; a model", "give --detect 2, or --margin 2.5; a model"),
        ("export", "add `i_know=True` to `to`", "add --i-know to --to"),
        ("score", "with `sources`, `answer_key='x'`", "with SOURCE..., --answer-key x"),
        # Wrong twins: another's words, a file's keys, a request's field of a command without the option, a label.
        *(
            ("run", same, same)
            for same in (
                "it said 'set `max_tokens`' and \"`top_p`\" and “`top_k`: use `seed=1`, base_url=x, or temperature=0”",
                "it said use temperature=0, or max_tokens with base_url",
                "`harness score --k 8 max_tokens`",
                "s.yaml:3: `max_tokens`: 0",
                "the log ends with:\n  set `max_tokens=8`",
                "cell temperature=0.6",
                "field `finish_reason`",
                "/tmp/max_tokens/x",
                'extra: {"top_k": 1}',
            )
        ),
        ("view", "with max_tokens 16", "with max_tokens 16"),
    ],
)
def test_options_are_spelled_for_the_command_that_runs(verb: str, sentence: str, typed: str) -> None:
    with typed_in(dict(LEAVES)[verb]):
        assert as_typed(sentence) == typed
    assert as_typed(sentence) == sentence  # in Python


# -- commands in an unusual home ---------------------------------------------------------------------------------------


ADDRESS = "http://127.0.0.1:9"
CALLS = [
    "run demo --limit 1", f"run demo --base-url {ADDRESS} --model m --dry-run", "score none", "report none", "status",
    "serve vllm org/model --dry-run", "serve vllm org/model --docker x/y:1 --dry-run", "serve status", "serve stop x",
    "serve logs x", "serve --models", "benchmarks", "benchmarks show aime24", "doctor", "plan none --detect 5",
    "compare a b", "verify a", "sweep --list", "probe", "audit none",
    "grade 1 1", "export none --to trl", "merge a --out b", "show a", "view a", "gate none.yaml", "init ./",
]  # fmt: skip
WORK = {"benchmarks", "serve --models", "grade 1 1", "serve vllm org/model --dry-run", "sweep --list"}
"""Those that need nothing but their words."""


@pytest.fixture(params=["unknown", "missing", "a file", "closed", "read only"])
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run in an empty folder with such a home and no folder of ours named."""
    with_modes = {"closed": 0o000, "read only": 0o500}
    if os.geteuid() == 0 and request.param in with_modes:
        pytest.skip("no folder is closed to root")
    for name in ("HARNESS_CACHE", "HARNESS_STATE", "HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    monkeypatch.setenv("HOME", str(folder))
    if request.param == "unknown":
        monkeypatch.delenv("HOME")
        monkeypatch.setattr(pwd, "getpwuid", lambda uid: {}[uid])
    elif request.param == "missing":
        monkeypatch.setenv("HOME", f"{os.devnull}/home")
    elif request.param == "a file":
        folder.write_text("")
    else:
        folder.mkdir(mode=with_modes[request.param])
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path)
    return str(request.param)


def test_every_command_does_without_a_home(home: str, tmp_path: Path) -> None:
    for line in CALLS:
        done = harness(tmp_path, *line.split())
        assert "Traceback" not in done.err + done.out, line
        assert done.code == 0 or done.err.strip(), line
        assert line not in WORK or done.code == 0, (line, done.err)


def test_what_a_home_would_hold_stands_in_a_folder_of_the_users_alone(home: str, tmp_path: Path) -> None:
    own = tmp_path / "temporary" / f"reasoning-harness-{os.geteuid()}"
    assert installation.cache_folder() == own / ".cache/reasoning-harness"
    assert installation.hub_cache() == own / ".cache/huggingface/hub"
    assert own.stat().st_mode & 0o777 == 0o700
    own.chmod(0o777)
    with pytest.raises(UsageError, match="HOME: "):
        installation.state_folder()


@pytest.mark.skipif(os.geteuid() == 0, reason="no folder is closed to root")
def test_a_closed_folder_is_refused_by_the_variable_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    with alone(tmp_path):
        del os.environ["HARNESS_CACHE"]
        for name in ("XDG_CACHE_HOME", "HARNESS_CACHE"):
            closed = {name: str(tmp_path / "closed/in")}
            assert f"harness: {name}: permission denied for" in harness(tmp_path, "serve", "--models", extra=closed).err
