"""Names before values: whether the name in an answer may stand for the name in the reference.

`n = 5` equals `k = 5`, since a letter is the writer's choice; coordinates x, y, z are not. Names that share a letter
and differ otherwise (x and |x|, AB : CD and CD : AB, S_5 and S_6, f(1) and f(2)) name different things, and so do
words without a word in common.
"""

from __future__ import annotations

import re

from harness.answers.grammar.tree import Node, is_scalar, symbols, walk
from harness.grading.compare.modular import NotModular, Residues

GEOMETRY = frozenset("xyz")
"""Letters of coordinates; none of them stands for another."""

_GENERAL_WORDS = frozenset(("the", "of", "value", "answer", "result", "total", "sum", "final", "number", "is", "are"))
"""Words of a name that do not say what is named."""

_COMPARED_LETTERS = 3
"""Two words are alike if they begin with the same so many letters: max and Maximum."""

_DECORATION = re.compile(r"^(?:overline|bar|dot|ddot|mathring|widebar) |'+|_.*$")


def agree(first: Node, second: Node) -> bool:
    """Whether two names may name the same thing."""
    if first == second:
        return True
    if first.op == second.op == "text":
        return _words_agree(first.args[0], second.args[0])
    function, other_function = _applied(first), _applied(second)
    if function is not None and other_function is not None:
        (name, argument), (other_name, other_argument) = function, other_function
        variables = _is_variables(argument) and _is_variables(other_argument)
        return (name == other_name or _letters_agree(name, other_name)) and (variables or argument == other_argument)
    if first.op == second.op == "tuple":
        return sorted(map(repr, first.args)) != sorted(map(repr, second.args))
    if first.op == second.op == "sym":
        return _letters_agree(first.args[0], second.args[0])
    if function is None and other_function is None and symbols(first) & symbols(second):
        return _same_product(first, second)
    return True


def _letters_agree(first: str, second: str) -> bool:
    """As `agree`, for the names of two letters, with their indices and marks."""
    if first in GEOMETRY and second in GEOMETRY:
        return False
    if _DECORATION.sub("", first) == _DECORATION.sub("", second):
        return ("_" in first) != ("_" in second)  # x_1 may be called x, but not x_2 or x'
    return not ("_" in first and "_" in second) and not (len(first) == len(second) > 1)


def _words_agree(first: str, second: str) -> bool:
    """Whether two names in words have a word in common, or one has only general words."""
    left, right = (
        {word[:_COMPARED_LETTERS] for word in re.findall(r"\w+", words.lower()) if word not in _GENERAL_WORDS}
        for words in (first, second)
    )
    return not left or not right or bool(left & right)


def _applied(label: Node) -> tuple[str, Node] | None:
    """(name, argument) of a function with its argument, `f(x)`, also one that was read as a product; else None."""
    if label.op == "apply":
        return str(label.args[0]), label.args[1]
    if label.op != "mul" or len(label.args) != 2:
        return None
    name, argument = label.args
    raised = name.op == "pow"  # f^{-1}(x) is no f(x)
    letter = name.args[0] if raised else name
    if letter.op != "sym" or argument.op not in ("sym", "add", "tuple", "rel", "num"):
        return None
    spelling = str(letter.args[0])
    if argument.op == "sym" and not (raised or "'" in spelling or (spelling.isupper() and argument.args[0].islower())):
        return None  # a product
    return spelling + "'" * raised, argument


def _is_variables(argument: Node) -> bool:
    """Whether an argument is a letter, or several."""
    parts = argument.args if argument.op in ("list", "tuple") else (argument,)
    return all(part.op == "sym" for part in parts)


def _same_product(first: Node, second: Node) -> bool:
    """Whether two names are equal as expressions: `AB` and `BA`, `AB : CD` and `AB / CD`."""
    left, right = (Node("div", label.args) if label.op == "ratio" and len(label.args) == 2 else label
                   for label in (first, second))  # fmt: skip
    if not (is_scalar(left) and is_scalar(right)):
        return False
    if any(here.op == "fn" for here in (*walk(left), *walk(right))):
        return left == right
    try:
        return Residues().value(left) == Residues().value(right)
    except NotModular:
        return left == right
