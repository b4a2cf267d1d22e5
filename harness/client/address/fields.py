"""The fields of requests that an error or an option names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.presets.sampling import sampling_fields
from server_launchers.engines import table as engines

DROPPABLE = (*sampling_fields(), "stream", "stream_options")
"""Fields that the option `drop` can keep out of a request."""


_ENGLISH = re.compile(r"(?!temperature)[a-z]+")
"""Field names that may also be words in a sentence: `stop`, `stream`, `seed`, `thinking`."""


def leaving_out(parameters: Iterable[str]) -> str:
    """The options that keep `parameters` out of a request."""
    names = [engines.common_field_names().get(name, name) for name in parameters]
    cures = [f"`drop={','.join(dropped)}`"] if (dropped := [name for name in names if name in DROPPABLE]) else []
    cures += [f"`{name}=None`" for name in names if name == "seed"]
    return ", ".join([*cures, *(f"no {name} in `extra_body`" for name in names if name not in (*DROPPABLE, "seed"))])


def refused_fields(words: str, sent: Iterable[str]) -> list[str]:
    """The fields in `sent` that the text of an error names.

    A name counts wherever it occurs as a whole word. A name that is also an English word counts only before a colon, in
    quotes or brackets, before an equals sign, or after a dot, an arrow, or "parameter", "argument", "field", "name",
    "input", "property", "for", "supplied", "set". "Streaming" names `stream`.
    """
    mark = r"(?:['\"`.(\[]|->|\b(?:parameter|argument|field|name|input|property|for|supplied|set)s?:?) ?['\"`]?"
    forms = {name: rf"(?<!\w){re.escape(name)}(?!\w)" for name in sent}
    english = {name: rf"{mark}{form}|{form}(?=:| ?=)" for name, form in forms.items() if _ENGLISH.fullmatch(name)}
    if "stream" in forms:
        english["stream"] += r"|\b[Ss]treaming\b"
    return [name for name, form in (forms | english).items() if re.search(form, words)]
