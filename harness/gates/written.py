"""What a gate writes: its decision as JSON, Markdown, JUnit XML and a page, and the history of its decisions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import quoteattr

from msgspec.structs import replace

from harness.core import codec
from harness.core.errors import UsageError
from harness.core.files import read_named, read_record, write_atomically
from harness.core.inert import visible
from harness.gates.chart import chart
from harness.gates.decide import Gated
from harness.gates.policy import Policy
from harness.reports.formats import to_markdown
from harness.reports.page import tables_page
from harness.reports.tables import Table
from harness.runs.layout import GATE_FILES
from harness.runs.line_file import hold_lock

MAX_HISTORY_BYTES = 64 * 1024 * 1024
"""Largest history.jsonl that is read, in bytes."""

HISTORY = "history.jsonl"
"""Name of the file of former decisions in the policy's folder `history`."""


def read_history(policy: Policy) -> list[Gated]:
    """The former decisions, oldest first. Raises `UsageError` for a damaged file."""
    entries: list[Gated] = []
    if policy.history is None or not (path := policy.history / HISTORY).exists():
        return entries
    for number, line in enumerate(read_named(path, MAX_HISTORY_BYTES).splitlines(), 1):
        try:
            entries.append(codec.decode(line, Gated))
        except codec.DecodeError as error:
            raise UsageError(f"{path}:{number} is no decision of a gate: delete the line") from error
    return entries


def forget(policy: Policy, day: str) -> int:
    """Mark the runs that were sampled at this date, or time, so that they teach no deviation; return their number.

    Raises `UsageError` if there are none.
    """
    with _rewriting(policy) as entries:
        marked = [entry.sampled.startswith(day) for entry in entries]
        if not any(marked):
            held = ", ".join(entry.sampled for entry in entries[-8:])
            raise UsageError(f"no run of the history was sampled then: its latest are {held or 'none'}", field="forget")
        entries[:] = [
            replace(each, forgotten=True) if mark else each for each, mark in zip(entries, marked, strict=True)
        ]
    return sum(marked)


def written_in(folder: Path) -> Gated | None:
    """The decision that a folder holds; None without one. Raises `StoreError` for a damaged file."""
    remedy = "Put an intact copy back, or name another folder for the gate."
    return read_record(folder / GATE_FILES[0], Gated, MAX_HISTORY_BYTES, what="the decision of a gate", remedy=remedy)


@contextmanager
def _rewriting(policy: Policy) -> Iterator[list[Gated]]:
    """The former decisions, to change in place: they are stored after the block, with no other writer in between."""
    if policy.history is None:
        yield []
        return
    policy.history.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(policy.history, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with hold_lock(descriptor):
            yield (entries := read_history(policy))
            write_atomically(policy.history / HISTORY, b"".join(codec.encode(each) + b"\n" for each in entries))
    finally:
        os.close(descriptor)


def write(policy: Policy, gated: Gated, folder: Path) -> None:
    """Write gate.md, gate.xml (JUnit) and gate.html to `folder`, one line to the policy's history, and gate.json, by
    which a gate is known to be decided.
    """
    with _rewriting(policy) as entries:
        # A gate that is decided again, such as after a kill, keeps its line.
        number = next((i for i, former in enumerate(entries) if former.run == gated.run), len(entries))
        entries[number : number + 1] = [gated]
    decision, *pages = GATE_FILES
    shown = to_markdown([table(gated)]), junit(gated), page(policy, gated, entries)
    for name, text in zip(pages, shown, strict=True):
        write_atomically(folder / name, text.encode())
    write_atomically(folder / decision, codec.pretty(gated))


def table(gated: Gated) -> Table:
    """The decision as a table."""
    rows = tuple((each.benchmark, each.tier, each.state, each.why) for each in gated.checks)
    return Table(f"Gate {gated.gate}: {gated.verdict}", ("benchmark", "tier", "state", "why"), rows)


def page(policy: Policy, gated: Gated, entries: Sequence[Gated]) -> str:
    """The decision, a control chart of each benchmark, and the waivers, as a page."""
    tables = [table(gated)]
    if waivers := tuple((each.benchmark, each.reason, str(each.until)) for each in policy.waivers):
        tables.append(Table("Waivers", ("benchmark", "reason", "until"), waivers))
    charts = [chart(name, entries) for name in policy.benchmarks]
    return tables_page(f"Gate {gated.gate}", gated.verdict, tables, drawn=[each for each in charts if each["picture"]])


def junit(gated: Gated) -> str:
    """The decision as JUnit XML: a critical failure is a failure, what is not known an error, the rest passes."""
    cases = []
    for check in gated.checks:
        kind = ""
        if check.tier == "critical" and check.state not in ("pass", "waived"):
            kind = "failure" if check.state == "fail" else "error"
        why = quoteattr(f"{check.state}: {visible(check.why, 400)}")
        inner = f"<{kind} message={why}/>" if kind else f"<system-out>{why[1:-1]}</system-out>"
        named = f"classname={quoteattr(visible(gated.gate, 80))} name={quoteattr(visible(check.benchmark, 80))}"
        cases.append(f"  <testcase {named}>{inner}</testcase>\n")
    counts = {kind: sum(f"<{kind} " in case for case in cases) for kind in ("failure", "error")}
    head = f'name={quoteattr(visible(gated.gate, 80))} tests="{len(cases)}" failures="{counts["failure"]}"'
    whole = f'<testsuite {head} errors="{counts["error"]}">\n{"".join(cases)}</testsuite>\n'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{whole}'
