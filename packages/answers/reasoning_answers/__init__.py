"""Answers of language models: found in a reply, compared with a reference, and explained.

    reply ─ search ─► Extraction ─ decide ─► Verdicts on texts ─ conclude ─► Verdict

    grammar      parses an answer into a tree
    find         where the answer is in a reply: by patterns, in linear time, without parsing it
    compare      whether two answers are the same, and by which rule
    search       finds the answer to a question in a reply: `find` with its reasoning, calls and other boxes
    verdict      puts search and compare together
    steps        a verdict in words
    rewards      reward functions with the signatures of TRL, open-r1 and verl

Guarantees: no text is executed, whether of a reply, a reference or a schema. Searching takes time linear in the text.
The limits of a comparison are in `bounds`. Not covered: a deadline in seconds, which needs a process that can be
killed.
"""

from __future__ import annotations

__version__ = "0.1.0"
