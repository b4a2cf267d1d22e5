r"""A heading 答案 with the answer on a line of its own below: `### 答案`, `**错误**`, read as 答案：错误.

The line must be nothing but a judgement, a quantity, named quantities or a formula (`whole_clause`), and the end of the
reply or followed by a further heading or a section of explanation. Any other line is read without its heading, as a
sentence.
"""

from __future__ import annotations

import re

from harness.answers.words import without_text_commands
from harness.grading.compare.named_quantities import names_quantities
from harness.grading.find.chinese import quantity_of
from harness.grading.find.explanation import opens
from harness.grading.find.whole_clause import is_formula, is_judgement

MAX_LINE_CHARS = 120
"""Longest line under a heading that is read as its answer, in characters."""

_HEADING = re.compile(
    r"(?m)^[ \t]*+(?:#{1,6}[ \t]++(?:\*\*)?|\*\*|【)(?:正确|参考|标准|最终)?答案[：:]?(?:\*\*|】)?[：:]?[ \t]*+\n\s*+"
    rf"(?P<line>\S[^\n]{{0,{MAX_LINE_CHARS}}}+)(?=\Z|\n\s*+(?P<next>[^\n]*+))"
)
_MARKS = " \t*_`$。."
_LABEL = "答案："


def with_label_for_heading(tail: str) -> str:
    """Return the end of a reply with 答案： in place of the headings above an answer; of the same length."""
    if "答案" not in tail:
        return tail
    return _HEADING.sub(_with_label, tail)


def _with_label(heading: re.Match[str]) -> str:
    """Return a heading and its line as a label and the line, if the line is an answer as a whole."""
    line = heading["line"].strip(_MARKS)
    behind = heading["next"] or ""
    ends = not behind or behind.startswith(("#", "【", "---")) or opens(behind)
    is_answer = is_judgement(line) or names_quantities(line) or quantity_of(line) is not None
    is_answer = is_answer or is_formula(without_text_commands(line), line)
    if not ends or not is_answer:
        return heading.group()
    n_before = heading.start("line") - heading.start()
    return f"{' ' * (n_before - len(_LABEL) - 1)}\n{_LABEL}{heading['line']}"
