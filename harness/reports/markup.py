"""HTML and SVG as values: a plain string is always text, so nothing foreign can become markup by being forgotten."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TypeAlias

from harness.core.inert import visible


class Markup(str):
    """A string that is markup already, made only by `tag` and `join` (and from our own style sheet)."""

    __slots__ = ()


Content: TypeAlias = "str | int | Markup | None"

_VOID = {"meta", "br"}


def tag(name: str, /, *children: Content, **attributes: str | float | None) -> Markup:
    """`<name attributes>children</name>`. Text and attribute values are escaped, control characters made visible.

    An attribute's trailing underscore is dropped and others become hyphens (`class_`, `text_anchor`); None leaves an
    attribute or a child out.
    """
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is not None:
            parts.append(f' {key.rstrip("_").replace("_", "-")}="{text(_number(value))}"')
    parts.append(">")
    parts.append(join(children))
    if name not in _VOID:
        parts.append(f"</{name}>")
    return Markup("".join(parts))


def join(children: Iterable[Content]) -> Markup:
    """Children one after the other; strings escaped."""
    return Markup(
        "".join(child if isinstance(child, Markup) else text(str(child)) for child in children if child is not None)
    )


def text(value: str) -> Markup:
    """`value` as text that is safe between tags and in quoted attributes."""
    return Markup(html.escape(visible(value), quote=True))


def _number(value: str | float) -> str:
    """Coordinates to a tenth of a pixel keep a page with many marks small."""
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")
