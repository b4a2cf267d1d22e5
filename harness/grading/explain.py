"""A verdict told step by step, for the person who doubts it."""

from __future__ import annotations

from harness.answers.boxed import boxes_from_end
from harness.answers.grammar.parse import parse
from harness.answers.grammar.tokens import Unreadable
from harness.answers.grammar.tree import Node
from harness.core.inert import quoted
from harness.core.records import AnswerKind, GradeRules
from harness.grading.compare.equivalence import bare, equal
from harness.grading.compare.exact import NotExact, exact, freeze
from harness.grading.find.extract import bounded, extract_from
from harness.grading.find.reasoning import final_part
from harness.grading.kinds import kind_of

_DEFAULT_RULES = GradeRules()
_SIGNS = {
    "add": " + ",
    "mul": "·",
    "div": "/",
    "pow": "^",
    "union": " ∪ ",
    "inter": " ∩ ",
    "minus": " ∖ ",
    "ratio": ":",
}
_BRACKETS = {"list": ("", ""), "tuple": ("(", ")"), "set": ("{", "}"), "bracket": ("[", "]")}
_STAGES = {
    "integer": "both are integers and are compared digit by digit",
    "text": "the same signs",
    "words": "compared as words",
    "identical": "read as the same tree",
    "exact": "both have an exact value",
    "field": "one evaluation in a finite field",
    "numeric": "compared by numbers of 50 and 200 digits, or at fixed points",
    "symbolic": "sympy was asked for the difference",
    "tolerance": "within the tolerance that the benchmark states",
    "prose": "the reference is a sentence, which no rule can compare",
    "unreadable": "the answer is no mathematics that the grammar reads",
}


def explain(
    reference: str,
    response: str,
    *,
    kind: AnswerKind | None = None,
    rules: GradeRules = _DEFAULT_RULES,
    choices: tuple[str, ...] = (),
) -> list[str]:
    """How the verdict on `response` comes about, one step a line; foreign text is quoted and harmless.

    The last line begins with "correct", "wrong", "no answer" or "undecided".
    """
    steps = []
    kind = kind or kind_of(reference)
    steps.append(f"the reference {quoted(reference)} is compared as: {kind}")
    part = final_part(response)
    if part is None:
        steps.append("the reasoning was opened and never closed, so there is no final part to search")
        steps.append("no answer")
        return steps
    if part[0]:
        steps.append(f"the reasoning ends at character {part[0]:,}; only what follows is searched")
    several = rules.several_boxes or kind == "multiple"
    found = extract_from(response, *part, kind=kind, several_boxes=several, truncated=False, last="J")
    found = None if found is None else found._replace(answer=bounded(found.answer))
    if found is None:
        steps.append("no box, phrase, formula or number was found")
        steps.append("no answer")
        return steps
    steps.append(f"answer found by {found.method} at characters {found.start:,}–{found.end:,}: {quoted(found.answer)}")
    passed_over = sum(1 for box in boxes_from_end(response) if box.start != found.start)
    if passed_over:
        steps.append(f"{passed_over} other box{'es' if passed_over > 1 else ''} passed over: the last one counts")
    for name, text in (("reference", bare(reference)), ("answer", found.answer)):
        steps.append(f"the {name} is read as {_reading(text, kind)}")
    verdict = equal(reference, found.answer, kind, rules, choices)
    steps.append(f"rule {verdict.rule}: {_STAGES.get(verdict.rule, 'compared part by part')}")
    steps.extend(verdict.steps)
    steps.append({True: "correct", False: "wrong", None: "undecided"}[verdict.equal])
    return [quoted(step) if len(step) > 600 else step for step in steps]


def _reading(text: str, kind: AnswerKind) -> str:
    try:
        node = parse(text, list_commas=kind == "multiple")
    except (Unreadable, RecursionError) as error:
        return f"words ({quoted(str(error))})"
    try:
        value = f", exactly {freeze(exact(node))}"
    except NotExact:
        value = ""
    return quoted(show(node)) + (quoted(value) if value else "")


def show(node: Node) -> str:
    """A tree on one line, with every bracket that it has."""
    op, args = node
    if op == "num":
        return str(args[0]) if max(args[0].numerator.bit_length(), args[0].denominator.bit_length()) < 4_000 else "…"
    if op in ("sym", "const", "text"):
        return str(args[0])
    if op == "neg":
        return f"-{_inner(args[0])}"
    if op in _SIGNS:
        return _SIGNS[op].join(_inner(part) for part in args)
    if op in _BRACKETS:
        opening, closing = _BRACKETS[op]
        return opening + ", ".join(show(part) for part in args) + closing
    if op == "interval":
        return f"{'[' if args[2] else '('}{show(args[0])}, {show(args[1])}{']' if args[3] else ')'}"
    if op == "rel":
        operands, signs = args
        parts = [show(operands[0])]
        for sign, operand in zip(signs, operands[1:], strict=True):
            parts += [sign, show(operand)]
        return " ".join(parts)
    if op == "matrix":
        return "[" + "; ".join(", ".join(show(cell) for cell in row) for row in args) + "]"
    if op == "base":
        return f"{args[0]} in base {args[1]}"
    named = ", ".join(show(part) if isinstance(part, Node) else str(part) for part in args)
    return f"{op}({named})"


def _inner(node: Node) -> str:
    shown = show(node)
    return f"({shown})" if node.op in ("add", "neg", "div", "mul", "pm", "mp", "union") else shown
