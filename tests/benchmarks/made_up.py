"""Invented rows in the layouts of real benchmark files, with the traps that those files hold, and what a card reads.

The real files are other people's. Their layouts and traps are facts: names of columns, types of answers, an instruction
in the question, numbers with leading zeros, a list of one text, a line break as two characters.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

INSTRUCTION = "\nPlease reason step by step, and put your final answer within \\boxed{}."

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Layout:
    """A file of a benchmark. references: of each row, as its card reads them. ids: where the rows have their own."""

    card: str
    rows: Rows
    references: list[tuple[str, ...]]
    ids: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    def jsonl(self) -> bytes:
        """The file, whose last line ends without a line break, as that of gaokao does."""
        return "\n".join(json.dumps(row, ensure_ascii=False) for row in self.rows).encode()


def asked(number: int) -> str:
    return f"What is ${number}+{number}$?"


def prompts(*answers: object, instruction: str = INSTRUCTION) -> Rows:
    return [{"prompt": asked(n) + instruction, "answer": answer} for n, answer in enumerate(answers)]


def alone(*references: str) -> list[tuple[str, ...]]:
    return [(reference,) for reference in references]


LAYOUTS = {
    "aime24.jsonl": Layout("aime24", prompts(0, 2, 25), alone("0", "2", "25"), kinds=("integer",) * 3),
    "aime24_with_solutions.jsonl": Layout(
        "aime24",
        [
            {"id": 60 + n, "problem": asked(n) + "[asy] draw(); [/asy]", "solution": "", "answer": answer, "url": ""}
            for n, answer in enumerate(("000", "025", "204"))
        ],
        alone("0", "25", "204"),
        ("60", "61", "62"),
        ("integer",) * 3,
    ),
    "aime25.jsonl": Layout("aime25", prompts(0, 2, 4), alone("0", "2", "4"), kinds=("integer",) * 3),
    "aime25_expected_answer.jsonl": Layout(
        "aime25",
        [{"id": f"aime25-{n}", "problem": asked(n), "expected_answer": str(2 * n)} for n in range(3)],
        alone("0", "2", "4"),
        ("aime25-0", "aime25-1", "aime25-2"),
    ),
    "aime26.jsonl": Layout("aime26", prompts("277", "062"), alone("277", "62")),
    "hmmt_feb_2025.jsonl": Layout(
        "hmmt_feb25",
        prompts("103", r"\frac{-1+\sqrt{17}}{2}, \frac{-1-\sqrt{17}}{2}", r"2^{25} \cdot 26!"),
        alone("103", r"\frac{-1+\sqrt{17}}{2}, \frac{-1-\sqrt{17}}{2}", r"2^{25} \cdot 26!"),
    ),
    "amc23.jsonl": Layout(
        "amc23",
        [
            {"id": 7 * n, "problem": asked(n), "answer": answer, "url": "u", "question": asked(n)}
            for n, answer in enumerate((27.0, -1.0, 0.5))
        ],
        alone("27", "-1", "0.5"),
        ("0", "7", "14"),
        ("number",) * 3,
    ),
    "math500.jsonl": Layout(
        "math500", prompts(r"10,\!080", "1,-2", r"\text{east}"), alone(r"10,\!080", "1,-2", r"\text{east}")
    ),
    "math500_with_solutions.jsonl": Layout(
        "math500",
        [
            {"problem": asked(n), "solution": "So.", "answer": answer, "subject": "Algebra", "level": n + 1,
             "unique_id": f"test/algebra/{n}.json"}
            for n, answer in enumerate((r"11,\! 111", r"\$32,\!348", "52_8", "58,500"))
        ],
        alone(r"11,\! 111", r"\$32,\!348", "52_8", "58,500"),
        tuple(f"test/algebra/{n}.json" for n in range(4)),
    ),
    "gsm8k.jsonl": Layout(
        "gsm8k",
        [
            {"question": asked(n), "answer": f"It is <<{n}+{n}={2 * n}>>{2 * n}.\n#### {answer}"}
            for n, answer in enumerate(("18", "-10", "70,000"))
        ],
        alone("18", "-10", "70000"),
        kinds=("integer",) * 3,
    ),
    "olympiadbench.jsonl": Layout(
        "olympiadbench",
        [
            {"id": 1606 + n, "subfield": "Algebra", "context": None, "question": asked(n), "final_answer": [answer],
             "is_multiple_answer": "," in answer, "unit": unit, "answer_type": "Numerical", "error": error}
            for n, (answer, unit, error) in enumerate(
                [("$2$", None, None), ("$69$,$84$", None, None), ("5.5", "km", "1e-1")]
            )
        ],
        alone("$2$", "$69$,$84$", "5.5"),
        ("1606", "1607", "1608"),
        ("expression", "multiple", "expression"),
    ),
    "minerva_math.jsonl": Layout(
        "minerva",
        [
            {"problem": asked(n), "solution": rf"Start with \[ a \] and find \boxed{{{answer}}}.", "type": "t"}
            for n, answer in enumerate(("4.5e33", "np.arcsin(10/13)", "-1./3"))
        ],
        alone("4.5e33", "np.arcsin(10/13)", "-1./3"),
    ),
    "minerva_limo.jsonl": Layout(
        "minerva",
        [{"question": asked(n), "answer": answer} for n, answer in enumerate(("4.5e33", "E_{1},E_{2}"))],
        alone("4.5e33", "E_{1},E_{2}"),
    ),
    "cn_math_2024.jsonl": Layout(
        "chmath",
        [{"id": str(n + 1), "problem": asked(n), "solution": "", "answer": str(7 * n)} for n in range(2)],
        alone("0", "7"),
        ("1", "2"),
    ),
    "gaokao.jsonl": Layout(
        "gaokao",
        [
            {"idx": 1, "question": asked(1) + " A. 1 B. 2", "answer": r"B. 1-\mathrm{i}", "choice_answer": "B"},
            {"idx": 2, "question": asked(2) + " A. 3 B. 4", "answer": r"3 \sqrt{2}", "choice_answer": "D"},
            {"idx": 60, "question": asked(1), "answer": "24112 ", "choice_answer": ""},
        ],
        [(r"1-\mathrm{i}", "B", r"B. 1-\mathrm{i}"), (r"3 \sqrt{2}", "D"), ("24112",)],
        ("1", "2", "60"),
    ),
    "kaoyan.jsonl": Layout(
        "kaoyan",
        [
            {"id": 0, "problem": r"设$x \neq 1$\nA. 1" + "\nB. 2", "solution": "s", "answer": "（B）", "source": "q"},
            {"id": 1, "problem": asked(1), "solution": "s", "answer": "C．", "source": "q"},
            {"id": 2, "problem": asked(2), "solution": "s", "answer": r"（A）$\frac{1}{2}$", "source": "q"},
            {"id": 3, "problem": asked(2), "solution": "s", "answer": {"a": "$x=1$", "b": "$y=2$"}, "source": "q"},
        ],
        [("B",), ("C",), (r"$\frac{1}{2}$", "A", r"（A）$\frac{1}{2}$"), ("$x=1$, $y=2$",)],
        ("0", "1", "2", "3"),
        ("choice", "choice", "expression", "multiple"),
    ),
    "grade_school_math.jsonl": Layout(
        "gradeschool",
        [
            {"problem": asked(n), "answer": answer}
            for n, answer in enumerate(
                [r"$\frac{89}{200}$", 15, [3568, 5880], {"integer": 42, "square": 84}, 1.8782106, "不存在"]
            )
        ],
        alone(r"$\frac{89}{200}$", "15", "3568, 5880", "42, 84", "1.8782106", "不存在"),
    ),
}  # fmt: skip
