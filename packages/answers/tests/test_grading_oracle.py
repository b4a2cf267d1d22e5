"""The grammar beside sympy's own LaTeX parser: what both read, both read alike.

For: reasoning_answers.compare.numeric, reasoning_answers.compare.point.
"""

from __future__ import annotations

import re

import pytest
from asked import pinned_pairs

from reasoning_answers.compare.numeric import number_of
from reasoning_answers.compare.point import NotNumeric
from reasoning_answers.grammar.numerals import Unreadable
from reasoning_answers.grammar.parse import parse
from reasoning_answers.grammar.tree import is_scalar, symbols

READ_OTHERWISE = re.compile(
    r"""(?x)
      \d\s*\\[dt]?frac            # a mixed number, which sympy takes for a product
    | \\overline | \\dot | \.\.\. | \\ldots  # a repeating decimal
    | \\% | % | \\circ | \\text | \\mathrm | \\operatorname | \\log(?!_) | [A-Za-z]{2,} | \\pm | \\mp | !
    | \d[,\s~']\s*\d
    | \\[,;:!] | \{, | \d\{ | \\sqrt\s?\d | \^\d\d | \\frac\s?\d | _ | \|          # layout and arguments without braces
    | \b0[xb] | \*\* | \d\.$ | \^\d\^          # notation of programs, towers
    | \(-\d+\)\^\{\d+/               # the real root of a negative number, which sympy takes for the complex one
    | \bi\b | \be\b | [ij]$ | \\cdot\s*-
    """
)


@pytest.mark.slow
def test_numbers_that_both_read_are_the_same_numbers() -> None:
    try:
        from sympy.parsing.latex import parse_latex

        parse_latex("x")
    except ImportError:
        pytest.skip("sympy's LaTeX parser needs the extra antlr")
    answers = {text for pair in pinned_pairs() for text in pair}
    compared, different = 0, []
    for text in sorted(answers):
        if len(text) > 80 or READ_OTHERWISE.search(text):
            continue
        try:
            node = parse(text)
            if symbols(node) or not is_scalar(node):
                continue
            ours = complex(number_of(node))
            theirs = complex(parse_latex(text))
            is_other = abs(ours - theirs) > 1e-9 * max(1.0, abs(ours))
        except (Unreadable, NotNumeric, OverflowError):
            continue
        except Exception:  # noqa: BLE001  sympy does not read it
            continue
        compared += 1
        if is_other:
            different.append((text, ours, theirs))
    assert not different, different
    assert compared >= 60
