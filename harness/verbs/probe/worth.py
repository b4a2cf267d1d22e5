"""Chooses the checks that a budget of tokens is spent on: those that find the most kinds of faults for their price.

`bench/simulate_probe.py` has measured which simulated kinds of faults each check finds. The kinds are gathered into
classes: `FINDS` lists the classes that a check finds, and `CLASSES` the number of kinds in a class. A check's worth is
the number of kinds that it finds and no check chosen so far does, plus `OWN` for faults that are not simulated. The
next check is the one with the highest worth per token that still fits (the greedy method for a cover of limited cost:
Khuller, Moss and Naor 1999, Inf. Process. Lett. 70:39). So a check with long replies that finds seven kinds is chosen
before a check of a hundred draws that finds only one of them.

The comparison with a reference comes before all other checks: whoever names a reference asks for it. Beside it, `later
draws` comes next, since scores are sampled at a temperature above 0. Where greedy replies do not repeat, `temperature
0` comes before that, since it finds out why.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from harness.verbs.probe.findings import Check, ProbeReport

OWN = 0.5
"""Worth of a check beyond the simulated kinds of faults: it may find a fault that was not simulated."""

GREEDY, WARM = "temperature 0", "later draws"
"""The checks that come first where greedy replies do not repeat, and beside a reference."""

CLASSES: Mapping[str, int] = {
    "no reply": 1,
    "unfinished streams": 1,
    "empty replies": 1,
    "an early end": 3,
    "a wrong length": 2,
    "a token less": 1,
    "a cap": 5,
    "a lost piece of a stream": 1,
    "spaces lost in a stream": 1,
    "marks changed in a stream": 5,
    "lost characters": 1,
    "usage": 2,
    "stop texts": 1,
    "greedy": 3,
    "temperature": 2,
    "top_k ignored": 1,
    "top_p ignored": 1,
    "min_p ignored": 1,
    "a cut filled in": 1,
    "one seed or a cache": 2,
    "seeds": 1,
    "penalties": 1,
    "later temperature": 3,
    "later cuts forgotten": 3,
    "later cuts filled in": 2,
    "a draft model": 1,
    "a decode kernel": 2,
    "replicas": 5,
    "lost messages": 4,
    "an added system prompt": 2,
    "BOS": 2,
    "a long prompt cut": 7,
    "a prompt cut at the context": 1,
    "load": 5,
    "a prefix cache": 3,
    "broken calls": 8,
    "calls in streams": 1,
    "tool_choice": 1,
    "wrong parameters": 2,
    "pictures": 1,
    "another model at some places": 1,
}
"""Class of faults → number of its simulated kinds; each kind is in one class."""

FINDS: Mapping[str, tuple[str, ...]] = {
    "reply text": ("no reply",),
    "finished streams": ("unfinished streams",),
    "empty replies": ("empty replies",),
    "streaming": ("a lost piece of a stream", "spaces lost in a stream"),
    "usage": ("usage",),
    "length": ("a wrong length", "a token less"),
    "stop texts": ("stop texts",),
    "characters": ("lost characters",),
    "ends": ("an early end", "a wrong length"),
    "long stream": ("a cap", "an early end"),
    "messages": ("lost messages",),
    "added words": ("an added system prompt",),
    "copied text": ("marks changed in a stream", "lost characters", "spaces lost in a stream"),
    "refused parameters": ("wrong parameters",),
    "pictures": ("pictures",),
    "one model": ("replicas",),
    "opening": ("BOS",),
    "temperature 0": ("greedy", "a draft model"),
    "temperature 1": ("temperature",),
    "temperature 0.5": ("temperature",),
    "whole distribution": ("temperature", "a cut filled in"),
    "top_k": ("top_k ignored",),
    "top_p": ("top_p ignored",),
    "min_p": ("min_p ignored",),
    "penalties": ("penalties",),
    "same seed": ("seeds",),
    "other seed": ("one seed or a cache",),
    "no cached replies": ("one seed or a cache",),
    "later draws": ("temperature", "later temperature", "later cuts filled in", "a draft model"),
    "later draws at 0.5": ("temperature", "later temperature", "greedy", "a draft model"),
    "later cuts": (
        *("top_k ignored", "top_p ignored", "min_p ignored"),
        *("later cuts forgotten", "later cuts filled in", "a draft model"),
    ),
    "writing and reading": ("a decode kernel",),
    "context": ("a long prompt cut", "a prompt cut at the context"),
    "too long a prompt": ("a prompt cut at the context",),
    "load": ("load",),
    "prefix cache": ("a prefix cache",),
    "tool calls": ("broken calls",),
    "streamed calls": ("calls in streams",),
    "tool choice": ("tool_choice",),
    "weights": ("another model at some places", "replicas"),
}
"""Check → the classes that it finds. A check that is not here finds none of the simulated kinds."""


def allotted(
    checks: Sequence[Check], budget: int, earlier: Collection[str] = (), *, unrepeated: bool = False
) -> dict[str, int]:
    """Name of a check that the budget is spent on → tokens that the check may cost, at most `budget` in all.

    Tokens that are left over go to the check whose prompt may have any length. earlier: names of checks that were made
    before, whose classes count as found. unrepeated: whether greedy replies did not repeat.
    """
    left, classes = budget, {kind for name in earlier for kind in FINDS.get(name, ())}
    beside = "greedy replies" in {*earlier, *(check.name for check in checks)}

    def rank(check: Check) -> tuple[bool, bool, bool, float]:
        """The order in which checks are chosen, the largest first."""
        cold, warm = unrepeated and check.name == GREEDY, beside and check.name == WARM
        # The worth is divided by the price, since ten cheap checks may together find more than a dear one.
        return check.group == "reference", cold, warm, worth(check, classes) / max(check.least_tokens, 1)

    rooms = dict[str, int]()
    while fitting := [check for check in checks if check.name not in rooms and check.least_tokens <= left]:
        best = max(fitting, key=rank)
        left -= best.least_tokens
        rooms[best.name] = best.least_tokens
        classes |= set(FINDS.get(best.name, ()))
    # A longer prompt finds cuts at larger lengths, so the tokens left over are of use there.
    for check in checks:
        if check.name in rooms and check.shortest is not None:
            rooms[check.name] += left
            left = 0
    return rooms


def unfound(checks: Sequence[Check], names: Collection[str]) -> Mapping[str, int]:
    """Name of each check that is not in `names` → number of simulated kinds of faults that it finds and no check in
    `names` does.
    """
    classes = {kind for name in names for kind in FINDS.get(name, ())}
    return {check.name: int(worth(check, classes) - OWN) for check in checks if check.name not in names}


def worth(check: Check, classes: set[str]) -> float:
    """How many kinds of faults the check finds beyond the classes in `classes`."""
    return OWN + sum(CLASSES[name] for name in FINDS.get(check.name, ()) if name not in classes)


def unwarmed(report: ProbeReport) -> bool:
    """Whether checks that find a wrong temperature above 0 were selected, and none of them came to a result."""
    warm = [finding for finding in report.findings if "temperature" in FINDS.get(finding.check, ())]
    return bool(warm) and not any(row.outcome in ("sound", "spoils") for row in warm)


def unexplained(report: ProbeReport) -> bool:
    """Whether greedy replies did not repeat, and the check that finds out why was not made."""
    explains = any(finding.check == GREEDY and finding.outcome != "untested" for finding in report.findings)
    return report.unrepeated and not explains
