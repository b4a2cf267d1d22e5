"""Every verb beside every option, through both doors: taken by both, or refused by both in the same sentence."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import click
import pytest
from click.testing import CliRunner

import harness
from harness.asking.options.verbs import VERBS
from harness.cli.flag_words import flag_of
from harness.cli.main import LazyGroup, cli
from harness.core.errors import UsageError
from harness.core.options import options_of
from harness.core.wording import Sentence, worded

PYTHON: dict[str, Callable[..., Any]] = {
    "run": harness.run,
    "race": partial(harness.race, candidates={}),
    "experiment repeats": partial(harness.repeats, "run"),
    "experiment samples": partial(harness.sample_sizes, "run", [2, 4]),
    "sweep": partial(harness.sweep, "file.yaml"),
    "score": partial(harness.score, "run"),
    "plan": partial(harness.plan, "run", 2),
}
FLAGS = {name: flag_of(one) for verb in VERBS.values() for name, one in options_of(verb.options).items()}
FLAGS |= {name: f"--{name.replace('_', '-')}" for verb in VERBS.values() for name in verb.refused}
ARGUMENTS = {name for verb in VERBS.values() for name, one in options_of(verb.options).items() if one.argument}
ANYWHERE = {name for verb in VERBS.values() for name in options_of(verb.options)} - ARGUMENTS
CASES = [(verb, name) for verb in VERBS for name in FLAGS if name in {*ANYWHERE, *VERBS[verb].refused}]


def command_of(verb: str) -> click.Command:
    """The command of those words."""
    first, *rest = verb.split()
    found = LazyGroup("harness").get_command(click.Context(LazyGroup("harness")), first)
    assert found is not None
    if rest:
        assert isinstance(found, click.Group)
        return found.commands[rest[0]]
    return found


@pytest.mark.parametrize(("verb", "name"), CASES, ids=[f"{verb}-{name}" for verb, name in CASES])
def test_both_doors_take_an_option_or_refuse_it_in_one_sentence(verb: str, name: str) -> None:
    option = options_of(VERBS[verb].options).get(name)
    command, function = command_of(verb), PYTHON[verb]
    if option is not None and name not in VERBS[verb].refused:
        known = {one.name for one in command.params}
        assert name in known
        assert name in inspect.signature(getattr(function, "func", function)).parameters
        return
    if FLAGS[name] in {flag for one in command.params for flag in one.opts}:
        return  # a flag of that name means something else here, as --serve of a judge, or is hidden and refused
    done = CliRunner().invoke(cli, [*verb.split(), FLAGS[name], "x"])
    assert isinstance(done.exception, UsageError), (done.exception, done.output)
    with pytest.raises(UsageError) as refused:
        function(**{name: "x"})
    marked = Sentence(refused.value.sentence).marked
    spelt = worded(marked, lambda other, _: FLAGS.get(other, f"--{other.replace('_', '-')}"))
    assert str(done.exception.sentence) == spelt
    assert spelt.startswith(f"{FLAGS[name]}: ")


def test_help_says_what_an_option_means_to_the_verb() -> None:
    helps = {
        verb: {one.name: one.help for one in command_of(verb).params if isinstance(one, click.Option)} for verb in VERBS
    }
    assert "candidate may use at most" in helps["race"]["samples"]
    assert "of each repeat" in helps["experiment repeats"]["samples"]
    assert "with --real" in helps["experiment samples"]["seed"]
    assert "named as in aime24:64" in helps["run"]["samples"]
    assert len({helps[verb]["out"] for verb in ("run", "race", "experiment repeats", "sweep", "score")}) == 5
