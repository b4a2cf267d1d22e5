"""Counts places in the code that break the rules of plain language, and prints them: `python -m tools.words [PACKAGE]`.

`tests/test_house.py` has a limit for each count. A low count is a floor, not the goal: the goal is a reader who opens
any file and never stops to guess.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGES = ("harness", "server_launchers")

VAGUE = frozenset(
    {"one", "found", "said", "told", "place", "other", "asked", "wanted", "kept", "known", "at", "chosen", "made"}
    | {"several"}
)
"""Vague names: they tell how a value was obtained, and not what it is."""

BOUNDS = ("MOST_", "LEAST_")
"""Beginnings of names of bounds for which MAX_ and MIN_ must be used."""

IRREGULAR_PARTICIPLES = frozenset(
    {"begun", "bound", "broken", "brought", "built", "caught", "chosen", "done", "drawn", "driven", "fallen", "found"}
    | {"frozen", "given", "gone", "grown", "held", "hidden", "kept", "known", "laid", "left", "lent", "lost"}
    | {"made", "meant", "met", "paid", "said", "seen", "sent", "shown", "sold", "sought", "spelt", "spent"}
    | {"stolen", "sworn", "taken", "taught", "thought", "thrown", "told", "torn", "understood", "won", "written"}
)
"""Participles that do not end in "ed", and are neither the verb's plain form nor a noun (`put`, `read`, `run`)."""

NO_PARTICIPLES = frozenset({"embed", "exceed", "feed", "need", "proceed", "seed", "speed", "succeed"})
"""Words that end in "ed" and are no participles."""

SUBJECTLESS = frozenset({"Of", "What", "They", "So", "It"})
"""First words of a constant's docstring that show a sentence without a subject."""

_STRINGS_AND_COMMENTS = re.compile(
    r'''"""(?:\\.|[^\\])*?"""|\'{3}(?:\\.|[^\\])*?\'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#[^\n]*''', re.DOTALL
)
"""A `#` in a string begins no comment. `tokenize` splits a file in the same way, in many times the time."""


class Count(NamedTuple):
    """The result of one count. places: `FILE:LINE: NAME` of each hit. total: number of places that could be hits; 0 if
    that number means nothing.
    """

    places: list[str]
    total: int


def sources(checkout: Path = CHECKOUT) -> Iterator[tuple[str, str, list[ast.AST]]]:
    """(path, text, nodes of the tree) of every file of the product."""
    for package in PACKAGES:
        for path in sorted((checkout / package).rglob("*.py")):
            text = path.read_text("utf-8")
            yield str(path.relative_to(checkout)), text, walk(ast.parse(text))


def walk(tree: ast.AST) -> list[ast.AST]:
    """Return what `ast.walk` yields, in that order and in half of its time, without the contexts of names."""
    nodes = [tree]
    for node in nodes:
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                nodes += [child for child in value if isinstance(child, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                nodes.append(value)
    return nodes


def bindings(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield (line, name) for each parameter, variable, attribute and function that the file names."""
    for node in nodes:
        match node:
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


def is_bare_participle(name: str) -> bool:
    """Whether the whole name of a function is one participle, underscores around it aside."""
    word = name.strip("_")
    return word in IRREGULAR_PARTICIPLES or (word.isalpha() and word.endswith("ed") and word not in NO_PARTICIPLES)


def is_event_or_boolean(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function returns a boolean, an array of them, or nothing, as one that reports an event does."""
    return function.returns is not None and ast.unparse(function.returns) in ("bool", "None", "NDArray[np.bool_]")


def documented_values(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield (line, docstring) for each constant and attribute that has one."""
    bodies = [node.body for node in nodes if isinstance(node, ast.Module | ast.ClassDef)]
    for body in bodies:
        for before, statement in pairwise(body):
            match before, statement:
                case ast.Assign() | ast.AnnAssign(), ast.Expr(value=ast.Constant(value=str(text))):
                    yield statement.lineno, text


def counted(files: list[tuple[str, str, list[ast.AST]]]) -> dict[str, Count]:
    """Return each count of vague or unclear words in the code, by its name."""
    vague, bounds, subjectless, participles, n_bindings, n_functions = [], [], [], [], 0, 0
    classes: dict[str, list[str]] = defaultdict(list)
    n_comments = n_lines = 0
    for path, text, nodes in files:
        for line, name in bindings(nodes):
            n_bindings += 1
            vague += [f"{path}:{line}: {name}"] if name in VAGUE else []
            bounds += [f"{path}:{line}: {name}"] if name.lstrip("_").startswith(BOUNDS) else []
        for line, words in documented_values(nodes):
            subjectless += [f"{path}:{line}: {words[:60]}"] if words.split(" ")[0] in SUBJECTLESS else []
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                n_functions += 1
                bad = is_bare_participle(node.name) and not is_event_or_boolean(node)
                participles += [f"{path}:{node.lineno}: {node.name}"] if bad else []
            elif isinstance(node, ast.ClassDef):
                classes[node.name].append(f"{path}:{node.lineno}: {node.name}")
        n_lines += text.count("\n")
        n_comments += sum(lexeme.startswith("#") for lexeme in _STRINGS_AND_COMMENTS.findall(text))
    twice = [hit for places in classes.values() if len(places) > 1 for hit in places]
    return {
        "vague names": Count(vague, n_bindings),
        "MOST_ and LEAST_": Count(bounds, n_bindings),
        "docstrings without a subject": Count(subjectless, 0),
        "participles as functions": Count(participles, n_functions),
        "classes of one name": Count(twice, sum(map(len, classes.values()))),
        "comments": Count([""] * n_comments, n_lines),
    }


def main() -> None:
    room = sys.argv[1] if len(sys.argv) > 1 else ""
    counts = counted([file for file in sources() if file[0].startswith(room)])
    for name, count in counts.items():
        share = f" ({1000 * len(count.places) / count.total:.1f} of 1,000)" if count.total else ""
        sys.stdout.write(f"{name}: {len(count.places)}{share}\n")
        if name != "comments":
            sys.stdout.writelines(f"  {hit}\n" for hit in count.places)


if __name__ == "__main__":
    main()
