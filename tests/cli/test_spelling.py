"""Options in the flags of the command that was typed.

For: harness.cli.flags.
"""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from harness.cli.benchmarks import fetch
from harness.cli.export import command as export
from harness.cli.help import spell
from harness.cli.main import cli
from harness.cli.run import command as run
from harness.cli.score import command as score
from harness.cli.terminal import Terminal
from harness.core.errors import UNSET, Sentence, UsageError, option


@pytest.mark.parametrize(
    ("command", "name", "value", "flag"),
    [
        (run, "concurrency", 0, "--concurrency 0"),
        (run, "max_tokens", UNSET, "--max-tokens"),
        (run, "endpoints_file", "a file", "--endpoints 'a file'"),
        (run, "seed", None, "--seed none"),
        (run, "thinking", None, "no --thinking"),
        (run, "fit_context", True, "--fit-context"),
        (run, "canary", False, "--no-canary"),
        (run, "stream", False, "--no-stream"),
        (run, "drop", ["temperature", "top_p"], "--drop temperature --drop top_p"),
        (run, "server.api_key_env", "MY_VAR X", "--serve-option api-key-env='MY_VAR X'"),
        (run, "server.prefix_caching", False, "--serve-option prefix-caching=False"),
        (run, "api_key_env", "MY_VAR", "--api-key-env MY_VAR"),
        (score, "judge.base_url", UNSET, "--judge MODEL@URL"),
        (score, "max_tokens", UNSET, "--judge-max-tokens"),
        (score, "model", UNSET, "--judge"),
        (score, "api_key_env", UNSET, "--judge-api-key-env"),
        (score, "deadline", 0.0, "--deadline 0.0"),
        (export, "concurrency", 0, "concurrency=0"),  # no flag of this command
    ],
)
def test_an_option_is_the_flag_of_the_command(command: click.Command, name: str, value: Any, flag: str) -> None:
    assert spell(f"say {option(name, value)}!", command) == f"say {flag}!"


def test_an_option_of_another_command_is_named_with_it() -> None:
    with click.Context(cli):
        assert spell(option("data"), fetch) == "--data of `harness run`"
        assert spell(option("nobodys"), fetch) == "nobodys"
        assert spell(option("score.tool", "a b"), fetch) == "--from 'a b'"
        assert spell(option("concurrency", 0), export) == "concurrency=0"
    assert spell(option("data"), fetch) == "data"


def test_a_command_below_another_names_the_flag_that_helps() -> None:
    done = CliRunner().invoke(cli, ["benchmarks", "fetch", "no_such_card"])
    assert isinstance(done.exception, UsageError)
    assert "or a file of questions with --data of `harness run`" in done.exception.sentence


def test_an_error_is_spelt_once_for_the_command_that_runs() -> None:
    error = UsageError("expected 1 to 100000.", field="concurrency", value="0")
    assert spell(error.sentence, run) == "--concurrency 0: expected 1 to 100000."
    assert spell(spell(error.sentence, run), score) == "--concurrency 0: expected 1 to 100000."


def test_foreign_words_are_left_as_they_are() -> None:
    assert spell("HTTP 400: `max_tokens` and base_url", run) == "HTTP 400: `max_tokens` and base_url"


def test_notes_and_warnings_of_a_run_name_its_flags(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = Sentence(f"{option('fingerprint', False)} leaves it out")
    with click.Context(run), Terminal(progress=False) as watcher:
        watcher.standing(sentence)
        watcher.warn(sentence)
    leaves = "--no-fingerprint leaves it out"
    assert capsys.readouterr().err.splitlines() == [leaves, f"harness: warning: {leaves}"]
