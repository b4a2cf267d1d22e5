"""Rewrites the install instructions in all pages from "from a checkout" to "from a package index"; to be used once an
index has the package.

    python -m tools.on_index            # rewrite the pages
    python -m tools.on_index --check    # exit with 1 if a page has other words than are rewritten here

`PAGES` lists all changes. A test checks that each text to be replaced stands in its page, so that this command will
find all of them.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent

PAGES: dict[str, tuple[tuple[str, str], ...]] = {
    "README.md": (
        (
            "No package index has it yet; install from a checkout (on Linux, with Python ≥ 3.11). The first two put",
            "On Linux, with Python ≥ 3.11. The first two put",
        ),
        ("uv tool install '.[llama-cpp]'", "uv tool install 'reasoning-harness[llama-cpp]'"),
        ("pipx install '.[llama-cpp]'", "pipx install 'reasoning-harness[llama-cpp]'"),
        ("venv/bin/pip install '.[llama-cpp]' ", "venv/bin/pip install 'reasoning-harness[llama-cpp]' "),
    ),
    "docs/servers.md": (
        ("`pip install '.[llama-cpp]'` in a checkout", "`pip install 'reasoning-harness[llama-cpp]'`"),
    ),
    "docs/tutorials/README.md": (
        ("`uv tool install '.[llama-cpp]'` in a checkout", "`uv tool install 'reasoning-harness[llama-cpp]'`"),
    ),
    "docs/sweeps.md": (
        (
            "`uv tool install '.[llama-cpp,report]'` in a checkout",
            "`uv tool install 'reasoning-harness[llama-cpp,report]'`",
        ),
    ),
    "docs/reports.md": (("'.[report]'` in a checkout)", "'reasoning-harness[report]'`)"),),
    "docs/howto/trackers.md": (
        ("`uv tool install --with trackio .`", "`uv tool install --with trackio reasoning-harness`"),
    ),
    "docs/howto/offline.md": (
        ("Install `harness` there from a checkout\n", "Install `harness` there\n"),
        ("In the checkout, gather packages", "Gather packages"),
        ("pip wheel '.[llama-cpp]'", "pip wheel 'reasoning-harness[llama-cpp]'"),
    ),
    "docs/howto/vllm.md": (
        (
            "run `uv tool install --python 3.11 .` in a checkout of\nthe harness; uv downloads Python 3.11. Then",
            "run\n`uv tool install --python 3.11 reasoning-harness`; uv downloads Python 3.11. Then",
        ),
    ),
    "docs/compatibility.md": (
        (
            "Today the pages describe an installation from a checkout. After the first release on PyPI, `python -m "
            "tools.on_index` changes them to `pip\ninstall reasoning-harness`.",
            "The pages describe an installation from PyPI, `pip install reasoning-harness`.",
        ),
    ),
}
"""Page -> (the words for a checkout, the words for an index)."""


_INSTALLS = re.compile(r"'\.\[[a-z]|\b(?:in|from)\s+(?:a|the)\s+checkout\b", re.IGNORECASE)
"""A checkout with an extra as an argument of pip, such as '.[report]', or the words "in a checkout".

A page that needs other files of the repository speaks of "a copy of the repository".
"""


def problems() -> list[str]:
    """The texts of `PAGES` that no longer stand in their page, and other places that install from a checkout."""
    wrong = []
    for name, changes in PAGES.items():
        text = (CHECKOUT / name).read_text("utf-8")
        wrong += [f"{name} does not have: {old}" for old, _ in changes if text.count(old) != 1]
    for page in [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]:
        text = page.read_text("utf-8")
        for old, _ in PAGES.get(page.relative_to(CHECKOUT).as_posix(), ()):
            text = text.replace(old, "")
        wrong += [f"{page.relative_to(CHECKOUT)} installs from a checkout besides" for _ in _INSTALLS.findall(text)]
    return wrong


def main(argv: list[str]) -> int:
    """Make the pages install from PyPI instead of a checkout, or check that they can be changed so."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change no page")
    options = parser.parse_args(argv)
    if wrong := problems():
        sys.stderr.write("\n".join([*wrong, ""]))
        return 1
    if not options.check:
        for name, changes in PAGES.items():
            page = CHECKOUT / name
            text = page.read_text("utf-8")
            for old, new in changes:
                text = text.replace(old, new)
            page.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
