"""A word that a command does not take is answered with an option that surely means the same, or with none.

For: harness.cli.foreign.tables, harness.cli.help.
"""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.flags import described_server
from harness.cli.foreign.tables import ASKED, COMMON, tables
from harness.cli.main import cli
from harness.core.errors import misspelled, near_names
from tests.budget import share_of
from tests.cli.test_help import commands

LEAVES = [(name, command) for name, command in commands() if not isinstance(command, click.Group)]
WORDS = """
    accelerator action adapter all2all-backend allowed-methods analysis-report approval attention-config best-of
    burstiness cache cache-dir cache-requests chat-template-content-format checkpoint chunk-ids cluster code-revision
    config-dir cot-prompt cpu-offload-gb csv dataset-split debug debug-port decode-attention-backend display
    dp-attention dry eval-type expname experts fail-on-error few-shots generation-backend goodput graph hub-mode ignore-errors
    include-path job-id judge-worker-num load-format log-level lora-modules max-lora-rank max-sandboxes max-tasks
    media-path message-limit metric-percentiles model-role model-impl moe-backend no-score num-chunks num-prompts
    num-scheduler-steps partition peft-path percentile-metrics predict-only push-to-hub random-input-len rate
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
