"""Compares `reasoning_answers.compat` and Math-Verify on Math-Verify's own test cases, which are read from its source.

    pip download --no-deps --no-binary :all: math-verify==0.9.0 && tar xf math_verify-0.9.0.tar.gz
    MATH_VERIFY_TESTS=math_verify-0.9.0/tests make bench WHAT=grading

A case is a parametrized pair of a reference and a prediction with the verdict that its test expects. The files are
parsed, never executed; cases on anything but a pair of texts are left out and counted.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.core.sanitize import visible
from reasoning_answers.compat import ExprExtractionConfig, LatexExtractionConfig, parse, verify

OPTIONS = {
    "precision": "float_rounding",
    "strict": "strict",
    "allow_set_relation_comp": "allow_set_relation_comp",
}
"""Parameter of a test → the option of `verify`."""

REASONS = {
    "a comma may separate thousands or items, so a decimal comma is undecided": """
        test_all::test_number_extraction[5] test_all::test_number_extraction[6] test_all::test_number_extraction[7]
        test_all::test_number_extraction[17]""",
    "the sentence does not state the number as its result": """
        test_all::test_number_extraction[13] test_all::test_number_extraction[14] test_all::test_number_extraction[16]
        test_all::test_math_extraction_additional_cases[8]""",
    "the parts of a chain contradict each other": """
        test_all::test_latex_notation[9] test_all::test_relations_math[10] test_all::test_relations_math[12]
        test_all::test_relations_math[13] test_all::test_relations_math[16] test_all::test_relations_math[21]
        test_all::test_relations_math[26] test_all::test_relations_math[27]""",
    "another argument makes another value of f": "test_strict::test_strict_variable_comparison[1]",
    "a repeated item of a list counts": """
        test_numina_cases::test_numina_cases[0] test_numina_cases::test_numina_cases[19]""",
    "a formula may contain line breaks": "test_all::test_latex_notation[6]",
    "backslashes and line breaks are escaped, so a letter n joins the box": "test_all::test_latex_notation_math[5]",
    "products of matrices are not computed": "test_all::test_matrix_extraction[6]",
    "a set has no order, so it is not a pair": "test_all::test_math_extraction_additional_cases[7]",
    "relations and sets are compared in both directions": "test_all::test_set_rel_assymetry[3]",
    "z may be complex": "test_numina_cases::test_numina_cases[3]",
    "a list without a box or label has fewer values than the reference": "test_numina_cases::test_numina_cases[9]",
    "the box of the reference is never closed": "test_numina_cases::test_numina_cases[24]",
    "f(x) is not a variable, so its bounds are no interval": "test_numina_cases::test_numina_cases[27]",
    "the boxes of a reference are a list, whatever is between them": "test_open_thoughts::test_open_thoughts[28]",
    "the expected verdict is wrong: the signs differ": "test_yujianll::test_string_extraction[9]",
}
"""Why `compat` differs from the expected verdict → the cases of version 0.9.0."""

_CONFIGS = {"latex": LatexExtractionConfig(boxed_match_priority=0), "expr": ExprExtractionConfig()}
_THEIRS = """
import json, logging, sys
from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify
logging.disable(logging.CRITICAL)
configs = {"latex": LatexExtractionConfig(boxed_match_priority=0), "expr": ExprExtractionConfig()}
for line in sys.stdin:
    gold, prediction, kinds, options = json.loads(line)
    looked_for = [configs[kind] for kind in kinds]
    print(json.dumps(verify(parse(gold, looked_for), parse(prediction, looked_for), **options)))
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A pair with the verdict that Math-Verify's test expects."""

    name: str
    gold: str
    prediction: str
    expected: bool
    kinds: list[str] = field(default_factory=lambda: [*_CONFIGS])
    """What is looked for: "latex", "expr"."""

    options: dict[str, Any] = field(default_factory=dict)
    """Options of `verify`."""


def cases(folder: Path) -> tuple[list[Case], int]:
    """Return the pairs in the tests of `folder`, and the number of cases that are not pairs."""
    found = [case for path in sorted(folder.glob("test_*.py")) for case in _in_file(path)]
    return [case for case in found if case is not None], found.count(None)


def _in_file(path: Path) -> Iterator[Case | None]:
    functions = (node for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.FunctionDef))
    for function in functions:
        for decorator in function.decorator_list:
            match decorator:
                case ast.Call(func=ast.Attribute(attr="parametrize"), args=[names, ast.List(elts=rows)]):
                    fixed = {key.arg: key.value for key in ast.walk(function) if isinstance(key, ast.keyword)}
                    for number, row in enumerate(rows):
                        yield _case(f"{path.stem}::{function.name}[{number}]", ast.literal_eval(names), row, fixed)


def _case(name: str, names: str, row: ast.expr, fixed: dict[str | None, ast.expr]) -> Case | None:
    """Return the case of a row of a test; None if it is not a pair. fixed: the values that the test itself passes."""
    fields = [each.strip() for each in names.split(",")]
    stated = {key: value.value for key, value in fixed.items() if isinstance(value, ast.Constant)}
    try:
        values = stated | dict(zip(fields, ast.literal_eval(row), strict=True))
        kinds = ast.literal_eval(fixed["match_types"]) if "match_types" in fixed else [*_CONFIGS]
        expected = bool(values["expected"] if "expected" in values else values["result"])
        options = {option: values[name] for name, option in OPTIONS.items() if name in values}
        return Case(name, values["gold"], values["pred"], expected, kinds, options)
    except (KeyError, ValueError):
        return None


def compare(folder: Path, python: str | None) -> None:
    """Print how many verdicts are as expected, then each of ours that differs, with its reason.

    python: the interpreter that has Math-Verify; None if there is none.
    """
    pairs, n_others = cases(folder)
    ours = [_ours(case) for case in pairs]
    agreed = sum(verdict == case.expected for verdict, case in zip(ours, pairs, strict=True))
    say = sys.stdout.write
    say(f"\nMath-Verify's own tests: {len(pairs)} pairs, {agreed} as expected by compat")
    if python is not None:
        lines = "".join(json.dumps([c.gold, c.prediction, c.kinds, c.options]) + "\n" for c in pairs)
        done = subprocess.run([python, "-c", _THEIRS], input=lines, capture_output=True, text=True, check=True)
        theirs = map(json.loads, done.stdout.splitlines())
        say(f", {sum(verdict == case.expected for verdict, case in zip(theirs, pairs, strict=True))} by Math-Verify")
    say(f"; {n_others} cases are not pairs\n")
    reasons = {name: reason for reason, names in REASONS.items() for name in names.split()}
    for verdict, case in zip(ours, pairs, strict=True):
        if verdict != case.expected:
            reason = reasons.get(case.name, "no reason is recorded")
            say(f"{case.name}: {visible(case.gold, 40)} | {visible(case.prediction, 40)} | {verdict}: {reason}\n")


def _ours(case: Case) -> bool | str:
    """The verdict of `compat`; the message if it refuses an option."""
    looked_for = [_CONFIGS[kind] for kind in case.kinds]
    try:
        return verify(parse(case.gold, looked_for), parse(case.prediction, looked_for), **case.options)
    except ValueError as error:
        return str(error)
