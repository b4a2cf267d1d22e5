"""Choose the reader for a card's source: a file, the Hugging Face hub, a URL, a plug-in, or a generator."""

from __future__ import annotations

import random
import shlex
from dataclasses import replace
from itertools import chain
from pathlib import Path

from harness.benchmarks.card import Card, FileSource, HubSource, RandomSource, UrlSource
from harness.benchmarks.sources import hub, images, tables
from harness.benchmarks.sources.tables import Row, Rows
from harness.core import installation, plugins
from harness.core.codec import digest
from harness.core.errors import UsageError, near_names
from harness.core.sanitize import safe_name, visible


def read_source(card: Card) -> Rows:
    """The rows of the card's source, with their images stored. Raises `UsageError`."""
    rows, columns = _rows(card), card.columns.images
    if not columns:
        return rows
    source = card.source
    folder = local_path(card, source).parent if isinstance(source, FileSource) and reads_a_file(card) else None
    return replace(rows, rows=images.stored(rows.rows, columns, folder))


def _rows(card: Card) -> Rows:
    """The rows of the card's source as they are. Raises `UsageError`."""
    source, shown = card.source, card.columns.images
    # Program tests may be as long as a model's outputs, and contain any characters.
    has_tests = card.program is not None
    if isinstance(source, FileSource):
        if source.path.startswith("hf://"):
            return hub.read(hub.from_url(source.path, source.split), long_fields=has_tests, images=shown)
        scheme, separator, _ = source.path.partition("://")
        if separator:
            return _of_plugin(scheme, source)
        path = local_path(card, source)
        rows = tables.stream(path, source.split, shown=source.path, responses=has_tests, images=shown)
        answers = path.parent / "possible_answer" / path.name
        if card.row_form == "bfcl" and answers.is_file():
            rows = tables.merge_rows(chain(rows, tables.stream(answers)))
        return Rows(rows, source.path)
    if isinstance(source, HubSource):
        try:
            return read_hub(card, source)
        except hub.NoNetworkError:
            file = copied_file(card, source)
            if not file.is_file():
                raise
            remedy = f"copy {visible(str(file))} again from a machine where {_fetching(card)} has been run"
            return Rows(tables.stream(file, responses=True), f"{source.id} ({file.name})", remedy=remedy)
    if isinstance(source, UrlSource):
        from harness.benchmarks.sources import web  # with its HTTP library, which no other source needs

        return web.read(source)
    return random_prompts(source)


def read_hub(card: Card, source: HubSource) -> Rows:
    """The rows of a card's hub data set, not of a copied file. Raises `UsageError`."""
    try:
        return hub.read(source, long_fields=card.program is not None, images=card.columns.images)
    except hub.NoNetworkError as error:
        if is_of_its_set(card):
            raise
        file = copied_file(card, source)
        is_here = f"runs use the copy at {visible(str(file))}; to replace it, " if file.is_file() else ""
        remedy = (
            f"{is_here}run {_fetching(card)} on a machine with network access and copy {file.name} to "
            f"{visible(str(file.parent))}"
        )
        raise hub.NoNetworkError(source, error.why, remedy) from None


def _fetching(card: Card) -> str:
    """The command that fetches the card's data, for messages."""
    return f"`harness benchmarks fetch {visible(shlex.quote(card.address or card.name))}`"


def reads_a_file(card: Card) -> bool:
    """Whether the card's rows are read from a file that exists on this machine."""
    source = card.source
    return isinstance(source, FileSource) and "://" not in source.path and local_path(card, source).is_file()


def _of_plugin(scheme: str, source: FileSource) -> Rows:
    """The rows that a plug-in reads from `scheme://…`, with the same limits as for any other file."""
    read_rows = plugins.function("source", scheme)
    if read_rows is None:
        schemes = ["hf", *plugins.names("source")]
        raise UsageError(
            f"{visible(source.path, 200)}: unknown scheme {visible(scheme, 40)}://; expected one of "
            f"{', '.join(f'{name}://' for name in schemes)}.{near_names(scheme, schemes)}"
        )
    values = read_rows(source.path, source.split)
    return Rows(tables.rows_of_values(plugins.call("source", scheme, list, values), source.path), source.path)


def is_cached(card: Card) -> bool:
    """Whether the rows of a source on the hub or at a URL are on this machine."""
    source = card.source
    if isinstance(source, HubSource):
        return hub.is_cached(source) or copied_file(card, source).is_file()
    if isinstance(source, UrlSource):
        from harness.benchmarks.sources import web

        return web.is_cached(source)
    return isinstance(source, FileSource) and hub.is_cached(hub.from_url(source.path, source.split))


def is_of_its_set(card: Card) -> bool:
    """Whether the card is a file in its own data set (`eval.yaml`), so that a copy of the rows is not enough."""
    return (card.address or "").startswith("hf://")


def copied_file(card: Card, source: HubSource) -> Path:
    """The file that `harness benchmarks fetch` creates from a hub data set, for copying to another machine.

    Its name contains a digest of the source, so that the rows of another data set, revision or split are never mistaken
    for this card's. Cards that restrict a benchmark to a date range share its file.
    """
    # A field that a later version adds must not change the digest, so defaults are omitted.
    identity = digest(source.model_dump(exclude_defaults=True))[:16]
    name = safe_name(card.name.partition("@")[0])
    return installation.cache_folder() / "datasets" / f"{name}-{identity}.jsonl"


def local_path(card: Card, source: FileSource) -> Path:
    """The path of a file source; a relative path starts at the card's folder."""
    path = Path(source.path).expanduser()
    if path.is_absolute() or card.folder is None:
        return path
    return card.folder / path


_TEXT = """
time year people way day man thing woman life child world school state family student group country problem hand part
place case week company system program question work number night point home water room mother area money story fact
month lot right study book eye job word business issue side kind head house service friend father power hour game line
end member law car city name team minute idea body back parent face level office door
"""
WORDS = _TEXT.split()
"""English words that common tokenizers encode as one token after a blank."""

FRAME_WORDS = 20
"""Number of words in the code and the question; the number's digits count as three."""


def random_prompts(source: RandomSource) -> Rows:
    """Prompts for load curves, in columns id, question, answer (a list with the code).

    They have equal length and differ from the first words, to defeat prefix caches. Each hides a code that the reply
    must repeat, which exposes a server that drops part of a prompt or reply.
    """
    rows = [_row(source, index) for index in range(source.size)]
    return Rows(rows, f"random words (seed {source.seed})")


def _row(source: RandomSource, index: int) -> Row:
    """A prompt with its code. Each prompt has its own seed, so that `size` does not change other prompts."""
    draw = random.Random(f"{source.seed}-{source.words}-{index}")  # noqa: S311 - no secret
    words, code = draw.choices(WORDS, k=max(1, source.words - FRAME_WORDS)), str(draw.randrange(10**6, 10**7))
    words.insert(draw.randrange(len(words)), f"(the code is {code})")
    name = f"{source.seed}-{index}"
    question = f"{' '.join(words)}\n\nWhat is the code in this text? Begin with the code."
    return Row(f"random words {name}", {"id": name, "question": question, "answer": [code]})
