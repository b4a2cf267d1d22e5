"""Math-Verify's two functions, with its options.

For: reasoning_answers.compat.
"""

from __future__ import annotations

from typing import Any

import pytest
from asked import bare_rows, share_of

from reasoning_answers import compat
from reasoning_answers.compat import (
    ExprExtractionConfig,
    LatexExtractionConfig,
    StringExtractionConfig,
    parse,
    verify,
)


@pytest.mark.parametrize(
    ("gold", "reply", "right"),
    [
        ("$\\frac{1}{2}$", "The answer is $0.5$.", True),
        ("${1,3} \\cup {2,4}$", "so \\boxed{\\{1,2,3,4\\}}", True),
        ("\\boxed{7}", "It is 8, so \\boxed{8}", False),
        ("B", "I choose (B).", True),
        ("7", "", False),
    ],
)
def test_the_line_of_its_readme(gold: str, reply: str, right: bool) -> None:
    assert verify(parse(gold), parse(reply)) is right


def test_a_pair_has_the_verdict_of_grade() -> None:
    for row in share_of(bare_rows()[::4]):  # all are graded in test_answers_functions
        assert verify(parse(row.reference), parse(row.reply)) == (row.says == "correct"), row


def test_lists_and_texts_are_compared_each_with_each() -> None:
    assert verify(["1", "2"], "2.0")
    assert verify(parse("3"), ["x", "3"])
    assert not verify([], ["3"])


def test_what_is_parsed_is_the_answer_as_it_is_written() -> None:
    assert parse("so $x = \\boxed{\\frac12}$") == ["\\frac12"]
    assert parse("two\nlines") == []
    assert (parse("words"), parse("", fallback_mode="first_match")) == (["words"], [])
    anchored = (LatexExtractionConfig(try_extract_without_anchor=False),)
    assert (parse("so 5 and\n 6", anchored), parse("\\boxed{6}", anchored)) == ([], ["6"])
    letters = (StringExtractionConfig(("A", "B", "C")),)
    assert verify(parse("B", letters), parse("The answer is (b).", letters))


def test_a_reference_that_cannot_be_read_is_false_or_raises() -> None:
    assert not verify("", "1")
    with pytest.raises(ValueError, match="the reference answer"):
        verify("", "1", raise_on_error=True)


@pytest.mark.parametrize(("option", "value"), [("float_rounding", 3), ("numeric_precision", 30), ("strict", False)])
def test_an_option_without_an_equivalent_is_refused_by_name(option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{option}={value!r} has no equivalent"):
        verify("1", "1", **{option: value})


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (LatexExtractionConfig(boxed_match_priority=-1), "boxed_match_priority"),
        (LatexExtractionConfig(normalization_config=object()), "normalization_config"),
        (StringExtractionConfig(("yes", "no")), "strings"),
        (StringExtractionConfig(lowercase=False), "lowercase"),
    ],
)
def test_a_configuration_without_an_equivalent_is_refused_by_name(config: compat.ExtractionConfig, named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}="):
        parse("1", (config, ExprExtractionConfig()))
