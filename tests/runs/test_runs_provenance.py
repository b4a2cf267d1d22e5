"""Whether a server may go on with a run: the same weights in another place may, others under the same name may not."""

from __future__ import annotations

from typing import Any

import pytest

from harness.core.records import ServerFacts
from harness.runs.manifest import Provenance, changes_of

HERE = {"source": "/models/a", "root": "/models/a", "files.weights": "names", "files.weights_sample": "w"}


def known(**more: Any) -> Provenance:
    return Provenance().after("now", {"http://h": ServerFacts(model={**HERE, **more})}, [])


def changed(before: Provenance, **now: Any) -> tuple[set[str], set[str]]:
    """Fields that refuse, and fields that warn."""
    facts = ServerFacts(model={name: value for name, value in {**HERE, **now}.items() if value is not None})
    changes = changes_of(before, {"http://h": facts})
    return {change.field for change in changes.model}, {one.field for one in changes.host}


def test_weights_that_were_moved_only_warn() -> None:
    moved = {"source": "/other/a", "root": "/other/a", "files.weights": "other names"}
    assert changed(known(), **moved) == (set(), {"source", "root", "files.weights"})


@pytest.mark.parametrize(
    "now",
    [
        {"source": "/other/a", "files.weights_sample": "v"},  # other weights in another place
        {"files.weights_sample": "v"},  # other weights in the same place
        {"source": "/other/a", "files.weights_sample": None},  # a place is all that is told
    ],
)
def test_other_weights_are_refused_wherever_they_lie(now: dict[str, Any]) -> None:
    refused, warned = changed(known(), **now)
    assert refused == {name for name, value in now.items() if value is not None}
    assert not warned


def test_what_else_changes_the_replies_is_refused_also_of_the_same_weights() -> None:
    refused, warned = changed(known(quantization=None), source="/other/a", quantization="fp8")
    assert (refused, warned) == ({"quantization"}, {"source"})


def test_the_whole_checksum_decides_where_both_tell_it() -> None:
    before = known(**{"files.weights_sha256": "1"})
    refused, _ = changed(before, source="/other/a", **{"files.weights_sha256": "2"})
    assert refused == {"source", "files.weights_sha256"}
