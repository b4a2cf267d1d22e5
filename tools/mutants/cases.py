"""Lists the mutants of modules under names that stay the same when lines move; draws some by a seed; knows those that
are explained.
"""

from __future__ import annotations

import ast
import random
from collections import Counter
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from tools.mutants.operators import mutants
from tools.mutants.results import content
from tools.tests_of import modules

EXPLAINED = Path(__file__).with_name("explained.txt")


class Case(NamedTuple):
    """One mutant (a small change of a module). number: its place among the module's mutants. first, last: lines of its
    statement.
    """

    name: str
    module: str
    number: int
    runs_late: bool
    first: int
    last: int

    @property
    def file(self) -> Path:
        return modules()[self.module]

    def tree(self) -> ast.Module:
        """The module's syntax tree with the mutant in it."""
        tree = ast.parse(content(self.file))
        for number, mutant in enumerate(mutants(tree)):
            if number == self.number:
                mutant.put()
                break
        return tree

    def source(self) -> str:
        """The module's source with the mutant in it, without comments."""
        return ast.unparse(self.tree())

    def code(self) -> CodeType:
        """The module's code with the mutant in it, at the lines where it stands."""
        return compile(self.tree(), str(self.file), "exec")


def cases_of(module: str) -> list[Case]:
    """Every mutant (small change of the code) of the module that still compiles."""
    cases: list[Case] = []
    counts: Counter[str] = Counter()
    for number, mutant in enumerate(mutants(ast.parse(content(modules()[module])))):
        name = f"{module}: {mutant.scope or '(module)'}: {mutant.operator}: {mutant.before} → {mutant.after}"
        counts[name] += 1
        name += f" (no. {counts[name]})" if counts[name] > 1 else ""
        cases.append(Case(name, module, number, mutant.runs_late, mutant.first, mutant.last))
    return cases


def drawn(names: list[str], n: int, seed: int) -> list[Case]:
    """Draw `n` of these mutants at random, each equally likely; all of them if there are no more."""
    cases = [case for name in names for case in cases_of(name)]
    return cases if len(cases) <= n else random.Random(seed).sample(cases, n)  # noqa: S311 - a sample, no secret


def explained() -> dict[str, str]:
    """Mutants that no test can kill → why: a line with the mutant's name, then indented lines with the reason."""
    reasons: dict[str, str] = {}
    name = ""
    for line in EXPLAINED.read_text("utf-8").splitlines():
        if line.startswith("    ") and name:
            reasons[name] = f"{reasons[name]} {line.strip()}".strip()
        elif line.strip() and not line.startswith("#"):
            name = line
            reasons[name] = ""
    return reasons
