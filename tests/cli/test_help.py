"""Help that is read, words of other tools, completion, and `harness` without arguments.

For: harness.cli, harness.cli.flags.
"""

from __future__ import annotations

import errno
import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from harness.cli.foreign.tables import COMMON, tables
from harness.cli.help import taken_by
from harness.cli.main import LazyGroup, cli
from harness.core.about import __version__, commit
from harness.core.errors import UsageError
from harness.core.files import disk_error
from harness.options.commands import COMMANDS
from tests.patience import PATIENCE_SECONDS
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
        (["run", "--greedy"], "For greedy sampling, use --temperature 0."),
        (["run", "--overwrite"], "Runs are never overwritten"),
        (["run", "--n", "8"], "Use --samples instead."),
        (["export", "r", "--format", "trl"], "Use --to instead."),
        (["score", "r", "--pass-at-k", "8"], "Use --k instead."),
        (["score", "x", "--tool", "y"], "Use --from instead."),
        (["sweep", "x", "--list-suites"], "Use --list instead."),
        (["probe", "--server", "x"], "Use URL instead, without a flag."),
        (["probe", "u", "--drop", "stream"], "drop='stream': expected one of "),
        (["grade", "--reference", "x", "y"], "Use REFERENCE instead, without a flag. If it is the reference"),
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
        (["run", "--tasks", "aime24"], "Use BENCHMARKS instead, without a flag."),
        (["run", "--num_fewshot", "5"], "long_thought shows examples"),
        (["run", "--zzzzzz", "8"], "No such option: --zzzzzz."),
        (["benchmarks", "demo"], "expected one of fetch, list, schema, show. To see demo: cli benchmarks show demo"),
        (["benchmarks", ""], "unknown command ''; expected one of fetch, list, schema, show.\n"),
        (["run", "demo", "--resume"], "To continue a run, repeat the same command."),
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
        (["sweep", "--tasks", "x"], "Usage: cli sweep [OPTIONS] FILE|SUITE\n"),
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
    taken = {name for _, command in commands() for name in taken_by(command)}
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


def test_a_missing_argument_is_answered_by_an_example_that_the_command_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        assert (done.code, f"`harness {name}` is no command: {instead}." in done.err) == (2, True)
    with pytest.raises(AttributeError, match=r"^`harness\.race` is no function: `harness plan` .*--margin"):
        importlib.import_module("harness").race("demo")


def test_a_folder_that_may_not_be_written_is_answered_by_a_line_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
