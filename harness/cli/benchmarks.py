"""`harness benchmarks`: lists the cards, or shows one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click
import msgspec

from harness.cli import terminal
from harness.cli.help import HelpingGroup
from harness.cli.json_output import json_flags, print_json
from harness.core.number_text import count_noun
from harness.core.sanitize import visible

if TYPE_CHECKING:
    from harness.benchmarks.card import Card

SHOWN_PROMPTS = 3


class CardRow(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark card."""

    benchmark: str
    """Name of the benchmark."""
    title: str
    """Card title."""
    questions: int | None
    """Number of questions; None if the card does not specify it."""
    samples: int
    """Default number of samples per question."""
    license: str
    """Data license."""
    data: Literal["here", "absent", "generated"]
    """Whether the data is available offline: "here" (downloaded), "generated" (by the harness) or "absent"."""

    @classmethod
    def of(cls, card: Card) -> CardRow:
        """The row of `card`."""
        from harness.commands.card_data import status

        return cls(
            benchmark=card.name,
            title=card.title,
            questions=card.questions,
            samples=card.samples,
            license=card.license,
            data=status(card),
        )

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as the terminal shows it."""
        return self.benchmark, self.title, str(self.questions or "?"), str(self.samples), self.license, self.data


@click.group("benchmarks", cls=HelpingGroup, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List or show benchmark cards (questions, data source, grading), or download their data."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_, as_json=False)


@command.command("list", params=json_flags("list[harness.cli.benchmarks:CardRow]"))
def list_(as_json: bool) -> None:
    """List all cards: questions, default samples, license, and whether the data is downloaded."""
    from harness.benchmarks import catalog

    listed = [CardRow.of(card) for card in catalog.cards()]
    if as_json:
        print_json(listed)
    else:
        header = ("benchmark", "title", "questions", "samples", "license", "data")
        terminal.table(header, [row.cells for row in listed])


@command.command("show")
@click.argument("name")
def show(name: str) -> None:
    """Print the card and the first prompts of NAME (a name, an alias, a card file, or hf://datasets/OWNER/NAME).

    \b
    harness benchmarks show aime24
    """
    import yaml

    from harness.benchmarks import catalog
    from harness.commands import card_data
    from harness.core.errors import HarnessError

    card = catalog.load(name)
    fields = card.model_dump(mode="json", exclude_defaults=True)
    for text in yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=110).splitlines():
        click.echo(visible(text))
    try:
        examples = card_data.render_examples(card, SHOWN_PROMPTS)
    except HarnessError as error:
        click.echo(f"\n(no prompts to show: {error})")
        return
    for number, example in enumerate(examples, 1):
        click.echo(f"\n--- prompt {number}")
        for text in example.split("\n"):
            click.echo(visible(text))


@command.command("fetch")
@click.argument("names", nargs=-1, required=True)
def fetch(names: tuple[str, ...]) -> None:
    """Download the data for NAME..., verify it against the card, and print what was downloaded.

    \b
    harness benchmarks fetch aime24 math500
    """
    from harness.benchmarks import catalog
    from harness.commands import card_data

    for name in names:
        questions, to_copy = card_data.fetch(catalog.load(name))
        click.echo(
            f"{visible(questions.name)}: {count_noun(questions.n_all, 'question')} from {visible(questions.origin)}, "
            f"rows {questions.rows_digest}"
        )
        if to_copy is not None:
            click.echo(f"  for a machine without network access, copy {visible(str(to_copy))} to the same path there")
        for note in questions.notes:
            terminal.warn(note)


@command.command("schema")
def schema() -> None:
    """Print the JSON schema of a card, for editors."""
    from harness.benchmarks import card
    from harness.core import codec

    click.echo(codec.pretty(card.json_schema()).decode(), nl=False)
