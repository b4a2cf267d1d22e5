"""Times with a part of the day in Chinese (下午3时30分): all pairs, those of two different times never accepted.

For: harness.answers.grammar.spellings, harness.grading.compare, harness.grading.
"""

from __future__ import annotations

from itertools import product

import pytest

import harness
from tests.budget import share_of

_PARTS = {"凌晨": range(1, 7), "早上": range(5, 12), "上午": range(6, 12), "下午": range(13, 19), "晚上": range(18, 24)}
_TIMES = [
    (hour, f"{part}{spelled}点{minute}分", minute)
    for part, hours in _PARTS.items()
    for hour in hours
    for spelled in {hour, hour - 12 if hour > 12 else hour}
    for minute in (5, 30)
]


def _grade(reference: str, answer: str) -> str:
    return harness.grade(reference, f"\\boxed{{{answer}}}").outcome


@pytest.mark.slow
def test_two_times_are_equal_only_at_one_minute_of_one_hour() -> None:
    differing = [
        (left, right)
        for (hour, left, minute), (other, right, other_minute) in share_of(product(_TIMES, _TIMES))
        if (_grade(left, right) == "correct") != ((hour, minute) == (other, other_minute))
    ]
    assert differing == []


def test_twelve_at_night_is_no_noon() -> None:
    for night in ("晚上12点5分", "凌晨12点5分", "晚上0点5分", "上午12点5分"):
        assert _grade("12:05 p.m.", night) != "correct"
        assert _grade(night, "下午12点5分") != "correct"
        assert _grade(night, "12:05") != "correct"


def test_a_part_of_the_day_and_an_hour_outside_it_are_no_time() -> None:
    assert _grade("15:30", "上午15时30分") != "correct"
    assert _grade("3:30 p.m.", "凌晨15时30分") != "correct"


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("3:2", "3点2分"),
        ("5:3", "五点三分"),
        ("3点2分", "3:2"),
        ("3:2", "3:02"),
        ("3:2", "下午3点2分"),
        ("1/10", "3点30分"),
    ],
)
def test_a_time_of_day_is_no_ratio(reference: str, answer: str) -> None:
    assert _grade(reference, answer) == "undecided"


@pytest.mark.parametrize(
    ("reference", "answer"),
    [("9:05", "九点五分"), ("9点5分", "9:05"), ("21:08", "晚上9点8分"), ("9:08 p.m.", "9:08"), ("三点半", "$3:30$")],
)
def test_minutes_of_two_digits_beside_a_colon_are_a_time(reference: str, answer: str) -> None:
    assert _grade(reference, answer) == "correct"
    assert _grade(reference, "8点5分") == "wrong"


FORMS = ("{}{}：{:02}", "{}{}:{:02}", "{}{}点{}分", "{}{}时{}分")


def test_a_colon_of_full_width_is_a_colon() -> None:
    # 3:30 alone may be meant in the afternoon, and 上午15:30 is no time.
    written = [("下午", 3), ("", 15), ("上午", 3), ("凌晨", 3), ("下午", 2), ("", 14)]
    for reference, form in product(("15:30", "15：30", "下午3时30分", "下午3：30", "15时30分"), FORMS):
        for (part, hour), minute in product(written, (30, 20, 3)):
            answer = form.format(part, hour, minute)
            is_right = minute == 30 and (part, hour) in written[:2]
            assert (_grade(reference, answer) == "correct") == is_right, (reference, answer)
            if part and not is_right:
                assert _grade(reference, answer) == "wrong", (reference, answer)
    assert _grade("9时20分", "9：20") == _grade("9：20", "9点20分") == "correct"
    assert _grade("9时20分", "9：02") == "wrong"


def test_the_morning_begins_at_one() -> None:
    for answer in ("上午3点30分", "上午3:30", "上午3：30", "上午3点半"):
        assert _grade("15:30", answer) == "wrong"
        assert _grade("3:30", answer) == _grade("凌晨3点半", answer) == "correct"


def test_an_hour_counted_to_12_may_be_one_after_noon() -> None:
    forms = ("{}:{:02}", "{}点{}分", "{}时{}分")
    for hour, minute, form, reference in product((1, 4, 11), (5, 30, 32), forms, forms):
        answer, case = form.format(hour, minute), (hour, minute, form, reference)
        assert _grade(reference.format(hour + 12, minute), answer) == "undecided", case
        # 5 minutes may be the second number of a ratio.
        assert minute == 5 or _grade(reference.format(hour + 11, minute), answer) == "wrong", case
        assert _grade(f"下午{hour}:{minute:02}", answer) == "correct", case
    assert _grade("16:30", "4时30分") == "undecided"
    assert _grade("16:30", "四点半") == "undecided"
    for wrong in ("5点半", "4:20", "上午4:30", "凌晨4点半"):
        assert _grade("16:30", wrong) == "wrong"


def test_noon_and_night_name_their_half_of_the_day() -> None:
    hours = {("中午", 11): 11, ("中午", 12): 12, ("中午", 1): 13, ("夜里", 11): 23, ("夜里", 9): 21, ("夜里", 2): 2}
    for (part, shown), hour in hours.items():
        for minute in (5, 30):
            time, written = f"{hour}:{minute:02}", f"{part}{shown}点{minute}分"
            assert _grade(written, time) == _grade(time, written) == "correct", written
            # An hour that is counted to 12 may be meant in the same half.
            assert hour > 12 or _grade(written, f"{(hour + 12) % 24}:{minute:02}") == "wrong", written
            assert _grade(written, f"{part}{shown}:{minute:02}") == _grade(written, f"{part}{shown}时{minute}分")
    assert _grade("中午12:30", "12:30") == "correct"
    # Whether 7:10 is meant on the day that the other side names is not read.
    assert _grade("第二天7:10", "7:10") == _grade("7:10", "第二天7:10") == "undecided"
    assert _grade("第二天7:10", "8:10") != "correct"
