"""A series of whole numbers as a person writes it: `8,16,32`, or `8,16,…,256`."""

from __future__ import annotations

MAX_NUMBERS = 10_000
"""Largest count of numbers that dots may stand for; a longer series is a typing mistake."""


def numbers_of(text: str) -> tuple[int, ...]:
    """The numbers in a text such as `8,16,32` or `8,16,…,256` (`...` means `…`).

    The dots continue the two numbers before them: by their ratio if that leads exactly to the number after the dots
    (8, 16, 32, …), else by their difference (8, 12, 16, …). Raises `ValueError` if neither leads there.
    """
    words = text.replace("...", "…").split(",")
    numbers: list[int] = []
    for index, word in enumerate(words):
        if word.strip() != "…":
            numbers.append(int(word))
            continue
        # Two numbers before the dots show the step, one after them the end.
        if index < 2 or index + 2 != len(words):
            raise ValueError(text)
        numbers += _numbers_between(numbers[-2], numbers[-1], int(words[-1]))
    return tuple(numbers)


def _numbers_between(first: int, second: int, last: int) -> list[int]:
    """The numbers that dots between `second` and `last` stand for, without these two."""
    if not 0 < first < second < last:
        raise ValueError(f"{first}, {second} … {last}")
    if second % first == 0:
        ratio = second // first
        between = []
        number = second * ratio
        while number < last:
            between.append(number)
            number *= ratio
        if number == last:
            return between
    step = second - first
    if (last - second) % step or (last - second) // step > MAX_NUMBERS:
        raise ValueError(f"{first}, {second} … {last}")
    return list(range(second + step, last, step))
