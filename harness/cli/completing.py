"""Names that a shell may complete: benchmarks, presets, providers, prompts, servers, engines, export formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def names(listed: Callable[[], Iterable[str]]) -> Completion:
    """The completion function of a parameter whose values are the names in `listed()`.

    In a list of names with commas, the name after the last comma is completed.
    """

    def complete(_ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
        before, comma, last = typed.rpartition(",")
        return [CompletionItem(f"{before}{comma}{name}") for name in listed() if name.startswith(last)]

    return complete


def benchmarks() -> Iterable[str]:
    """Names of cards."""
    from harness.benchmarks import catalogue

    return [card.name for card in catalogue.cards()]


def prompts() -> Iterable[str]:
    """Names of prompts."""
    from harness.benchmarks.prompts import PROMPTS

    return PROMPTS


def presets() -> Iterable[str]:
    """Names of presets."""
    from harness.presets import preset

    return preset.names()


def providers() -> Iterable[str]:
    """Names of hosted providers."""
    from harness.client.address import providers as known

    return known.names()


def servers() -> Iterable[str]:
    """Names of running servers."""
    from server_launchers.keeping import servers as running

    return [server.name for server in running.status()]


def engines() -> Iterable[str]:
    """Names of engines."""
    from server_launchers.spec import ENGINES

    return ENGINES


def exporters() -> Iterable[str]:
    """Names of formats of `harness export`."""
    from harness.core import plugins

    return plugins.extensions("exporter")
