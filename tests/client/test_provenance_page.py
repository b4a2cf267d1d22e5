"""docs/provenance.md lists what the code reads, compares and sends of each engine.

`python -m tests.client.test_provenance_page` writes the tables anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.client.facts import discovery
from server_launchers.engines import table as engines
from server_launchers.engines.engine import EngineProfile

PAGE = Path(__file__).resolve().parents[2] / "docs" / "provenance.md"


def compared() -> str:
    """The fields that are compared."""
    fields = [field for one in engines.profiles() for field in one.facts] + list(discovery.LISTED)
    names = {kind: {f.name.partition(".")[0] for f in fields if f.kind == kind} for kind in ("model", "host")}
    listed = {kind: ", ".join(f"`{name}`" for name in sorted(names[kind])) for kind in names}
    head = "| affects replies: rejected | others: warning |\n| --- | --- |\n"
    return f"{head}| {listed['model']} | {listed['host']}, `engine`, `server` |\n"


def asked() -> str:
    """By which signs a server is known, and which pages it is asked for."""
    text = "| server | identified by | pages |\n| --- | --- | --- |\n"
    for one in engines.profiles():
        pages = ["/v1/models", *one.pages]
        text += f"| {one.name} | {signs(one)} | {', '.join(f'`{page}`' for page in pages)} |\n"
    return text + "| others (TensorRT-LLM, Ollama …) | | all of these |\n"


def signs(one: EngineProfile) -> str:
    """How a model list tells the engine."""
    if one.hides_behind:
        return f"a model called `{one.hides_behind}`"
    return f"`owned_by: {one.owned_by}`" + (f", or a `{one.marks}`" if one.marks else "")


def sent() -> str:
    """The values that switch a field off."""
    text = "| engine | sent by default |\n| --- | --- |\n"
    for one in engines.profiles():
        if one.neutral is not None:
            values = ", ".join(f"`{name}` {json.dumps(value)}" for name, value in one.neutral.values.items())
            text += f"| {one.name} | {values} |\n"
    return text


TABLES: dict[str, Callable[[], str]] = {"fields": compared, "servers": asked, "neutral": sent}


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_of_the_page_are_those_of_the_code(name: str) -> None:
    shown = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", PAGE.read_text("utf-8"), re.DOTALL)
    assert shown is not None
    assert shown[1] == TABLES[name](), "run `python -m tests.client.test_provenance_page`"


if __name__ == "__main__":
    page = PAGE.read_text("utf-8")
    for name, table in TABLES.items():
        before, _, rest = page.partition(f"<!-- {name} -->\n")
        page = before + f"<!-- {name} -->\n" + table() + f"<!-- /{name} -->" + rest.partition(f"<!-- /{name} -->")[2]
    PAGE.write_text(page, "utf-8")
