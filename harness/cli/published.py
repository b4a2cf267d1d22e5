"""`harness published`: what all public sources say of a model, and the local index that holds them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from harness.asking.options import PublishedUpdateOptions
from harness.cli import terminal
from harness.cli.flags import takes
from harness.cli.help import SpelledCommand, SpelledGroup
from harness.cli.json_output import json_option, say
from harness.core.inert import visible

if TYPE_CHECKING:
    from harness.scoring.published.index import FoundScore

MAX_LISTED_REASONS = 10
"""An update lists at most this many reasons for which results were left out, the commonest first."""


class _ShowByDefault(SpelledGroup):
    """A group in which a first word that is no command is a model's name: `show` may be left out."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["show", *args]
        return super().resolve_command(ctx, args)


def _prints() -> Any:
    """Return the type of what this command prints with `--json`; its JSON schema is made from it."""
    from harness.verbs.published import PublicScores

    return PublicScores


def _prints_updates() -> Any:
    """Return the type of what this command prints with `--json`; its JSON schema is made from it."""
    from harness.verbs.published import PublishedUpdate

    return list[PublishedUpdate]


@click.group("published", cls=_ShowByDefault)
def command() -> None:
    """List what is published of a model: the scores that are shipped, and those of a local index, which `update` makes
    from the records of Every Eval Ever and from the hub.

    \b
    harness published Qwen/Qwen3-32B
    harness published Qwen/Qwen3-32B aime25
    harness published update --from ~/EEE_datastore
    harness verify results/mine --against any
    """


@command.command("show", cls=SpelledCommand)
@click.argument("model")
@click.argument("benchmark", required=False)
@json_option(_prints, "the scores")
def show(model: str, benchmark: str | None, as_json: bool) -> None:
    """List the public scores of MODEL, on BENCHMARK or on all. The word `show` may be left out.

    Scores under similar names may be another model's (another precision, release, organisation or thinking mode). They
    are listed below, with what differs, and count in no verdict.

    \b
    harness published show Qwen/Qwen3-32B aime25
    """
    from harness.scoring.stated_samples import doubt
    from harness.verbs.published import published

    scores = published(model, benchmark)
    if as_json:
        say(scores)
        return
    if scores.scores:
        terminal.table(_HEADER, [_row(row) for row in scores.scores])
        for row in scores.scores:
            if words := doubt(row.score, None):
                score = row.score
                click.echo(
                    f"{score.benchmark} {score.metric} {score.printed} by {visible(score.source.title, 100)}: {words}"
                )
    if scores.near:
        click.echo("Names that may be another model:")
        terminal.table((*_HEADER, "what differs"), [(*_row(row), row.match.guess) for row in scores.near])


@command.command("update", cls=SpelledCommand, verb="published update")
@takes(PublishedUpdateOptions)
@json_option(_prints_updates, "what was read")
def update(as_json: bool, **given: Any) -> None:
    """Bring the local index of public scores up to date. Files that have not changed are not read again, and an update
    that was interrupted goes on by the same command. `--from hub` needs the network, a folder does not.

    \b
    harness published update --from ~/EEE_datastore
    harness published update --from ~/models     (holds OWNER/MODEL/.eval_results/*.yaml)
    """
    from harness.verbs.published import update as update_index

    updates = update_index(PublishedUpdateOptions.of(**given), _show_progress)
    if sys.stderr.isatty():
        click.echo(err=True)  # ends the line of the progress
    if as_json:
        say(updates)
        return
    for entry in updates:
        counts = entry.updated
        click.echo(
            f"{visible(entry.origin, 200)}: {counts.scores:,} scores; {counts.read:,} files read, {counts.unchanged:,} "
            f"unchanged, {counts.gone:,} gone"
        )
        for reason, number in list(counts.passed_over.items())[:MAX_LISTED_REASONS]:
            click.echo(f"  left out {number:,} ×: {visible(reason, 200)}")
        if len(counts.passed_over) > MAX_LISTED_REASONS:
            click.echo(f"  and {len(counts.passed_over) - MAX_LISTED_REASONS:,} other reasons (--json lists all)")


def _show_progress(origin: str, n_files: int, n_scores: int) -> None:
    """Redraw the line of the progress, on a terminal only."""
    if sys.stderr.isatty():
        click.echo(f"\r{visible(origin, 60)}: {n_files:,} files, {n_scores:,} scores", err=True, nl=False)


_HEADER = ("benchmark", "metric", "score", "questions × samples", "model", "source", "settings")


def _row(row: FoundScore) -> tuple[str, ...]:
    """The cells of a published score in the table."""
    score = row.score
    error = "" if score.standard_error is None else f" ± {100 * score.standard_error:.2g}"
    settings = ", ".join(f"{name} {value}" for name, value in sorted(score.settings.items())) or "not stated"
    return (
        score.benchmark,
        score.metric,
        f"{score.printed}{error}",
        f"{score.n_questions or '?'} × {score.samples or '?'}",
        score.model,
        ("quoted by " if score.quoted else "") + score.source.title,
        settings,
    )
