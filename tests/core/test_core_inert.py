"""Foreign text made harmless."""

from __future__ import annotations

import csv
import io
import sys
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from harness.core.sanitize import MAX_NAME_BYTES, csv_cell, safe_name, visible
from tests.budget import examples

ANY_TEXT = st.text(st.characters(exclude_categories=()))
pytestmark = pytest.mark.fuzz

EXAMPLES = examples(300)


def several(*cases: Any) -> Callable[[Any], Any]:
    """An `example` of each case; a tuple holds the arguments."""

    def decorated(test: Any) -> Any:
        for case in cases:
            test = example(*(case if isinstance(case, tuple) else (case,)))(test)
        return test

    return decorated


RESERVED = {"con", "prn", "aux", "nul", "com1", "lpt9"}


@given(ANY_TEXT)
@several(
    "../../x", "/etc", "-rf", "CON", "nul.txt", "x" * 300, "a\0b", "..", "", "练" * 300, "练习\u202e50", "e\u0301" * 60
)
@settings(max_examples=EXAMPLES)
def test_a_safe_name_is_one_plain_component(name: str) -> None:
    safe = safe_name(name)
    assert all(unicodedata.category(c)[0] in "LMN" or c in "._+-" for c in safe)
    assert unicodedata.normalize("NFC", safe) == safe
    assert safe[0] not in ".-"
    assert len(safe.encode()) <= MAX_NAME_BYTES
    assert safe.split(".")[0].lower() not in RESERVED
    assert not safe.endswith((".", ".tmp"))


LIKE = st.text(st.sampled_from("eE\u00e9\u00c9\u0301\u0131iI\u212aKk\u00dfs\u30ab\uff76\u4e60\u115f\ufe0f"), max_size=3)


def _as_file_systems_compare(name: str) -> str:
    """A name as a file system compares it that ignores case, composition and characters that are not shown."""
    shown = "".join(c for c in name if c not in "\u115f\ufe0f")
    return unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", shown).upper().casefold())


@given(ANY_TEXT | LIKE, ANY_TEXT | LIKE)
@example("\u00e9", "e\u0301")
@example("\u4e60", "\u4e60\ufe0f")
@settings(max_examples=EXAMPLES)
def test_two_names_get_two_folders_even_where_case_is_ignored(one: str, other: str) -> None:
    assume(one != other)
    assert _as_file_systems_compare(safe_name(one)) != _as_file_systems_compare(safe_name(other))


@pytest.mark.parametrize(
    "name", ["aime24", "gpqa-diamond", "math_500", "qwen3-0.6b", "c++", "练习50", "exercices-français", "हिंदी", "かな"]
)
def test_a_plain_name_stays_as_it_is(name: str) -> None:
    assert safe_name(name) == name


def test_a_name_is_in_ascii_where_file_names_are_not_utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "iso8859-1")
    assert safe_name("练习50") == "50-81530532"


@given(ANY_TEXT, st.none() | st.integers(0, 20))
@several(*((text, None) for text in ("\x1b]52;c;aGk=\x07", "\x9b31m", "\u202eevil\u2066", "a\r\nb\u2028c\x85d")))
@settings(max_examples=EXAMPLES)
def test_visible_text_cannot_drive_a_terminal(text: str, limit: int | None) -> None:
    shown = visible(text, limit)
    assert not any(unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in shown)
    shown.encode()
    assert len(shown.splitlines()) <= 1


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_ordinary_text_is_shown_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_escapes_and_clipping_are_seen() -> None:
    assert visible("\x1b[31m") == r"\x1b[31m"
    assert visible("a\nb") == r"a\nb"
    assert visible("\u202e\ud800") == r"\u202e\ud800"
    assert visible("abcdef", 3) == "abc…"
    assert visible("abc", 3) == "abc"


@given(ANY_TEXT)
@several("=cmd()", "\t=1", "@SUM(1)")
@settings(max_examples=EXAMPLES)
def test_a_cell_never_starts_a_formula_and_keeps_its_text(text: str) -> None:
    cell = csv_cell(text)
    assert cell[:1] not in {"=", "+", "-", "@", "\t", "\r", "\n"} or Decimal(text).is_finite()
    assert cell.removeprefix("'") == text.removeprefix("'")


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3), st.sampled_from(["", "+", "-"]))
def test_a_number_stays_a_number_and_arithmetic_does_not(number: Decimal, sign: str) -> None:
    for text in (f"{sign}{abs(number):f}", f"{sign}{abs(number):.4e}"):
        assert csv_cell(text) == text
    for text in (f"{number:+f}+1", f"{number:+f} cm", f"+{number:+f}", f"{number:+f}\n"):
        assert csv_cell(text) == f"'{text}"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_cell_survives_a_csv_file(text: str) -> None:
    file = io.StringIO(newline="")
    csv.writer(file, quoting=csv.QUOTE_ALL).writerow([csv_cell(text)])
    file.seek(0)
    assert next(csv.reader(file)) == [csv_cell(text)]
