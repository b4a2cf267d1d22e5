"""A declaration of an option: what it lets in, what it says of the rest, by its keyword, and what it is to others."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import ValidationError

from harness.asking.options.score import OutputsOptions
from harness.core.errors import UNSET, UsageError, as_keyword
from harness.core.options import COMMAS, SEED, Option, Options, model_of, options_of
from harness.presets.grading import GradingOptions


class Place(Options):
    """Options that two verbs share."""

    out: Annotated[Path | None, Option("Folder.")] = None
    key: Annotated[str | None, Option("Key.", secret=True)] = None


class Racing(Place):
    """Options of one verb."""

    step: Annotated[int, Option("Rounds.", least=1, most=9)] = 2
    margin: Annotated[float | None, Option("Points.", least=0)] = None
    names: Annotated[tuple[str, ...], Option("Names.", chars=1, items=2)] = ()
    ids: Annotated[tuple[str, ...] | None, Option("Ids.", kind=COMMAS)] = None
    how: Annotated[Literal["a", "b"], Option("How.")] = "a"
    seed: Annotated[int | None, Option("Seed.", kind=SEED)] = 0
    file: Annotated[Path | None, Option("File.", file=True)] = None

    def _check(self) -> None:
        """Raise where step and margin do not go together."""
        super()._check()
        if self.step == 9 and self.margin == 9:
            raise UsageError("not with 9", field="step", value=9)


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"out": "a/b"}, "out", Path("a/b")),
        ({"step": 9}, "step", 9),
        ({"margin": 1}, "margin", 1.0),
        ({"names": "one"}, "names", ("one",)),
        ({"names": ["one", "two"]}, "names", ("one", "two")),
        ({"ids": "a, b,"}, "ids", ("a", "b")),
        ({"how": "b"}, "how", "b"),
        ({"seed": None}, "seed", None),
    ],
)
def test_a_value_that_fits_is_brought_to_its_type(given: dict[str, Any], name: str, value: object) -> None:
    racing = Racing(**given)
    assert getattr(racing, name) == value
    assert racing.given == {name: value}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"out": ""}, "out='': the path is empty"),
        ({"step": 0}, "step=0: expected a number greater than or equal to 1"),
        ({"step": 10}, "step=10: expected a number less than or equal to 9"),
        ({"step": True}, "step=True: expected a valid integer"),
        ({"step": "4"}, "step='4': expected a valid integer"),
        ({"margin": float("nan")}, "margin=nan: expected a finite number"),
        ({"margin": 1e13}, "margin=10000000000000.0: expected a number less than or equal to 1000000000000"),
        ({"names": ""}, "names='': expected at least 1 character"),
        ({"names": ["a", "b", "c"]}, "expected at most 2, found 3"),
        ({"how": "c"}, "how='c': expected 'a' or 'b'"),
        ({"stp": 3}, "unknown key 'stp'. Did you mean step?"),
        ({"file": "nowhere"}, "file='nowhere': there is no such file"),
        ({"step": 9, "margin": 9}, "step=9: not with 9"),
    ],
)
def test_a_value_that_does_not_fit_is_one_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        Racing(**given)
    assert sentence in str(refused.value)


def test_none_leaves_an_option_as_it_is_but_for_a_seed() -> None:
    assert dict(Racing.of(step=None, how=None, seed=None)) == dict(Racing(seed=None))
    assert Racing.of(seed=None).seed is None
    with pytest.raises(UsageError, match="step"):
        Racing(step=None)


def test_options_are_a_frozen_value() -> None:
    racing = Racing(step=3, key="sk-secret")
    assert racing == Racing(step=3, key="sk-secret") != Racing(step=4, key="sk-secret")
    assert "sk-secret" not in repr(racing)
    assert racing.but(step=4).given == {"key": "sk-secret", "step": 4}
    assert Racing(step=2, out="x").plain == {"out": "x"}
    with pytest.raises(AttributeError, match="frozen"):
        racing.step = 4  # type: ignore[misc]


def test_a_class_has_the_options_of_its_bases_first() -> None:
    assert list(options_of(Racing))[:3] == ["out", "key", "step"]
    assert options_of(Place).keys() == {"out", "key"}
    assert options_of(Racing)["how"].choices == ("a", "b")
    assert options_of(Racing)["ids"].accepts == "Texts | None"


_VALUES = (
    None, "", "a", "ä", "\ud800", 0, 1, -1, 10**13, 0.0, 0.5, -0.5, 1e13, math.nan, math.inf, True, 257, 3600.0, (),
)  # fmt: skip


@pytest.mark.parametrize("declared", [GradingOptions, OutputsOptions, Racing])
def test_what_is_let_in_without_pydantic_is_let_in_by_pydantic_as_it_is(declared: type[Options]) -> None:
    for name in options_of(declared):
        for value in _VALUES:
            try:
                checked = getattr(model_of(declared).model_validate({name: value}), name)
            except ValidationError:
                with pytest.raises(UsageError):
                    declared(**{name: value})
                continue
            try:
                taken = getattr(declared(**{name: value}), name)
            except UsageError:
                continue  # by the check of several options together
            assert taken == checked
            assert type(taken) is type(checked)


def test_an_error_shows_the_option_as_a_keyword_and_keeps_its_field() -> None:
    error = UsageError("expected 1 to 9; or give fit_context=True", field="samples", value="0 x")
    assert str(error) == error.sentence == "samples='0 x': expected 1 to 9; or give fit_context=True"
    assert (error.field, error.value) == ("samples", "0 x")
    assert UsageError("no such card").field is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (UNSET, "stop"),
        (None, "stop=None"),
        (("a",), "stop=['a']"),
        (Path("a"), "stop='a'"),
        ({"a": 1}, "stop={'a': 1}"),
    ],
)
def test_python_sees_a_keyword_argument(value: object, shown: str) -> None:
    assert as_keyword("stop", value) == shown
