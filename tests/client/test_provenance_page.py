"""docs/provenance.md lists the fields that the code compares."""

from __future__ import annotations

import re
from pathlib import Path

from harness.client.facts import fields
from server_launchers.engines import table as engines

PAGE = Path(__file__).resolve().parents[2] / "docs" / "provenance.md"


def table() -> str:
    """The fields as the page has them."""
    known = [field for one in engines.dialects() for field in one.facts] + list(fields.LISTED)
    names = {kind: {f.name.partition(".")[0] for f in known if f.kind == kind} for kind in ("model", "host")}
    listed = {kind: ", ".join(f"`{name}`" for name in sorted(found)) for kind, found in names.items()}
    head = "| changes the replies: refused | the rest: a warning |\n| --- | --- |\n"
    return f"{head}| {listed['model']} | {listed['host']}, `engine`, `server`, `workers` |\n"


def test_the_page_lists_the_fields_that_are_compared() -> None:
    found = re.search(r"<!-- fields -->\n(.*?)<!-- /fields -->", PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    assert found[1] == table()
