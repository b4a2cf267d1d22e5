"""The grader says of every labeled pair what is pinned.

For: reasoning_answers.find, reasoning_answers.compare, reasoning_answers.grammar, reasoning_answers, harness.grading.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.budget import share_of
from tests.pins import verdicts

OF_CARDS = {"rules", "question", "more"}
"""Fields of a row that a card states."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("is_largest", [True, False], ids=["largest set", "other sets"])
def test_the_grader_says_of_each_pair_what_is_pinned(is_largest: bool) -> None:
    """Of rows without a card's settings, all of which `packages/answers` grades itself, a share.

    Two tests, which take as long as each other and may run in two processes.
    """
    sets = verdicts.pinned()
    largest = max(sets, key=lambda name: len(sets[name]))
    sets = {
        name: [row for row in rows if OF_CARDS & row.more.keys()]
        + share_of(row for row in rows if not OF_CARDS & row.more.keys())
        for name, rows in sets.items()
        if (name == largest) == is_largest
    }
    changed = verdicts.changes(sets, verdicts.grade(sets))
    if changed:
        pytest.fail("\n".join([f"{len(changed)} verdicts changed:", *changed]), pytrace=False)


@pytest.mark.wide
def test_the_grader_does_on_rows_of_others_as_is_pinned(shared_data: Path) -> None:
    sets = verdicts.shared(shared_data)
    said = verdicts.grade(sets)
    found = {name: verdicts.counts(rows, said[name])._asdict() for name, rows in sets.items()}
    pinned = json.loads(verdicts.SHARED.read_text("utf-8"))
    assert found == {name: pinned[name] for name in found}


def test_no_pair_stands_twice_and_each_has_a_group() -> None:
    rows = [row for rows in verdicts.pinned().values() for row in rows]
    keys = [
        (row.reference, row.reply, *(json.dumps(row.more.get(key)) for key in ("options", "question", "rules", "more")))
        for row in rows
    ]
    assert [key for key, n in Counter(keys).items() if n > 1] == []
    assert {row.verdict for row in rows} == {"correct", "wrong", "undecided"}
    assert [row for row in rows if not row.more.get("group")] == []
