"""Math-Verify's functions, with its options.

For: reasoning_answers.compat.
"""

from __future__ import annotations

import pickle  # noqa: TID251 - of what the test has made
from typing import Any

import numpy as np
import pytest
import sympy
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


def test_what_is_parsed_is_the_answer_as_it_is_written_twice() -> None:
    assert parse("so $x = \\boxed{\\frac12}$") == ["\\frac12"] * 2
    assert parse("two\nlines") == parse("the proof is complete") == []
    assert (parse("words"), parse("", fallback_mode="first_match")) == (["words"] * 2, [])
    anchored = (LatexExtractionConfig(try_extract_without_anchor=False),)
    assert (parse("so 5 and\n 6", anchored), parse("\\boxed{6}", anchored)) == ([], ["6"] * 2)
    letters = (StringExtractionConfig(("A", "B", "C")),)
    assert verify(parse("B", letters), parse("The answer is (b).", letters))


def test_parsed_answers_are_equal_where_their_values_are() -> None:
    half, other = parse("\\boxed{\\frac12}")[0], parse("\\boxed{0.50}")[0]
    assert (half, {half: 1}.get(other), half == parse("\\boxed{0.51}")[0]) == (other, 1, False)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_parsed_answers_are_pickled_with_their_replies(protocol: int) -> None:
    doubtful = pickle.loads(pickle.dumps(parse("\\boxed{1} or maybe \\boxed{2}"), protocol))
    assert not verify(parse("2"), doubtful)
    assert verify(parse("$12$"), pickle.loads(pickle.dumps(parse("so \\boxed{12}"), protocol)))


@pytest.mark.parametrize(
    ("value", "right", "wrong"),
    [
        (42, "42", "43"), (0.5, "1/2", "1/3"), (np.float64(0.5), "1/2", "2"), (np.array([1, 2]), "[1, 2]", "[2, 1]"),
        (sympy.Rational(1, 2), "0.5", "0.6"), (sympy.sqrt(8), "2\\sqrt{2}", "2"),
        (sympy.FiniteSet(1, 2), "\\{2, 1\\}", "1"),
    ],
)  # fmt: skip
def test_numbers_and_values_of_numpy_and_sympy_are_answers(value: Any, right: str, wrong: str) -> None:
    replies = [parse(f"\\boxed{{{answer}}}") for answer in (right, wrong)]
    assert [verify([value], reply) for reply in replies] == [True, False]
    assert [verify(parse(value), reply) for reply in replies] == [True, False]


def test_nothing_is_no_answer() -> None:
    assert parse(None) == []
    assert not verify([None], parse("1"))


def test_strings_are_words_of_a_list() -> None:
    words = (StringExtractionConfig(strings=("yes", "no")),)
    yes, no = (parse(text, words) for text in ("The answer is yes.", "The answer is no."))
    assert (verify(parse("yes", words), yes), verify(parse("yes", words), no)) == (True, False)
    assert parse("The answer is green.", words) == []


def test_rounding_and_names_of_variables_are_as_asked() -> None:
    reply = parse("\\boxed{3.141}")
    assert [verify(parse("$3.14$"), reply, float_rounding=places) for places in (6, 2)] == [False, True]
    assert not verify(parse("$3.14$"), parse("\\boxed{3.2}"), float_rounding=2)
    pairs = [parse(text) for text in ("$x+1$", "\\boxed{a+1}", "\\boxed{a+2}", "\\boxed{a+b}")]
    assert [verify(pairs[0], other, strict=False) for other in pairs[1:]] == [True, False, False]
    assert not verify(*pairs[:2])


def test_the_metric_scores_replies_and_names_their_answers() -> None:
    from reasoning_answers.compat.errors import TimeoutException
    from reasoning_answers.compat.metric import math_metric

    measured = pickle.loads(pickle.dumps(math_metric((LatexExtractionConfig(),))))
    assert measured(["\\boxed{7}"], ["no", "I get \\boxed{7}"]) == (1.0, (["7"], ["no", "7"]))
    assert measured(["\\boxed{7}"], ["\\boxed{8}"])[0] == 0.0
    assert issubclass(TimeoutException, Exception)


def test_a_reference_that_cannot_be_read_is_false_or_raises() -> None:
    assert not verify("", "1")
    with pytest.raises(ValueError, match="the reference answer"):
        verify("", "1", raise_on_error=True)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (LatexExtractionConfig(boxed_match_priority=-1), "boxed_match_priority=-1 has no effect"),
        (StringExtractionConfig(lowercase=False), "lowercase=False has no effect"),
        (LatexExtractionConfig(normalization_config=object(), boxed_match_priority=0), ""),
    ],
)
def test_an_option_that_could_change_a_verdict_is_told_once(
    config: compat.ExtractionConfig, said: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compat, "_told", set())
    for _ in range(2):
        assert verify(parse("1"), parse("1", (config, ExprExtractionConfig())))
    assert [record.getMessage().partition(" in ")[0] for record in caplog.records] == [said] * bool(said)
