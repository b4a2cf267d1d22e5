"""Each door spells options as its user types them: flags on a command line, keywords in Python.

For: harness.cli.spelling.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.flags import command_of
from harness.cli.main import cli
from harness.cli.spelling import as_typed, typed_in
from harness.core.errors import HarnessError
from harness.core.options import options_of
from harness.options.commands import all_options, options_class
from harness.options.run import RunOptions
from tests.budget import share_of
from tests.cli.test_flags import least
from tests.cli.test_guesses import flags_of
from tests.cli.test_help import commands
from tests.conftest import CHECKOUT

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


@pytest.mark.parametrize(("verb", "name"), sorted(CASES), ids=[" ".join(case) for case in sorted(CASES)])
def test_a_refusal_on_a_command_line_spells_options_as_they_are_typed(
    verb: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        ("run", "give budget_usd at least 3, as `max_tokens`", "give --budget-usd at least 3, as --max-tokens"),
        ("run", "`canary=False` or `seed=None`: name `model`", "--no-canary or --seed none: name --model"),
        ("run", "name one with base_url, or `drop=stream`", "name one with --base-url, or --drop stream"),
        ("plan", "give detect=2, or margin=2.5; a model", "give --detect 2, or --margin 2.5; a model"),
        ("export", "add `i_know=True` to `to`", "add --i-know to --to"),
        ("score", "with `sources`, `answer_key='x'`", "with SOURCE..., --answer-key x"),
        # Wrong twins: another's words, a file's keys, a request's field of a command without the option, a label.
        *(
            ("run", same, same)
            for same in (
                "it said 'max_tokens too large' and \"top_p\"",
                "`harness score --k 8 max_tokens`",
                "s.yaml:3: max_tokens=0",
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
    with typed_in(command_of(verb)):
        assert as_typed(sentence) == typed
    assert as_typed(sentence) == sentence  # in Python
