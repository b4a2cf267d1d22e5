r"""Placeholders in a text that a person wrote, such as `{question}`, told from the braces of LaTeX.

A placeholder is a name in braces: `{answer}`, `{ reference answer }`, `{doc.answer}`, `{answer:>10}`, and anything that
begins with a letter in double braces, `{{ item.answer | trim }}`. Braces are LaTeX, no placeholder, behind a command
(`\frac{a}{b}`, `\sqrt[n]{ab}`), behind `\`, `_`, `^`, and behind the closing brace of another group.

Other tools mark a placeholder without braces: a name of two letters or more in `[[answer]]`, `<<answer>>`,
`%(answer)s`, or behind a dollar sign that begins no formula, `$answer`. A prompt may say such a thing to a model
(`the answer as [[letter]]`), so only a text in which nothing of this kind has a use is searched for these.
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


# Formulas are matched first, so that their dollar signs are passed over: `$…$` without a space inside of the signs.
_FORMULA = r"\\\$|\$\$[^$]*\$\$|\$[^\s$](?:[^$]*[^\s$])?\$(?!\d)"
_WORD = r"[^\W\d]\w+"
_UNBRACED = re.compile(
    rf"{_FORMULA}|(?P<placeholder>\[\[[ ]?{_WORD}[ ]?\]\]|<<[ ]?{_WORD}[ ]?>>|%\({_WORD}\)s|(?<![A-Za-z0-9])\${_WORD})"
)


def unbraced_placeholders(text: str) -> list[str]:
    """The distinct placeholders of a text that other tools mark without braces, as they are written, in their order."""
    return list(dict.fromkeys(match["placeholder"] for match in _UNBRACED.finditer(text) if match["placeholder"]))
