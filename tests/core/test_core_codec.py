"""JSON that carries every text, and the digests, seeds and exit codes that must not change.

For: harness.core.installation, harness.core.reply_notes.
"""

from __future__ import annotations

import contextlib
import json
import random
import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import harness
from harness.core import codec, installation
from harness.core.codec import digest, sample_seed
from harness.core.reply_notes import ending

ANY_TEXT = st.text(st.characters(exclude_categories=())).map(
    lambda text: text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
    max_leaves=10,
)


@given(VALUES)
@example("\ud800")
@example({"\udfff": ["\u2028"]})
def test_a_value_comes_back_equal_from_one_line(value: Any) -> None:
    line = codec.encode(value)
    assert b"\n" not in line
    assert codec.decode(line) == value
    assert json.loads(line) == value


@given(st.binary())
@example(b"\xff")
@example(b'"\\ud800')
@example(b'"\\ud800" x')
@example(b'{"a":"\\ud800"')
def test_foreign_bytes_give_a_value_or_our_error(data: bytes) -> None:
    with contextlib.suppress(codec.DecodeError):
        json.dumps(codec.decode(data))


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b"[" * 100_000 + b'"\\ud800"',
        b'{"a":' * 100_000,
        b"1" * 5000,
        b'["\\ud800",' + b"1" * 5000 + b"]",
    ],
    ids=["arrays", "arrays and a surrogate", "objects", "long number", "long number and a surrogate"],
)
def test_deep_and_long_input_gives_our_error(data: bytes) -> None:
    with pytest.raises(codec.DecodeError):
        codec.decode(data, dict[str, int])


class Row(msgspec.Struct):
    name: str
    verdict: Literal["right", "wrong"] | None = None


@pytest.mark.parametrize(
    ("type", "data", "sentence"),
    [
        (Row, '{"name": "a", "verdict": "yes"}', "verdict: unknown value 'yes'; expected right, wrong or null"),
        (
            dict[str, list[Row]],
            '{"a": [{"name": "\\ud800", "verdict": "yes"}]}',
            "[...][0].verdict: unknown value 'yes'; expected right, wrong or null",
        ),
        (Literal["a", "b"], '"c"', "unknown value 'c'; expected a or b"),
        (Row, '{"name": 1}', "name: expected text, found a whole number"),
        (Row, "[]", "expected a mapping, found a list"),
        (Row, "{}", "missing required field `name`"),
    ],
)
def test_a_mistake_is_told_in_words_with_the_values_that_a_field_may_have(type: Any, data: str, sentence: str) -> None:
    with pytest.raises(codec.DecodeError) as error:
        codec.decode(data, type)
    assert str(error.value) == sentence


# -- digests, seeds, exit codes and finish reasons ---------------------------------------------------------------------


def test_a_digest_is_the_same_on_every_machine() -> None:
    assert digest({"b": [1, None], "a": "é"}) == "9b10bedce64e86a275540261fbe95bc6c195bfb10d5def7a5fc12eefcc7d0a87"


@given(st.dictionaries(st.text(), st.integers() | st.text()), st.randoms())
def test_the_order_of_fields_is_no_part_of_a_digest(value: dict[str, object], chance: random.Random) -> None:
    items = list(value.items())
    chance.shuffle(items)
    assert digest(dict(items)) == digest(value)


@given(st.integers(), st.text(st.characters(exclude_categories=())), st.integers(0, 10**6))
def test_a_seed_fits_31_bits_and_is_never_0(run_seed: int, question_id: str, index: int) -> None:
    assert 1 <= sample_seed(run_seed, question_id, index) < 2**31


def test_seeds_are_the_same_for_every_resume_and_differ_between_samples() -> None:
    seeds = {sample_seed(r, q, i) for r in (0, 1) for q in ("a", "b", "a1") for i in range(200)}
    assert len(seeds) == 1200
    assert sample_seed(1, "a", 0) == 337574673


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("stop STOP eos end_turn", "end"),
        ("length MAX_TOKENS model_length max_output_tokens", "cut"),
        ("abort network_error insufficient_system_resource", "break"),
        ("content_filter SAFETY sensitive", "filter"),
        ("repetition lengthy", "unknown"),
    ],
)
def test_a_finish_reason_is_recognized_in_either_case(words: str, says: str) -> None:
    assert {ending(word) for word in words.split()} == {says}
    assert ending("") == "unknown"


CHECKOUT = Path(harness.__file__).parent.parent


def test_the_front_door_and_the_build_read_the_same_version() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    read_from = CHECKOUT / project["tool"]["hatch"]["version"]["path"]
    assert read_from.samefile(installation.__file__)
    assert harness.__version__ == installation.__version__


def test_the_folders_of_cache_and_state_are_our_own_else_those_of_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = "~/.cache/reasoning-harness"
    cases = ("", "", ours), ("/own", "/xdg", "/own"), ("~/own", "", "~/own"), ("", "relative", ours)
    for own, xdg, folder in (*cases, ("", "/xdg", "/xdg/reasoning-harness")):
        for kind, function, home in (
            ("CACHE", installation.cache_folder, ".cache"),
            ("STATE", installation.state_folder, ".local/state"),
        ):
            monkeypatch.setenv(f"HARNESS_{kind}", own)
            monkeypatch.setenv(f"XDG_{kind}_HOME", xdg)
            assert function() == Path(folder.replace(".cache", home)).expanduser()


def test_two_builds_that_differ_anywhere_have_other_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "PACKAGE", tmp_path)
    (tmp_path / "one.py").write_text("X = 1\n")
    first = installation.build()
    (tmp_path / "one.py").write_text("X = 2\n")
    assert first.startswith(f"{installation.__version__}+")
    assert installation.build() != first
