"""Names that a reply must contain (RULER), a text that it must repeat (MRCR), nodes that it must list (GraphWalks), and
text that it must have read in a picture (OCRBench).
"""

from __future__ import annotations

import difflib
import json
import re

from harness.core.records import Question
from harness.grading.verifier import Parts

PARTS = 10_000
"""Number of parts of an answer that is scored as a fraction; the fraction is rounded down to whole parts."""


def named(answer: str, question: Question) -> Parts:
    """How many of the reference's texts the reply names, ignoring letter case.

    `{"all": [...]}`: each text is a part. `{"any": [...]}`: one of the texts is enough, and is the only part.
    """
    ((how, texts),) = json.loads(question.references[0]).items()
    reply = answer.casefold()
    is_named = [text.casefold() in reply for text in texts]
    return Parts(sum(is_named), len(texts)) if how == "all" else Parts(int(any(is_named)), 1)


def read_off(answer: str, question: Question) -> bool:
    """Whether the reply contains one of the reference's texts, by OCRBench's own rule: ignoring letter case and line
    ends, and blanks in formulas.
    """
    ((how, texts),) = json.loads(question.references[0]).items()

    def folded(text: str) -> str:
        line = text.strip().replace("\n", " ")
        return line.replace(" ", "") if how == "formulas" else line.lower()

    reply = folded(answer)
    return any(folded(text) in reply for text in texts)


def repeated(answer: str, question: Question) -> Parts:
    """How much of the reference the reply repeats after the row's random text, by the ratio of `SequenceMatcher`;
    nothing if the reply does not begin with that text.
    """
    first, reply = str(question.metadata["random_string_to_prepend"]), answer.lstrip()
    if not reply.startswith(first):
        return Parts(0, PARTS)
    matcher = difflib.SequenceMatcher(None, reply.removeprefix(first), question.references[0].removeprefix(first))
    return Parts(int(matcher.ratio() * PARTS), PARTS)


def listed(answer: str, question: Question) -> Parts:
    """How well the nodes listed after "Final Answer:" on the last line agree with the reference's, by their F1."""
    expected = set(json.loads(question.references[0]))
    line = re.search(r"Final Answer: ?\[(.*)\]", answer.rstrip().rpartition("\n")[2])
    if line is None:
        return Parts(0, PARTS)
    nodes = {node for item in line[1].split(",") if (node := item.strip())}
    n_nodes = len(nodes) + len(expected)
    return Parts(2 * len(nodes & expected) * PARTS // n_nodes if n_nodes else PARTS, PARTS)
