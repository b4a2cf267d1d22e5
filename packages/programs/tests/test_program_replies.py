"""Which program a reply gives.

For: reasoning_programs.replies.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable

import pytest
from markdown_it import MarkdownIt

from reasoning_programs import replies
from reasoning_programs.replies import program_of
from reasoning_programs.tests_of import QuestionTests

EXAMPLES = 60
WHOLE = QuestionTests(style="stdin")
STARTER = "import math\n\ndef helper():\n    return 1\n\ndef f(x):\n    '''Doc.'''\n"
HELPERS = "import math\n\ndef helper():\n    return 1\n\n\n"
FUNCTION = QuestionTests(style="checks", function="f", starter=STARTER)

PROGRAMS = {
    "reads": (WHOLE, "import sys\n\nn = int(sys.stdin.readline())\nprint(n + NUMBER)"),
    "branches": (WHOLE, "n = int(input())\nif n > NUMBER:\n    print('a')\n\nelse:\n    print('\\d')\n# end\nprint(n)"),
    "class": (
        WHOLE,
        "@property\ndef f(x):\n    # half\n\n    return x\n\nclass A:\n    def run(self):\n        return NUMBER",
    ),
    "function": (
        FUNCTION,
        "def f(x):\n    '''Of x.\n\n    f(1)\n    '''\n    y = [\n        x,\n    ]\n    return NUMBER",
    ),
}
"""Kind → its tests and a program, with a number in the place of NUMBER."""

MARKDOWN = [
    "```python\n@\n```",
    "Here:\n\n~~~\n@\n~~~\nDone.",
    '````py title="x"\n@\n````\n',
    "  ```Python3\n{  }@\n  ```",
    "1. We read it.\n2. So:\n   ```python\n{   }@\n   ```\n3. Done.",
    "- ```\n{  }@\n  ```",
    "> As asked:\n> ```python\n{> }@\n> ```",
    "* a\n\n  > ~~~~python\n{  > }@\n  > ~~~~\n",
    "```python\n@\n",
    "~~~~ python\n@\n~~~~~~\n```",
]
"""Replies whose program stands in a block of Markdown, in the place of @; {…}: what its lines begin with."""

OTHERS = [
    "@",
    "Sure! This is it:\n\n@\n\nIt prints the sum.",
    "Code:\n@\nThis takes O(n).",
    "@\n```\nDone.",
    "It is:```python\n@\n```",
    "```python\n@```\nSo it ends.",
    "The code is ```\n@ ```.",
    "- ```python\n@\n```",
    "Solution\n\n{    }@\n\nComplexity: O(n)",
    "<code>\n@\n</code>",
    "```python\n@\n\nThat is all.",
]
"""Replies whose program stands in no block of Markdown, or not alone there."""

BEHIND = [
    "",
    "",
    "\nOutput:\n```\n5\n```",
    "\n\n```bash\npython main.py\n```",
    "\n\n```console\n$ python main.py\nf(3)\n```",
    "\n\n```output\nYES 3\n```\nDone.",
    "\n\n~~~text\nf(5)\n~~~",
    "\n\n```js\nf(3)\n```",
    "\n\nUse `f(x)`.",
]
"""What may follow."""


def filled(form: str, code: str) -> str:
    """The form with the code in its place."""
    before = re.search(r"\{(.*?)\}@", form)
    lines = "\n".join(f"{before[1]}{line}" for line in code.split("\n")) if before else code
    return re.sub(r"(?:\{.*?\})?@", lambda _: lines, form, count=1)


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_right_program_is_found_in_every_form(kind: str) -> None:
    draw = random.Random(seed := random.randrange(10**6))
    tests, form = PROGRAMS[kind]
    for _ in range(EXAMPLES):
        code, draft = (form.replace("NUMBER", str(draw.randint(1, 99))) for _ in range(2))
        shape = draw.choice(MARKDOWN + OTHERS)
        text = filled(shape, code)
        # Behind a fence that is open, all is code.
        text += draw.choice(BEHIND) if text.count("```") % 2 == 0 and "~~~" not in text else ""
        drafts = [f"A draft:\n```python\n{draft}\n```\nBetter:\n"] * ("```" in shape or "~~~" in shape)
        before = draw.choice(["", "Think.\n\n", *drafts])
        text = before + text
        program = program_of(text, tests)
        assert program is not None, (seed, text)
        assert program.code.replace(HELPERS, "").strip() == code.strip(), (seed, text)


def test_blocks_are_those_of_a_parser_of_markdown() -> None:
    draw = random.Random(seed := random.randrange(10**6))
    for _ in range(4 * EXAMPLES):
        shapes = draw.choices(MARKDOWN[:-2], k=draw.randint(1, 4))
        text = "\n\nThen\n\n".join(filled(shape, "a = 1\n\nif a:\n    b") for shape in shapes)
        theirs = [token.content.rstrip() for token in MarkdownIt().parse(text) if token.type == "fence"]
        assert [block.code.rstrip() for block in replies._fenced(text)] == theirs, (seed, text)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("first\n```\nprint(1)\n```\nbetter\n```py\nprint(2)\n```\nDone.", "print(2)"),
        ("```python\nprint(1\n```\nBetter\n```\nprint(2\n```", "print(2"),
        ("```python\nprint(1\nprint(2)\n```", "print(1\nprint(2)"),
        ("I cannot. Sorry", None),
        ("The answer is 5.\n\n5\n\nx: int", None),
        ("```python\n```", None),
        ("", None),
        (None, None),
    ],
)
def test_the_last_program_counts_and_a_broken_one_is_run_whole(reply: str | None, code: str | None) -> None:
    program = program_of(reply, WHOLE)
    assert (None if program is None else program.code) == code
    if reply is not None and program is not None:
        assert reply[program.start : program.end] == code


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("```python\n    return 2\n```", STARTER + "    return 2"),
        ("    return 2\n", STARTER + "    return 2\n"),
        ("    return 2\n\nIt is two.", STARTER + "    return 2\n\n"),
        (
            "```python\ndef f(x):\n    return 2\n```\nFor instance:\n```python\nf(3)\n```",
            HELPERS + "def f(x):\n    return 2",
        ),
        ("I cannot.", None),
    ],
)
def test_a_function_is_joined_with_its_starter_code(reply: str, code: str | None) -> None:
    program = program_of(reply, FUNCTION)
    assert (None if program is None else program.code) == code


@pytest.mark.parametrize("tests", [WHOLE, FUNCTION], ids=["whole", "function"])
@pytest.mark.parametrize(
    "reply",
    [
        lambda n: "```\n" * n,
        lambda n: "```\nx\n" * n,
        lambda n: "> " * n + "```",
        lambda n: "@a\n" * n,
        lambda n: "a\n\n b\n" * n,
        lambda n: "a ``` b" * n,
        lambda n: "- " * n + "a```" * n,
    ],
)
def test_a_long_reply_takes_linear_time(reply: Callable[[int], str], tests: QuestionTests) -> None:
    # Sixteen times the work; quadratic work would take 256 times as long.
    assert _seconds(reply(4_000), tests) < 80 * max(_seconds(reply(250), tests), 0.0005)


def _seconds(reply: str, tests: QuestionTests) -> float:
    """The least CPU time of three readings of the reply."""
    times = []
    for _ in range(3):
        began = time.thread_time()
        program_of(reply, tests)
        times.append(time.thread_time() - began)
    return min(times)
