"""The command that is printed to resume or repeat a run holds no key, whichever option of whichever command has it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click
import pytest

from harness.cli.main import cli
from harness.core.secret import HIDDEN, command_words

KEY = "sk-canary5up3rs3cr3t0123456789"
WORD = "bluebird"
"""A password that looks like any word: it is known by its place only."""

SECRETS = [
    KEY,
    f'{{"api_key": "{WORD}"}}',
    f'{{"provider": [{{"access_token": "{WORD}"}}]}}',
    f'{{"byok": "{KEY}"}}',
    f"https://me:{WORD}@host/v1",
    f"https://host/v1?key={WORD}",
    f"b 'header=X-Api-Key: {WORD}' seed=7",
    f"b header=X-Team:{WORD}",
    f"""b 'extra_body={{"api_key": "{WORD}"}}'""",
    f"""b 'extra_body={{"byok": "{KEY}"}}'""",
    f"b api_key={WORD}",
    f"b judge_header=X-Team:{WORD}",
    f"--api-key={WORD}",
]
"""Values that hold a key, of an option that takes any text."""

HARMLESS = [
    "results/run-20241022T101500-abc12def3",
    "Qwen/QwQ-32B",
    "http://127.0.0.1:8000/v1",
    '{"top_k": 20, "stop": ["a"]}',
    "aime24:64,math500",
    "b model=Qwen/QwQ-32B temperature=0.6 max_tokens=32768",
    "{question} a: b=c",
    "8,16,…,256",
    "1e-3",
    "5d2b0a1f6f6a4fbb8f8f0d2a8a9f7c3e1b2d4c6a",
]


def _options(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """(command with its parents, long flag) of every option that takes a value."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _options(below, click.Context(below, parent=context, info_name=name))
        return
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.is_flag:
            yield context.command_path, max(parameter.opts, key=len)


OPTIONS = sorted({flag for _, flag in _options(cli, click.Context(cli, info_name="harness"))})


def _shown(line: list[str]) -> str:
    shown = command_words(line)
    assert len(shown) == len(line)
    return shlex.join(shown)


@pytest.mark.parametrize("flag", OPTIONS)
def test_no_option_shows_a_key(flag: str) -> None:
    for secret in SECRETS:
        for line in ([flag, secret], [f"{flag}={secret}"]):
            shown = _shown(["run", *line, "aime24"])
            assert KEY not in shown, secret
            assert WORD not in shown, secret
            assert HIDDEN in shown or "@" in secret


HIDES_ALL = {"--header", "--env", "--server-env"}
"""The options whose values are hidden whatever they are: headers and variables."""


@pytest.mark.parametrize("flag", sorted(set(OPTIONS) - HIDES_ALL))
def test_harmless_values_stay_as_typed(flag: str) -> None:
    for value in HARMLESS:
        for line in (["run", flag, value, "aime24"], ["run", f"{flag}={value}", "aime24"]):
            assert command_words(line) == line


@pytest.mark.parametrize(
    "line",
    [
        f"run --serve-option engine-flag=--api-key --serve-option engine-flag={WORD} --port 8000",
        f"run --serve-option=engine-flag=--api-key --serve-option=engine-flag={WORD} --port 8000",
        f"run --serve-option engine-flag=--api-key={WORD} --port 8000",
        f"serve vllm m --port 8000 -- --api-key {WORD}",
        f"serve vllm m --port 8000 -- --api-key -{WORD}",
    ],
)
def test_the_key_of_an_engine_is_hidden_as_one_word_or_two(line: str) -> None:
    shown = _shown(shlex.split(line))
    assert WORD not in shown
    assert "--port 8000" in shown


def test_headers_and_variables_keep_their_names() -> None:
    judge = ["--judge", f"m@http://h/v1?key={WORD},scope=wrong,api_key_env=K"]
    assert command_words(judge) == ["--judge", f"m@http://h/v1?key={HIDDEN},scope=wrong,api_key_env=K"]
    words = command_words(["run", "--header", f"X-Team: {WORD}", f"--server-env=HF_TOKEN={WORD}"])
    assert words == ["run", "--header", f"X-Team:{HIDDEN}", f"--server-env=HF_TOKEN={HIDDEN}"]
