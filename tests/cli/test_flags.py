"""The flags of a command are what its options declare: a line without flags sets nothing, and each flag its option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from harness.asking import servers
from harness.asking.options.run import RunCommand, RunOptions
from harness.asking.servers import spec_without_download
from harness.asking.verbs import VERBS, all_options, options_class
from harness.cli.flags import command_of, described_server, judge_of, options_typed
from harness.core.errors import ServerError, UsageError
from harness.core.options import Options, options_of

CASES = [
    (verb, name)
    for verb, declared in all_options().items()
    for name, option in options_of(declared).items()
    if not option.argument and (verb == "run" or name not in options_of(RunOptions))
]
"""The flags of a run are the same for every verb that makes runs: they are tried once."""


def least(verb: str) -> list[str]:
    """The least that a command must be given."""
    needed = [parameter for parameter in command_of(verb).params if parameter.required]
    return [word for one in needed for word in ([one.opts[-1], "a"] if isinstance(one, click.Option) else ["a"])]


def parsed(verb: str, words: list[str]) -> Options:
    """The options of a command line."""
    return options_typed(command_of(verb).make_context(verb, list(words)), options_class(verb))


@pytest.mark.parametrize("verb", [verb for verb, row in VERBS.items() if row.options])
def test_what_is_not_typed_is_not_set(verb: str) -> None:
    table = options_of(options_class(verb))
    named = {name for name in parsed(verb, least(verb)).given if not table[name].argument}
    assert named == {name for name, option in table.items() if option.default is ... and not option.argument}


@pytest.mark.parametrize(("verb", "name"), CASES, ids=[" ".join(case) for case in CASES])
def test_a_flag_sets_its_option_and_says_what_the_declaration_says(verb: str, name: str) -> None:
    option = options_of(options_class(verb))[name]
    (parameter,) = (one for one in command_of(verb).params if one.name == name)
    assert isinstance(parameter, click.Option)
    assert (parameter.help or "").split()[0] == option.help.split()[0]

    def value(*typed: str) -> Any:
        context = command_of(verb).make_context(verb, [*least(verb), *typed])
        return context.params[name]

    if option.type is bool:
        assert value(parameter.opts[-1]) is (option.default is not True)
        if option.default is None:
            assert value(parameter.secondary_opts[0]) is False
    else:
        typed = option.choices[0] if option.choices else "7"
        assert value(parameter.opts[-1], typed) in (typed, 7, 7.0, (typed,), (7,))


def test_what_may_be_repeated_is_kept_whole() -> None:
    given = parsed("run", ["--header", "A:1", "--header", "B:2", "--drop", "top_p", "--drop", "top_k"])
    assert isinstance(given, RunCommand)
    assert ([name for name, _ in given.header], given.drop) == (["A", "B"], ("top_p", "top_k"))


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
    for keys, scope in (("", "undecided"), (",scope=all,prompt=limo", "all")):
        judge = judge_of(f"{typed}{keys}")
        assert judge is not None
        assert (judge.model, judge.base_url, judge.scope) == (model, address, scope)


def test_a_judge_whose_server_nobody_knows_is_told_how_a_judge_is_addressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path))
    monkeypatch.delenv(servers.URL_VARIABLE, raising=False)
    judge = judge_of("m@noserver")
    for who, flag in ((judge, "--judge MODEL@URL"), (RunOptions(model="m"), "--base-url URL")):
        assert who is not None
        with pytest.raises(ServerError, match=f"no server is known: give .*{flag}"):
            servers.find(who)
