"""Names before values: whether the name in an answer is the name in the reference.

A name may be left out on one side, but another name may be another quantity: `r = 3` is a radius where `d = 3` is a
diameter, so that it proves nothing. Names agree if they are the same tree, the same words, one function of any
variables (`f(x)` and `f(t)`), or a function and its graph (`f(x)` and `y`).
"""

from __future__ import annotations

from harness.answers.grammar.tree import Node, num
from harness.answers.words import words_of


def names_agree(first: Node, second: Node) -> bool:
    """Whether two names name the same thing for certain."""
    if first == second:
        return True
    words = _words_of_name(first), _words_of_name(second)
    if words[0] is not None and words[1] is not None:
        return words_of(words[0]) == words_of(words[1])
    function, other_function = _function_and_argument(first), _function_and_argument(second)
    if function is not None and other_function is not None:
        (name, argument), (other_name, other_argument) = function, other_function
        variables = _is_variables(argument) and _is_variables(other_argument)
        return name == other_name and (variables or argument == other_argument)
    for letter, named in ((first, other_function), (second, function)):
        if letter.op == "sym" and named is not None:
            # A graph is y = 2x, the function of it f(x) = 2x, or f = 2x.
            return letter.args[0] in ("y", named[0]) and _is_variables(named[1])
    return False


def _words_of_name(name: Node) -> str | None:
    """Return a name in words, `\\text{maximum}` or `\\max`; None for a letter and any other name."""
    is_word = name.op == "sym" and name.args[0].isalpha() and len(name.args[0]) > 1
    return name.args[0] if name.op == "text" or is_word else None


def _function_and_argument(label: Node) -> tuple[str, Node] | None:
    """Split `f(x)` into name and argument, even if it was read as a product f · x; None for anything else."""
    if label.op == "apply":
        return str(label.args[0]), label.args[1]
    if label.op != "mul" or len(label.args) != 2:
        return None
    name, argument = label.args
    letter = inverse_of(name) or name
    is_inverse = letter is not name  # f^{-1}(x) is no f(x)
    if letter.op != "sym" or argument.op not in ("sym", "add", "tuple", "rel", "num"):
        return None
    spelling = str(letter.args[0])
    is_capital = spelling.isupper() and argument.op == "sym" and argument.args[0].islower()
    if argument.op == "sym" and not (is_inverse or "'" in spelling or is_capital):
        return None  # a product of two letters, unlike f⁻¹(x), f'(x) and P(x)
    return f"{spelling}'" if is_inverse else spelling, argument


def inverse_of(name: Node) -> Node | None:
    """Return the f of f⁻¹, where f is f, g, h or a capital letter; None for any other node.

    Another letter is a number: x⁻¹ is 1/x.
    """
    if name.op != "pow":
        return None
    letter, exponent = name.args
    is_function = letter.op == "sym" and (letter.name in "fgh" or letter.name.isupper())
    return letter if is_function and exponent == num(-1) else None


def _is_variables(argument: Node) -> bool:
    """Whether an argument is a small letter, or several. A capital may be an event or a set: P(A) is not P(B)."""
    parts = argument.args if argument.op in ("list", "tuple") else (argument,)
    return all(part.op == "sym" and not part.args[0][0].isupper() for part in parts)
