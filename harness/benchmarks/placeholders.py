r"""Placeholders in a text that a person wrote, such as `{question}`, told from the braces of LaTeX.

A placeholder is a name in braces: `{answer}`, `{ reference answer }`, `{doc.answer}`, `{answer:>10}`, and anything that
begins with a letter in double braces, `{{ item.answer | trim }}`. Braces are LaTeX, no placeholder, behind a command
(`\frac{a}{b}`, `\sqrt[n]{ab}`), behind `\`, `_`, `^`, and behind the closing brace of another group.
"""

from __future__ import annotations

import re

# Matched first, so that its groups are passed over; several groups in a row belong to one command (`\frac{a}{b}`).
_LATEX = r"(?:\\[A-Za-z]+\*?\s*(?:\[[^\[\]{}]*\]\s*)?|[\\_^}])(?:\{[^{}]*\})+"
# The class holds the space, so no `\s*` follows it: two that overlap would take a time quadratic in the spaces.
_NAME = r"[^\W\d][\w .\-]*(?:[!:\[][^{}\s]*)?"
_BRACED = re.compile(rf"{_LATEX}|(?P<placeholder>\{{\{{\s*[^\W\d][^{{}}]*\}}\}}|\{{\s*{_NAME}\}})")


def placeholders(text: str) -> list[str]:
    """The distinct placeholders of a text as they are written, in their order."""
    return list(dict.fromkeys(match["placeholder"] for match in _BRACED.finditer(text) if match["placeholder"]))
