"""Names before values: whether the name in an answer may stand for the name in the reference.

`n = 5` equals `k = 5`, since a letter is the writer's choice; coordinates x, y, z are not. Names that share a letter
and differ otherwise (x and |x|, AB : CD and CD : AB, S_5 and S_6, f(1) and f(2)) name different things, and so do
words without a word in common.
"""

from __future__ import annotations

import re

from harness.answers.grammar.tree import Node, is_scalar, num, symbols, walk
from harness.grading.compare.modular import NotModular, Residues

GEOMETRY = frozenset("xyz")
"""Letters of coordinates; none of them stands for another."""

_GENERAL_WORDS = frozenset(("the", "of", "value", "answer", "result", "final", "number", "is", "are"))
"""Words of a name that do not say what is named."""

_MIN_ABBREVIATION = 3
"""Smallest number of letters of a word that is cut short: max of Maximum."""

_CHINESE = re.compile(r"[\u3400-\u9fff]")

_DECORATION = re.compile(r"^(?:overline|bar|dot|ddot|mathring|widebar) |'+|_.*$")


def names_agree(first: Node, second: Node) -> bool:
    """Whether two names may name the same thing."""
    if first == second:
        return True
    if first.op == second.op == "text":
        return _words_agree(first.args[0], second.args[0])
    function, other_function = _function_and_argument(first), _function_and_argument(second)
    if function is not None and other_function is not None:
        (name, argument), (other_name, other_argument) = function, other_function
        variables = _is_variables(argument) and _is_variables(other_argument)
        return (name == other_name or _letters_agree(name, other_name)) and (variables or argument == other_argument)
    if first.op == second.op == "tuple":
        # The same names in another order, (y, x) for (x, y), would exchange the values.
        return sorted(map(repr, first.args)) != sorted(map(repr, second.args))
    if first.op == second.op == "sym":
        return _letters_agree(first.args[0], second.args[0])
    if function is None and other_function is None and symbols(first) & symbols(second):
        return _same_product(first, second)
    return True


def _letters_agree(first: str, second: str) -> bool:
    """As `names_agree`, for the names of two letters, with their indices and marks."""
    if first in GEOMETRY and second in GEOMETRY:
        return False
    if _DECORATION.sub("", first) == _DECORATION.sub("", second):
        return ("_" in first) != ("_" in second)  # x_1 may be called x, but not x_2 or x'
    return not ("_" in first and "_" in second) and not (len(first) == len(second) > 1)


def _words_agree(first: str, second: str) -> bool:
    """Whether one of two names in words has all the words of the other, general ones left out: "area", "total area"."""
    left, right = (
        [word for word in re.findall(r"\w+", words.lower()) if word not in _GENERAL_WORDS] for words in (first, second)
    )
    return _is_part(left, right) or _is_part(right, left)


def _is_part(words: list[str], others: list[str]) -> bool:
    """Whether each of `words` stands for one of `others`."""
    return all(any(_is_word(word, counterpart) for counterpart in others) for word in words)


def _is_word(first: str, second: str) -> bool:
    """Whether two words are one, or one is the other cut short, "max" and "maximum"; in Chinese also its last part."""
    shorter, longer = sorted((first, second), key=len)
    if _CHINESE.match(first):
        # A Chinese name ends with its noun: 面积 is the last part of 总面积.
        return longer.endswith(shorter)
    return shorter == longer or (len(shorter) >= _MIN_ABBREVIATION and longer.startswith(shorter))


def _function_and_argument(label: Node) -> tuple[str, Node] | None:
    """(name, argument) of a function with its argument, `f(x)`, also one that was read as a product; else None."""
    if label.op == "apply":
        return str(label.args[0]), label.args[1]
    if label.op != "mul" or len(label.args) != 2:
        return None
    name, argument = label.args
    letter = inverse_of(name) or name
    raised = letter is not name  # f^{-1}(x) is no f(x)
    if letter.op != "sym" or argument.op not in ("sym", "add", "tuple", "rel", "num"):
        return None
    spelling = str(letter.args[0])
    if argument.op == "sym" and not (raised or "'" in spelling or (spelling.isupper() and argument.args[0].islower())):
        return None  # a product
    return spelling + "'" * raised, argument


def inverse_of(name: Node) -> Node | None:
    """Return the f of f⁻¹; None for any other node, as a power is a number: x² is no function."""
    inverse = name.op == "pow" and name.args[0].op == "sym" and name.args[1] == num(-1)
    return name.args[0] if inverse and (name.args[0].args[0] in "fgh" or name.args[0].args[0].isupper()) else None


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
