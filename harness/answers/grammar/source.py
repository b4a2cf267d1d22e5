r"""The characters of an answer before tokens are made: escapes of HTML and JSON undone, `]0, 1[` as `(0, 1)`."""

from __future__ import annotations

import html
import re

from harness.answers.grammar.characters import plain_latex
from harness.answers.grammar.vocabulary import is_command

_ENTITY = re.compile(r"&(?:#\d{1,6}|#[xX][0-9a-fA-F]{1,5}|[a-zA-Z]{2,8});")
_DOUBLED_COMMAND = re.compile(r"\\\\([A-Za-z]+)")
_ONLY_DOUBLED_BACKSLASHES = re.compile(r"(?:[^\\]|\\\\)*")
_OUTWARD = re.compile(r"\s*(?:\\left\s*)?([\[\]])([^\[\]()]*[,;][^\[\]()]*?)(?:\\right\s*)?([\[\]])\s*")
"""Two ends between square brackets of any direction: `[0, 1]`, and `]0, 1[`, whose open ends are turned outwards."""

_SET_SIGN = re.compile(r"(\\cup(?![a-zA-Z])|\\cap(?![a-zA-Z])|[∪∩])")
_DURATION = re.compile(r"\s*(\d+)\s*h\s*(\d+)\s*m(?:in)?\s*")
"""Hours and minutes: `2 h 30 min`. The grammar would read their letters as variables."""

_MICRO = re.compile(
    r"(\\(?:text|mathrm)\s*\{\s*~?\s*)(?:[µμ]|\\mu(?![A-Za-z]))\s*"
    r"|(?:\\mu\s*|[µμ])(\\(?:text|mathrm)\s*\{\s*~?\s*)(?=(?:mol|Hz|[mgsAlLVWFCJMT])\s*\})"
    r"|(?<=[\d\s])[µμ](?=(?:mol|Hz|[mgslLVWFCJT])(?![A-Za-z]))"
)
"""The micro sign as the prefix of a unit. Without the unit behind it, it is the letter mu."""

_OHMS = re.compile(r"\\(?:text|mathrm)\s*\{[\s~]*([kM]?)[\s~]*\}\s*\\Omega(?![A-Za-z])")
"""The sign of the unit ohm behind its prefix. Without a prefix `2 \\Omega` is a product."""


def plain_source(source: str) -> str:
    """`source` as plain LaTeX: escapes undone, intervals, units and Unicode as the grammar reads them."""
    if "&" in source:
        source = _ENTITY.sub(lambda entity: html.unescape(entity.group()), source)
    if "\\\\" in source:
        source = _undoubled(source)
    if "[" in source or "]" in source:
        source = _inward(source)
    if "mu" in source or "µ" in source or "μ" in source:
        source = _MICRO.sub(lambda prefix: f"{prefix[1] or prefix[2] or ''}u", source)
    if "Omega" in source:
        source = _OHMS.sub(lambda unit: rf"\text{{ {unit[1]}ohm}}", source)
    if (duration := _DURATION.fullmatch(source)) is not None:
        source = rf"{duration[1]}\text{{ h }}{duration[2]}\text{{ min}}"
    return plain_latex(source.replace("{:}", ":")).strip()


def _undoubled(source: str) -> str:
    r"""`source` with single backslashes if it was escaped for JSON (`\\frac`); a line break of a matrix stays."""
    if _ONLY_DOUBLED_BACKSLASHES.fullmatch(source) and any(map(is_command, _DOUBLED_COMMAND.findall(source))):
        return source.replace("\\\\", "\\")
    return source


def _inward(source: str) -> str:
    """`source` with round brackets for the open ends that are written as brackets turned outwards."""
    pieces = _SET_SIGN.split(source)  # intervals, and between them the signs ∪ and ∩
    intervals = [_OUTWARD.fullmatch(piece) for piece in pieces[::2]]
    if all(match is None or match.group(1, 3) == ("[", "]") for match in intervals):
        return source
    for index, match in enumerate(intervals):
        if match is not None:
            opening, closing = "[" if match[1] == "[" else "(", "]" if match[3] == "]" else ")"
            pieces[2 * index] = f"{opening}{match[2]}{closing}"
    return "".join(pieces)
