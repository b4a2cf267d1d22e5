"""`harness doctor`: checks that plug-ins load, that the grader accepts every card's own references, and that a run's
journal is intact.
"""

from __future__ import annotations

import os
import platform
import shlex
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from harness.benchmarks.sources.images import shared_folder
from harness.cli import terminal
from harness.core import plugins
from harness.core.errors import Exit, HarnessError, StoreError, UsageError
from harness.core.number_text import count_noun, is_are
from harness.core.sanitize import quoted, visible
from harness.grading.external_graders import is_elsewhere, require_package
from harness.options.display import DoctorCommand

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from harness.benchmarks.card import Card

PACKAGES = ("openai", "httpx", "mpmath", "xllamacpp", "huggingface-hub")
"""Packages whose versions doctor prints."""
SHOWN_FAILURES = 3
"""Largest number of failing references named for each card, and of references that no rule can parse."""
FETCH = "harness benchmarks fetch"
"""The command that downloads a card's data, without the card's name."""


def carry_out(options: DoctorCommand) -> int:
    """Run the checks that the options select. Returns the exit code."""
    if options.demo:
        from harness.cli.demo import run_demo

        return run_demo()
    if options.runs:
        damaged = [path for path in options.runs if _damaged(path)]
        return StoreError.exit_code if damaged else Exit.YES
    if options.cards:
        passed, needed = _cards(options.cards)
        _conditions(needed)
        return Exit.YES if passed else Exit.NO
    click.echo(f"Python {platform.python_version()} on {platform.platform()}")
    for name in PACKAGES:
        click.echo(f"  {name} {_version(name)}")
    click.echo(f"  {_image_cache()}")
    _conditions(plugins.names("answer"))
    usable = _plugins()
    return Exit.YES if _cards(())[0] and usable else Exit.NO


def _image_cache() -> str:
    """The size of the cache of images, and the command that empties it."""
    folder = shared_folder().path
    sizes = [entry.stat().st_size for entry in os.scandir(folder)] if folder.is_dir() else []
    cached = f"image cache: {count_noun(len(sizes), 'image')}, {sum(sizes) / 1e6:,.1f} MB"
    return cached + (f"; to empty it when no run is starting: rm -r {shlex.quote(str(folder))}" if sizes else "")


def _plugins() -> bool:
    """Print a line for each plug-in of an installed package, with the reason if it cannot be loaded; return whether all
    can.
    """
    usable = True
    for plugin in plugins.list_plugins():
        try:
            plugins.load(plugin.kind, plugin.name)
            state = "usable"
        except UsageError as error:
            usable, state = False, error.sentence
        package, value = visible(plugin.package, 100), visible(plugin.value, 100)
        click.echo(f"  {plugin.kind} {visible(plugin.name, 100)} of {package} ({value}): {state}")
    return usable


def _conditions(graders: Iterable[str]) -> None:
    """For each package that decides answers, print whether it can decide answers on this machine."""
    for name in sorted(graders):
        try:
            status = require_package(name).sandbox_status()
        except UsageError as error:
            status = error.sentence
        click.echo(f"  {visible(status, 400)}")


def _version(package: str) -> str:
    """The version of an installed package, or `not installed`."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cards(names: tuple[str, ...]) -> tuple[bool, set[str]]:
    """For each card, print whether the grader accepts its reference answers and rejects changed ones.

    names: cards or question files; empty: all cards whose data is on this machine. Returns whether all pass,
    and the packages that decide their answers.
    """
    from harness.benchmarks import catalog
    from harness.commands import card_data

    tests: list[CardTest] = []
    n_absent = 0
    cards = [catalog.load(name) for name in names] or catalog.cards()
    for card in cards:
        if not names and card_data.status(card) == "absent":
            n_absent += 1
            continue
        try:
            tests.append(_test_card(card))
        except HarnessError as error:
            tests.append(CardTest((card.name, "–", "–", "–", str(error)), passed=False))
    header = ("benchmark", "references", "equal themselves", "differ when changed", "result")
    terminal.table(header, [test.row for test in tests])
    if n_absent:
        click.echo(
            f"not tested, because their data has not been downloaded: {count_noun(n_absent, 'card')} (`{FETCH} NAME`)"
        )
    for test in tests if names else ():
        for warning in test.warnings:
            click.echo(f"warning: {warning}")
    return all(test.passed for test in tests), {name for test in tests for name in test.extensions}


class CardTest(NamedTuple):
    """The test of a card's references.

    row: the card's table row. extensions: the extensions that decide its answers. warnings: sentences about references
    that replies rarely match, and a run's warning if most references are sentences.
    """

    row: tuple[str, ...]
    passed: bool
    extensions: Collection[str] = ()
    warnings: Collection[str] = ()


def _test_card(card: Card) -> CardTest:
    """Test one card. Raises `HarnessError` if its data cannot be read."""
    from harness.benchmarks import questions
    from harness.grading.processes.pool import grader_names
    from harness.grading.selftest import self_test
    from harness.preparing.question_warnings import is_sign, sentence_warnings

    question_set = questions.build(card)
    card_questions = question_set.questions
    warnings = [*question_set.notes, *sentence_warnings([question_set])]
    extensions = {question.rules.grader for question in card_questions if is_elsewhere(question.rules.grader)}
    grader_names(question for question in card_questions if not is_elsewhere(question.rules.grader))
    result = self_test(card_questions)
    unread = [(name, reference) for name, reference in result.unread if not is_sign(reference)]
    warnings += [
        f"{card.name}, question {visible(name, 60)}: no rule can parse the reference “{visible(reference, 100)}”, "
        f"so replies rarely match it; use a value instead, such as a number with its unit"
        for name, reference in unread[:SHOWN_FAILURES]
    ]
    if result.verifiers:
        shown = f"not tested: graded by {', '.join(map(quoted, result.verifiers))}; try it with `harness grade`"
        return CardTest((card.name, "–", "–", "–", shown), result.passed, extensions, warnings)
    n_accepted = result.n_references - len(result.not_itself)
    n_refused = result.n_changed - len(result.not_distinct)
    failures = [quoted(reference) for _, reference in result.not_itself]
    failures += [f"{quoted(reference)} = {quoted(answer)}" for _, reference, answer in result.not_distinct]
    shown = "; ".join(failures[:SHOWN_FAILURES]) + (" …" if len(failures) > SHOWN_FAILURES else "")
    tested = (str(result.n_references), f"{n_accepted}/{result.n_references}", f"{n_refused}/{result.n_changed}")
    return CardTest((card.name, *tested, shown or "passed"), result.passed, extensions, warnings)


def _damaged(path: Path) -> bool:
    """Read every record of a run and report damage. Returns whether anything is damaged."""
    from harness.commands.imported_runs import open_scored
    from harness.runs import JournalReport, Manifest, grades, questions, read_samples
    from harness.scoring.journal_grades import n_scored

    folder = open_scored(path)
    damaged = False
    for name, record in Manifest.load(folder).benchmarks.items():
        try:
            questions.read_planned(folder.benchmark(name), record)
        except StoreError as error:
            click.echo(f"  {visible(str(error))}")
            damaged = True
        report = JournalReport()
        n = sum(1 for _ in read_samples(folder.benchmark(name), report=report))
        click.echo(
            f"{folder.path.name}/{visible(name)}: {count_noun(n, 'sample')}, "
            f"{count_noun(report.n_duplicates, 'repeated record')}"
        )
        for line in report.damaged:
            click.echo(f"  line {line.number}: {line.reason}; the next `harness run` requests its sample again")
        if report.torn_tail:
            click.echo(f"  an incomplete last line of {report.torn_tail} bytes; the next `harness run` removes it")
        for warning in report.warnings:
            click.echo(f"  {warning}")
        spoilt, n_before = list[str](), n_scored(folder.benchmark(name))  # before the grades, which are written first
        n_grades = sum(1 for _ in grades.read_stored(folder.benchmark(name), spoilt))
        if (lost := n_before - n_grades - len(spoilt)) > 0:
            spoilt.append(f"{count_noun(lost, 'grade')} of the score {is_are(lost)} missing")
        path = folder.benchmark(name).grades
        first = "delete it, then " if path.is_dir() or path.is_symlink() else ""
        for what in spoilt:
            click.echo(f"  grades.jsonl: {what}; {first}run `harness score` to repair it")
        damaged = damaged or bool(report.damaged or spoilt)
    return damaged
