"""The flags of a command are what its options declare: a line without flags sets nothing, and each flag its option."""

from __future__ import annotations

from typing import Any

import click
import pytest

from harness.asking.options import PlanOptions, RunOptions, ScoreOptions
from harness.cli.plan import command as plan
from harness.cli.run import command as run
from harness.cli.score import command as score
from harness.core.options import SEED, Options, options_of

COMMANDS: list[tuple[click.Command, type[Options], list[str]]] = [
    (run, RunOptions, []),
    (score, ScoreOptions, ["run"]),
    (plan, PlanOptions, ["run", "--detect", "2"]),
]
CASES = [
    (command, name, words)
    for command, declared, words in COMMANDS
    for name, option in options_of(declared).items()
    if not option.argument
]


def parsed(command: click.Command, words: list[str]) -> dict[str, Any]:
    """The parameters of a command line."""
    return dict(command.make_context(str(command.name), list(words)).params)


@pytest.mark.parametrize(("command", "name", "words"), CASES, ids=[f"{one.name}-{name}" for one, name, _ in CASES])
def test_an_option_that_is_not_typed_is_not_set(command: click.Command, name: str, words: list[str]) -> None:
    declared = next(options for one, options, _ in COMMANDS if one is command)
    option = options_of(declared)[name]
    if option.default is not ...:
        assert parsed(command, words)[name] in ((option.default,) if option.kind is SEED else (None, ()))


@pytest.mark.parametrize(("command", "name", "words"), CASES, ids=[f"{one.name}-{name}" for one, name, _ in CASES])
def test_a_flag_sets_its_option_and_says_what_the_declaration_says(
    command: click.Command, name: str, words: list[str]
) -> None:
    declared = next(options for one, options, _ in COMMANDS if one is command)
    option = options_of(declared)[name]
    (parameter,) = (one for one in command.params if one.name == name)
    assert isinstance(parameter, click.Option)
    assert parameter.help
    assert parameter.help.split()[0] == option.help.split()[0]
    if option.type is bool:
        assert parsed(command, [*words, parameter.opts[0]])[name] is (option.default is not True)
        if option.default is None:
            assert parsed(command, [*words, parameter.secondary_opts[0]])[name] is False
    else:
        typed = option.choices[0] if option.choices else "7"
        value = parsed(command, [*words, parameter.opts[0], typed])[name]
        assert value in (typed, 7, 7.0, (typed,), (7,))


def test_what_may_be_repeated_is_kept_whole() -> None:
    given = parsed(run, ["--header", "A:1", "--header", "B:2", "--drop", "top_p", "--drop", "top_k"])
    assert [name for name, _ in RunOptions.of(header=given["header"]).header] == ["A", "B"]
    assert given["drop"] == ("top_p", "top_k")
