"""Scores that papers, repositories and other tools report, with their source.

`results/published/` holds the shipped scores. Enter by `load_published` and `matching`. All code that compares or shows
published scores may enter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.core import late

if TYPE_CHECKING:
    from harness.scoring.published.loading import load_published, matching, published_folder, short_name
    from harness.scoring.published.value import PublishedScore, Source

__all__ = ["PublishedScore", "Source", "load_published", "matching", "published_folder", "short_name"]

__getattr__ = late.import_on_use(
    __name__,
    {
        "PublishedScore": "value",
        "Source": "value",
        "load_published": "loading",
        "matching": "loading",
        "published_folder": "loading",
        "short_name": "loading",
    },
)
