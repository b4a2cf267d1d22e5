"""A reply without a box states an answer by closed forms of sentences; no other sentence makes its number correct."""

from __future__ import annotations

import pytest

import harness
from tests.budget import examples
from tests.grading import sentences

SIZE = examples(4_000)
"""Number of generated sentences that state nothing; `make fuzz` may raise it."""


def outcome(reference: str, reply: str) -> str:
    return harness.grade(reference, reply).outcome


def test_a_sentence_that_states_no_answer_is_never_correct() -> None:
    accepted = [pair for pair in sentences.unstated(27, SIZE) if outcome(*pair) == "correct"]
    assert accepted == []


def test_a_sentence_that_states_the_answer_is_correct() -> None:
    refused = [pair for pair in sentences.stated() if outcome(*pair) != "correct"]
    assert refused == []


def test_a_sentence_that_states_no_answer_is_never_wrong() -> None:
    for reference, reply in sentences.unstated(28, SIZE // 4):
        grade = harness.grade(f"{reference} + 1", reply)
        assert grade.outcome != "correct", reply
        assert grade.outcome != "wrong" or grade.rule != "sentence", reply


def test_an_answer_that_is_corrected_behind_it_is_undecided() -> None:
    accepted = [pair for pair in sentences.repaired() if outcome(*pair) == "correct"]
    assert accepted == []


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("The answer is 56. Wait, I swapped the digits: it is 65.", "undecided"),
        ("The answer is 56. Wait, I swapped the digits. The answer is 65.", "wrong"),
        ("The answer is 65. Wait, I swapped the digits. The answer is 56.", "correct"),
        ("The answer is 56. No other number works.", "correct"),
        ("The answer is 56. I made a table of all 12 cases to check it.", "correct"),
        (r"So $2n = \boxed{56}$, and the answer is $28$.", "wrong"),
        (r"So $2n = \boxed{112}$, and the answer is $56$.", "correct"),
        (r"So $n = \boxed{56}$; the wrong answer is $28$.", "correct"),
    ],
)
def test_what_a_later_statement_decides(reply: str, answer: str) -> None:
    assert outcome("56", reply) == answer


def test_a_sentence_beside_the_statement_may_leave_it_open() -> None:
    pairs = list(dict.fromkeys(sentences.left_open()))
    assert [pair for pair in pairs if outcome(*pair) == "correct"] == []


def test_work_and_explanations_beside_the_statement_leave_it_standing() -> None:
    assert [pair for pair in sentences.left_standing() if outcome(*pair) != "correct"] == []


@pytest.mark.parametrize(
    ("reference", "right", "wrong"), [*sentences.CHINESE, *sentences.IN_WORDS], ids=lambda text: text[:12]
)
def test_a_sentence_and_its_wrong_twin(reference: str, right: str, wrong: str) -> None:
    assert outcome(reference, right) == "correct"
    assert outcome(reference, wrong) != "correct"


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("This answer is correct because the answer is 3.", "correct"),
        ("This answer is correct because the answer is 4.", "wrong"),
        ("There are 3 of them left to check.", "undecided"),
        ("There are 4 of them left to check.", "undecided"),
    ],
)
def test_what_a_sentence_decides(reply: str, answer: str) -> None:
    assert outcome("3", reply) == answer


@pytest.mark.parametrize("verb", ["is", "was", "must be", "has to be"])
def test_a_sentence_states_words_by_a_verb_of_stating(verb: str) -> None:
    assert outcome("London", f"The capital {verb} London.") == "correct"
    assert outcome("London", f"The capital {verb} Paris.") != "correct"


@pytest.mark.parametrize(
    "verb", ["cannot be", "could be", "might be", "must not be", "should never be", "would be", "is not"]
)
def test_a_sentence_with_another_verb_states_no_words(verb: str) -> None:
    assert outcome("London", f"The capital {verb} London.") != "correct"


@pytest.mark.parametrize(
    ("reference", "reply", "answer"),
    [
        ("27", "따라서 답은 27입니다.", "correct"),
        ("27", "따라서 답은 28입니다.", "wrong"),
        ("27", "したがって、答えは27です。", "correct"),
        ("27", "n が偶数なら、答えは27です。", "undecided"),
        ("27", "Итак, ответ: 27.", "correct"),
        ("27", "Если n чётно, ответ: 27.", "undecided"),
        ("27", "Por lo tanto, la respuesta es 27.", "correct"),
        ("27", "Si n=3, la respuesta es 27.", "undecided"),
        ("27", "Donc la réponse est 27.", "correct"),
        ("27", "Daher ist die Antwort 27.", "correct"),
        ("27", "Daher ist die Antwort nicht 27.", "undecided"),
        ("540", '"540" is my final answer.', "correct"),
    ],
)
def test_words_of_other_languages_that_lead_to_an_answer(reference: str, reply: str, answer: str) -> None:
    assert outcome(reference, reply) == answer


@pytest.mark.parametrize(("formula", "other"), [("3x^2 + 1", "3x^2 - 1"), ("2√5", "5√2"), ("x - y", "y - x")])
def test_a_formula_without_dollar_signs_is_stated_whole(formula: str, other: str) -> None:
    reference = formula.replace("√5", r"\sqrt{5}")
    for sentence in ("The area is {}.", "So the distance is {}", "Then the derivative is therefore {}."):
        assert outcome(reference, sentence.format(formula)) == "correct"
        assert outcome(reference, sentence.format(other)) == "wrong"
    for sentence in (
        "If so, the area is {}.", "The area is {} more.", "The area is not {}.", "The area is {} or 4x.",
        "Is the area {}?", "The old area is {}.", "His friend says that the area is {}.", "The area is {} at most.",
    ):  # fmt: skip
        assert outcome(reference, sentence.format(formula)) in ("undecided", "no_answer"), sentence
        assert outcome("7", sentence.format(formula)) in ("undecided", "no_answer"), sentence


_SUBJECTS = (
    "The area of the square", "So the volume of the cube", "Thus the sale price", "Therefore, the third angle",
    "The average speed of the car", "Hence the inner radius of the ring", "The circumference of the flower bed",
)  # fmt: skip
_UNITS_BEHIND = ("cm²", "m^2", "cm³", "yuan", "degrees", "km/h", "°C", "")
_LIMITED = (
    "{S} is not {v}.", "{S} is about {v}.", "{S} is at most {v}.", "{S} might be {v}.", "If it rains, {s} is {v}.",
    "He says that {s} is {v}.", "{S} is {v} more.", "{S} is {v} or so.", "{S} is {v}?", "Suppose {s} is {v}.",
    "Perhaps {s} is {v}.", "A student says {s} is {v}.", "I doubt that {s} is {v}.", "{S} is {v} in the first case.",
    "{S} would be {v}.", "{S} is between 3 and {v}.", "{S} seems to be {v}.", "{S} is likely to be {v}.",
    "{S} is half of {v}.", "{S} was {v} before.", "{S} is over {v}.", "{S} is {v}, if n is even.",
)  # fmt: skip
_ADJECTIVES = ("wrong", "original", "first", "possible", "estimated", "guessed", "other", "likely", "so-called", "half")


def test_a_quantity_with_any_plain_adjective_and_a_unit_is_stated_and_its_twins_are_not() -> None:
    accepted, refused = [], []
    for subject in _SUBJECTS:
        name = subject[subject.lower().find("the ") :]
        name = name[0].lower() + name[1:]
        for unit in _UNITS_BEHIND:
            for number in (7, 36):
                value = f"{number} {unit}".strip()
                stated = f"We compute 3 + 4 = 7. {subject} is {value}."
                refused += [] if outcome(value, stated) == "correct" else [stated]
                twins = [f"We compute. {form.format(S=subject, s=name, v=value)}" for form in _LIMITED]
                twins += [f"We compute. The {adjective} {name[4:]} is {value}." for adjective in _ADJECTIVES]
                twins.append(f"We compute. {subject} is {number + 1} {unit}.")
                accepted += [twin for twin in twins if outcome(value, twin) == "correct"]
    assert (refused, accepted) == ([], [])
