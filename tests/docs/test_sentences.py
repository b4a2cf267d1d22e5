"""The catalog of sentences holds what a user reads, and nothing that is never printed."""

from __future__ import annotations

from tools.sentences import catalog


def test_the_catalog_holds_help_messages_pages_and_screens() -> None:
    found = {name for name, _, _ in catalog([])}
    assert {"README.md", "docs/reference/commands/run.md", "harness/viewer/front/compare.js"} <= found
    assert {"harness/core/files.py", ".github/pull_request_template.md", "CHANGELOG.md"} <= found


def test_a_sentence_is_named_by_its_file_and_line() -> None:
    (name, line, words), *_ = catalog(["harness/core/secret.py"], docstrings=True)
    assert (name, line) == ("harness/core/secret.py", 1)
    assert words.endswith(".")
    assert words not in {sentence for _, _, sentence in catalog(["harness/core/secret.py"])}
