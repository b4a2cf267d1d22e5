"""Which program a reply gives."""

from __future__ import annotations

import pytest

from harness.extensions.answers.program.grading import program_of
from harness.extensions.answers.program.tests_of import QuestionTests
from tests.client.work import grows_linearly

WHOLE = QuestionTests(style="stdin")
STARTER = "import math\n\ndef helper():\n    return 1\n\ndef f(x):\n    '''Doc.'''\n"
HELPERS = "import math\n\ndef helper():\n    return 1\n\n\n"
FUNCTION = QuestionTests(style="checks", function="f", starter=STARTER)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("```python\nprint(1)\n```", "print(1)"),
        ("first\n```\nprint(1)\n```\nbetter\n```py\nprint(2)\n```\nDone.", "print(2)"),
        ("<think>```python\nprint(1)\n```</think>\n```python\nprint(2)\n```", "print(2)"),
        ("<think>```python\nprint(1)\n```", None),
        ("print(1)", None),
        ("```python\nprint(1)", None),
        ("```python\n```", None),
        ("", None),
        (None, None),
    ],
)  # fmt: skip
def test_a_whole_program_stands_between_the_last_two_fences(reply: str | None, code: str | None) -> None:
    program = program_of(reply, WHOLE)
    assert (None if program is None else program.code) == code
    if reply is not None and program is not None:
        assert reply[program.start : program.end] == code


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("```python\ndef f(x):\n    return 2\n```", HELPERS + "def f(x):\n    return 2"),
        ("```python\n    return 2\n```", STARTER + "    return 2"),
        ("    return 2\n", STARTER + "    return 2\n"),
        ("```python\ndef f(x):\n    return 2\n```\nFor instance:\n```python\nf(3)\n```",
         HELPERS + "def f(x):\n    return 2"),
        ("```python\ndef f(x):\n    return 2\n", HELPERS + "def f(x):\n    return 2\n"),
        ("I cannot.", None),
    ],
)  # fmt: skip
def test_a_function_is_joined_with_its_starter_code(reply: str, code: str | None) -> None:
    program = program_of(reply, FUNCTION)
    assert (None if program is None else program.code) == code


def test_a_reply_of_very_many_fences_takes_linear_time() -> None:
    assert grows_linearly(lambda n: program_of("```\n" * n, FUNCTION), 2000)
    assert grows_linearly(lambda n: program_of("```\nx\n" * n, WHOLE), 2000)
