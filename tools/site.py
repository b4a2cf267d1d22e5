"""A hook for mkdocs.yml: copies pages outside docs/ that the docs link to into the site, below `checkout/`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = (
    *("CONTRIBUTING.md", "SECURITY.md", "examples/plugin_package/README.md"),
    *("packages/answers/README.md", "packages/programs/README.md"),
)


def on_files(files: Any, config: Any) -> None:
    """Add the copies."""
    from mkdocs.structure.files import File  # installed only where the site is built

    for name in OUTSIDE:
        files.append(File.generated(config, f"checkout/{name}", content=(ROOT / name).read_text("utf-8")))


def on_page_markdown(markdown: str, page: Any, **_given: Any) -> str:
    """Return the page with links to Markdown files rewritten for the site; the build rejects broken links."""
    own = page.file.src_uri
    here = Path(own.removeprefix("checkout/") if own.startswith("checkout/") else f"docs/{own}").parent

    def moved(match: re.Match[str]) -> str:
        target = os.path.normpath(here / match[1])
        place = f"checkout/{target}" if target in OUTSIDE else target.removeprefix("docs/")
        return f"]({os.path.relpath(place, Path(own).parent)}"

    # Code hosts need a backslash before a bar in table code; MkDocs would show the backslash.
    bare = re.sub(r"`[^`\n]+`", lambda code: code[0].replace(r"\|", "|"), markdown)
    return re.sub(r"\]\((?![a-z]+:)([^)\s#]+\.md)", moved, bare)
