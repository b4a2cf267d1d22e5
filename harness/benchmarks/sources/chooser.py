"""Choosing the reader for a card's source: a file, the Hugging Face hub, a URL, a plug-in, a generator."""

from __future__ import annotations

from pathlib import Path

from harness.benchmarks.card import Card, FileSource, HubSource, UrlSource
from harness.benchmarks.sources import gym, hub, tables
from harness.benchmarks.sources.tables import Rows
from harness.core import about, plugins
from harness.core.errors import UsageError, near_names
from harness.core.inert import visible


def read(card: Card) -> Rows:
    """The rows of the card's source. Raises `UsageError`."""
    source = card.source
    if isinstance(source, FileSource):
        if source.path.startswith("hf://"):
            return hub.read(hub.from_url(source.path, source.split, source.config))
        scheme, separator, _ = source.path.partition("://")
        if separator:
            return _of_plugin(scheme, source)
        if source.config is not None:
            raise UsageError("only a data set of the hub (hf://datasets/OWNER/NAME) has configurations", field="config")
        path = local_path(card, source)
        # Tests of programs may be as long as a model's outputs, and hold any characters.
        has_tests = card.program is not None
        rows = tables.stream(path, source.split, shown=source.path, responses=has_tests)
        return Rows(rows, source.path)
    if isinstance(source, HubSource):
        try:
            return hub.read(source, long_fields=card.program is not None)
        except hub.NoNetworkError as error:
            file = one_file(card)
            if file is None or not file.is_file():
                copied = (
                    f"where there is a network, run `harness benchmarks fetch {card.name}`, and copy its file to {file}"
                )
                raise hub.NoNetworkError(source, error.why, copied) from None
            return Rows(tables.stream(file, responses=True), f"{source.id} ({file.name})")
    if isinstance(source, UrlSource):
        from harness.benchmarks.sources import web  # with its HTTP library, which no other source needs

        return web.read(source)
    return gym.read(source)


def reads_a_file(card: Card) -> bool:
    """Whether the card's rows are read from a file of this machine, which is there."""
    source = card.source
    return isinstance(source, FileSource) and "://" not in source.path and local_path(card, source).is_file()


def _of_plugin(scheme: str, source: FileSource) -> Rows:
    """The rows that a plug-in reads at `scheme://…`, with the same bounds as those of any other file."""
    read_rows = plugins.function("source", scheme)
    if read_rows is None:
        schemes = ["hf", *plugins.names("source")]
        raise UsageError(
            f"{visible(source.path, 200)}: no source reads {visible(scheme, 40)}://; there are "
            f"{', '.join(f'{name}://' for name in schemes)}.{near_names(scheme, schemes)}"
        )
    values = read_rows(source.path, source.split)
    return Rows(tables.rows_of_values(plugins.call("source", scheme, list, values), source.path), source.path)


def is_cached(card: Card) -> bool:
    """Whether the rows of a source on the hub or at a URL are on this machine."""
    source = card.source
    if isinstance(source, HubSource):
        file = one_file(card)
        return hub.is_cached(source) or (file is not None and file.is_file())
    if isinstance(source, UrlSource):
        from harness.benchmarks.sources import web

        return web.is_cached(source)
    return isinstance(source, FileSource) and hub.is_cached(hub.from_url(source.path, source.split, source.config))


def one_file(card: Card) -> Path | None:
    """The file from which a card's rows can be read on a machine without a network; None for rows that need none.

    `harness benchmarks fetch` makes it, and it may be copied to another machine.
    """
    if isinstance(card.source, UrlSource):
        from harness.benchmarks.sources import web

        return web.cached_path(card.source)
    return about.cache_folder() / "datasets" / f"{card.name}.jsonl" if isinstance(card.source, HubSource) else None


def local_path(card: Card, source: FileSource) -> Path:
    """The path of a file source; a relative path is one from the card's folder."""
    path = Path(source.path).expanduser()
    if path.is_absolute() or card.folder is None:
        return path
    return card.folder / path
