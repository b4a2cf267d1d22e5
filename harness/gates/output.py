"""Writes a gate's decision as JSON, Markdown, JUnit XML and a page, and the history of its decisions.

The page has a control chart of each benchmark: its nights as points with intervals, its reference and its limits. The
module also stores the plan of a gate's looks: replanning looks after some were made would break the promised rate of
false verdicts.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from msgspec.structs import replace

from harness.commands.imported_runs import open_scored
from harness.core import codec
from harness.core.errors import HarnessError, StoreError, UsageError
from harness.core.files import read_record, real, write_atomically
from harness.core.number_text import count_noun
from harness.core.sanitize import visible
from harness.deciding.paired_comparison import pairs
from harness.gates.decision import PASSING, Checked, Gated, past_nights
from harness.gates.policy import Policy
from harness.gates.samples import COUNTED, bits_of
from harness.reports.formats import to_markdown
from harness.reports.inputs import counted_questions, read_runs
from harness.reports.plots.pictures import PairedShares, scatter_plot
from harness.reports.plots.plot import AXIS, SERIES, Axis, Dot, Mark, Plot, Stroke, share_axis
from harness.reports.table import Table
from harness.runs.layout import GATE_FILES, GATE_PLAN
from harness.runs.line_file import append_line, line, read_appended
from harness.scoring.stats import Z_95
from harness.scoring.tally import CORRECT, QuestionTally

MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of gate.json in bytes."""

REMEDY = "Restore an intact copy, or use another folder for the gate."
"""The remedy for a damaged file of a gate."""

HISTORY = "history.jsonl"
"""Name of the file of earlier decisions in the policy's folder `history`. It is append-only, so gates that end at the
same time lose no line.
"""


def read_history(policy: Policy) -> list[Gated]:
    """The earlier decisions, oldest first; a run's last line counts. Raises `StoreError` for a damaged file."""
    remedy = "Set a different `history` in the policy, or remove the line."
    entries = [] if policy.history is None else read_appended(real(policy.history) / HISTORY, Gated, remedy)
    return [*{entry.run: entry for entry in entries}.values()]


def forget(policy: Policy, day: str) -> int:
    """Mark the runs sampled at this date or time to be ignored by later decisions; return their number.

    Raises `UsageError` if there are none.
    """
    entries = read_history(policy)
    marked = [replace(entry, forgotten=True) for entry in entries if entry.sampled.startswith(day)]
    if not marked:
        held = ", ".join(entry.sampled for entry in entries[-8:])
        raise UsageError(
            f"the history contains no run from that time: its latest runs are {held or 'none'}", field="forget"
        )
    _append(policy, marked)
    return len(marked)


def read_decision(folder: Path) -> Gated | None:
    """The decision in a folder; None if there is none. Raises `StoreError` for a damaged file."""
    return read_record(folder / GATE_FILES[0], Gated, MAX_BYTES, what="the decision of a gate", remedy=REMEDY)


def _append(policy: Policy, entries: Sequence[Gated]) -> None:
    """Append to the history, if the policy has one."""
    if policy.history is not None:  # resolved because the user may specify a link
        append_line(real(policy.history) / HISTORY, b"".join(map(line, entries)))


def write(policy: Policy, gated: Gated, folder: Path) -> list[str]:
    """Write gate.md, gate.xml (JUnit) and gate.html to `folder`, one line to the policy's history, and finally
    gate.json, which marks the gate as decided. Returns a sentence for each share on the replies that broke.
    """
    entries = {entry.run: entry for entry in (*read_history(policy), gated)}
    decision, *pages = GATE_FILES
    changes = changes_since(gated, [*entries.values()])
    shown = to_markdown([table(gated)]), junit(gated), page(policy, gated, [*entries.values()], changes)
    for name, text in zip(pages, shown, strict=True):
        write_atomically(folder / name, text.encode())
    _append(policy, [gated])
    write_atomically(folder / decision, codec.pretty(gated))
    return [each.summary if isinstance(each, Plot) else each for each in changes.values()]


def table(gated: Gated) -> Table:
    """The decision as a table."""
    rows = tuple((each.label, each.tier, each.state, each.why) for each in gated.lines)
    return Table(gated.sentence, ("benchmark", "tier", "state", "why"), rows)


Changes = Mapping[str, Plot | str]
"""By label of a share: the 2 × 2 picture of the replies that broke since the last comparable run, or why there is none.
"""


def page(policy: Policy, gated: Gated, entries: Sequence[Gated], changes: Changes) -> str:
    """The decision, the replies that broke, a control chart of each benchmark, and the waivers, as a page."""
    from harness.reports.page import tables_page  # imported late: it needs Jinja

    tables = [dataclasses.replace(table(gated), title="Benchmarks and metrics")]
    if waivers := tuple((each.benchmark, each.reason, str(each.until)) for each in policy.waivers):
        tables.append(Table("Waivers", ("benchmark", "reason", "until"), waivers))
    passing = {check.label for check in gated.checks if check.state in PASSING}
    # The lines that decide come first.
    labels = [line.label for line in sorted(policy.lines, key=lambda line: line.label in passing)]
    plots = [plot for label in labels for plot in (changes.get(label), chart(label, entries))]
    return tables_page(f"Gate {gated.gate}", gated.sentence, tables, [each for each in plots if isinstance(each, Plot)])


def junit(gated: Gated) -> str:
    """The decision as JUnit XML: a critical failure is a failure, an unknown critical result is an error, and the rest
    passes.
    """
    cases = []
    for check in gated.lines:
        kind = ""
        if check.is_critical and check.state not in PASSING:
            kind = "failure" if check.state == "fail" else "error"
        why = quoteattr(f"{check.state}: {visible(check.why, 400)}")
        inner = f"<{kind} message={why}/>" if kind else f"<system-out>{why[1:-1]}</system-out>"
        named = f"classname={quoteattr(visible(gated.gate, 80))} name={quoteattr(visible(check.label, 80))}"
        cases.append(f"  <testcase {named}>{inner}</testcase>\n")
    counts = {kind: sum(f"<{kind} " in case for case in cases) for kind in ("failure", "error")}
    head = f'name={quoteattr(visible(gated.gate, 80))} tests="{len(cases)}" failures="{counts["failure"]}"'
    whole = f'<testsuite {head} errors="{counts["error"]}">\n{"".join(cases)}</testsuite>\n'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{whole}'


# ---- the plan of the looks


MAX_PLAN_BYTES = 1024 * 1024
"""Maximum size of a plan file in bytes."""


def read_plan(folder: Path) -> dict[str, Any] | None:
    """The plan stored in a gate's folder; None if there is none. Raises `StoreError` for a damaged file."""
    return read_record(folder / GATE_PLAN, dict[str, Any], MAX_PLAN_BYTES, what="the plan of a gate", remedy=REMEDY)


def settle_plan(folder: Path, plan: Mapping[str, Any], *, begun: bool) -> None:
    """Store the plan at the first start; later, compare it with the stored plan.

    begun: whether looks at samples were already made. Raises `UsageError` if the two plans differ, or if there were
    looks without a stored plan; `StoreError` as in `read_plan`.
    """
    stored = read_plan(folder)
    if stored is None and begun:
        raise UsageError(
            f"{visible(str(folder), 200)} contains samples of a gate but no {GATE_PLAN}, which specifies when "
            "to evaluate them: use another folder for the gate",
            field="out",
        )
    if stored is None:
        write_atomically(folder / GATE_PLAN, codec.pretty(plan))
    elif stored != plan:
        names = [name for name in {**stored, **plan} if stored.get(name) != plan.get(name)]
        # A gate's benchmarks are mappings, which are too long for a sentence.
        whole = [name for name in names if isinstance(plan.get(name), Mapping)]
        changed = ", ".join(f"other {name}" if name in whole else f"{name} {stored.get(name)}" for name in names)
        raise UsageError(
            f"this gate started with {visible(changed, 200)}, which cannot be changed later: use the same settings, "
            "or another `out` for a new gate"
        )


# ---- the replies that broke since the last comparable run


MAX_BROKEN_CHARS = 600
"""Maximum length of the names of broken replies."""


def changes_since(gated: Gated, entries: Sequence[Gated]) -> Changes:
    """The `Changes` of a run. entries: all decisions; only earlier ones of the same state count."""
    changes, former = dict[str, Plot | str](), [*takewhile(lambda entry: entry.run != gated.run, entries)]
    for check in gated.checks:
        keys = check.label, check.key
        same = [e for e in former if not e.forgotten and any((c.label, c.key) == keys for c in e.checks)]
        if not (check.share and check.key and same):
            continue
        days = [entry.sampled[:16] for entry in (same[-1], gated)]
        since = f"{check.label} since {days[0]}"
        try:
            first, second = read_runs([open_scored(Path(e.run.rpartition(" ")[0])) for e in (same[-1], gated)])
            if first.manifest.created != same[-1].sampled:
                raise StoreError("the folder contains a later run")
            both = pairs(*(counted_questions(run, run.benchmarks[check.benchmark]) for run in (first, second)))
        except (HarnessError, KeyError):
            changes[check.label] = f"{since}: unknown, because the earlier replies cannot be read"
            continue
        rows = [row for items in both for row in _paired_replies(*items, check.share)]
        counts = Counter((old, new) for _, old, new, *_ in rows)
        broken = [name for name, old, new, *_ in rows if old > new]
        names = f": {visible(', '.join(broken), MAX_BROKEN_CHARS)}" * bool(broken)
        sentence = (
            f"{since}: {counts[1, 1]:,} of {count_noun(len(rows), 'reply', 'replies')} intact "
            f"both times, {counts[0, 1]:,} mended, {counts[0, 0]:,} broken both times, {len(broken):,} broke{names}"
        )
        plot = scatter_plot(days[0], days[1], rows, ("broken", "intact"))
        changes[check.label] = dataclasses.replace(plot, title=since, summary=sentence)
    return changes


def _paired_replies(first: QuestionTally, second: QuestionTally, share: str) -> Iterator[PairedShares]:
    """The samples of a question that count toward a share in both runs, each good (1) or not (0) in each run."""
    ours, theirs = (dict(zip(of.facts["index"], bits_of(of, share), strict=True)) for of in (first, second))
    for index in sorted(ours.keys() & theirs.keys()):
        if ours[index] & theirs[index] & COUNTED:
            name = f"{first.question.question_id} sample {index}"
            yield name, float(ours[index] & CORRECT > 0), float(theirs[index] & CORRECT > 0), 1, 1


# ---- the control chart


MAX_NIGHTS = 90
"""Largest number of nights that a chart shows; the latest ones are shown."""

COLORS = {"pass": SERIES[0], "fail": SERIES[1], "waived": SERIES[4]}
"""State of a night → the color of its point; other states have the axis color."""

CAPTION = (
    "Points: runs, with 95% intervals for sampling and deviation. Filled points are in the accepted state; hollow "
    "points are not. Blue: passed; red: failed; ochre: waived; gray: undecided. Line: the "
    "reference. A run fails at or below the red dashed line and passes at or above the blue dashed line."
)


def chart(label: str, entries: Sequence[Gated]) -> Plot | None:
    """The control chart of an accuracy or a share; None if no night has one."""
    nights = [(entry, check) for entry in entries for check in entry.checks if check.label == label]
    shown = [(entry, check) for entry, check in nights if check.accuracy is not None][-MAX_NIGHTS:]
    if not shown:
        return None
    latest = shown[-1][1]
    taught = [id(check) for check in past_nights(latest.benchmark, latest.key, entries) if not check.odd]
    marks: list[Mark] = []
    for color, dash, of in ((AXIS, "", -1), (SERIES[1], "4 3", 0), (SERIES[0], "4 3", 1)):
        ends = [(number + half, check) for number, (_, check) in enumerate(shown) for half in (-0.5, 0.5)]
        drawn = [(x, check.reference if of < 0 else _limits(check)[of]) for x, check in ends]
        marks.append(Stroke(drawn, color, 1, dash=dash))
    for number, (entry, check) in enumerate(shown):
        color, (low, high) = COLORS.get(check.state, AXIS), _interval(check)
        marks.append(Stroke([(number, low), (number, high)], color, 1.5, 0.6))
        title = f"{entry.sampled} {check.state}: {check.why}"
        size = max(0.5, min(1.0, 30 / len(shown)))
        at = (number, check.accuracy or 0.0)
        marks.append(Dot(at, color, size=size, hollow=id(check) not in taught, title=title))
    seen = [end for _, check in shown for end in (*_interval(check), check.reference, *_limits(check))]
    days = [(number, visible(entry.sampled[:10], 10)) for number, (entry, _) in enumerate(shown)]
    return Plot(
        name=f"gate-{label}",
        title=visible(label, 80),
        summary=CAPTION,
        columns=("run", "sampled", "state", "accuracy", "low", "high", "reference", "loss"),
        rows=tuple(
            (entry.run, entry.sampled, check.state, check.accuracy, *_interval(check), check.reference, check.loss)
            for entry, check in shown
        ),
        x=Axis(-0.5, len(shown) - 0.5, days),
        y=share_axis(seen, latest.share or "accuracy"),
        marks=marks,
    )


def _limits(check: Checked) -> tuple[float, float]:
    """The highest accuracy that fails and the lowest that passes; for older gates, the reference minus the loss, and
    the reference.
    """
    return check.limits or (check.reference - check.loss, check.reference)


def _interval(check: Checked) -> tuple[float, float]:
    """The accuracy of a night minus and plus the 95% half-width for sampling and deviation."""
    reach = Z_95 * math.sqrt(check.variance + check.deviation**2)
    return max(0.0, (check.accuracy or 0.0) - reach), min(1.0, (check.accuracy or 0.0) + reach)
