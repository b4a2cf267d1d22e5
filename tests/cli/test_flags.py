"""The flags of a command are what its options declare: a line without flags sets nothing, and each flag its option."""

from __future__ import annotations

from typing import Any

import click
import pytest

from harness.asking.options import RunOptions
from harness.asking.options.verbs import VERBS
from harness.asking.servers import spec_without_download
from harness.cli.flags import described_server, judge_of
from harness.cli.run import command as run
from harness.core.errors import UsageError
from harness.core.options import SEED, options_of
from tests.cli.test_verbs_options import command_of

WORDS = {
    "run": [],
    "race": [],
    "sweep": [],
    "score": ["run"],
    "plan": ["run"],
    "compare": ["run"],
    "verify": ["run"],
    "merge": ["run", "--out", "joined"],
    "report": ["run"],
    "export": ["run", "--to", "trl"],
    "audit": ["run"],
    "grade": ["1", "1"],
    "probe": ["http://127.0.0.1:9"],
}
"""Verb → the least that its command must be given."""

COMMANDS = [(command_of(verb), VERBS[verb].options, words) for verb, words in WORDS.items()]
OF_RUN = set(options_of(RunOptions))
CASES = [
    (command, name, words)
    for command, declared, words in COMMANDS
    for name, option in options_of(declared).items()
    if not option.argument and (declared in (RunOptions, VERBS["run"].options) or name not in OF_RUN)
]
"""The flags of a run are the same for every verb that makes runs: they are tried once."""


def test_every_verb_with_declared_options_is_tried() -> None:
    assert list(WORDS) == list(VERBS)


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
    if name != "to":  # an export's, which lists the formats that ship
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


def test_the_options_of_a_server_are_read_as_the_flags_of_serve_are() -> None:
    options = ["threads=3", "max_model_len=2048", "eager=true", "env=A=b=c", "engine-flag=--x", "engine-flag=1"]
    fields = described_server(options)
    assert fields["environment"] == {"A": "b=c"}
    assert fields["extra_flags"] == ("--x", "1")
    spec = spec_without_download(engine="llama_cpp", model="m", threads=fields["threads"], context=fields["context"])
    assert (spec.threads, spec.context, fields["eager"]) == (3, 2048, True)
    for wrong, says in {
        "tpp=2": r"no server has an option tpp\. Did you mean tp, pp\?",
        "tp=x": "Invalid value for 'tp'",
        "tp": "expected KEY=VALUE",
    }.items():
        with pytest.raises(UsageError, match=says):
            described_server([wrong])


@pytest.mark.parametrize(
    ("typed", "model", "address"),
    [
        ("org/m@http://h:8000/v1", "org/m", ("http://h:8000/v1",)),
        ("org/m@main@unix:///s", "org/m@main", ("unix:///s",)),
        ("org/m@main", "org/m@main", ()),
        ("org/m", "org/m", ()),
    ],
)
def test_the_address_of_a_judge_stands_behind_its_name(typed: str, model: str, address: tuple[str, ...]) -> None:
    for keys, votes in (("", 1), (",votes=3,prompt=limo", 3)):
        judge = judge_of(parsed(run, ["demo", "--judge", f"{typed}{keys}"])["judge"])
        assert judge is not None
        assert (judge.model, judge.base_url, judge.votes) == (model, address, votes)
