"""Names of commands and options that other tools have, or that this one had, and what they are here."""

from __future__ import annotations

from pathlib import Path

from harness.core import yaml_file

_WORDS = yaml_file.read_mapping(Path(__file__).with_suffix(".yaml"), "words of other tools")

ELSEWHERE: dict[str, str] = {name: entry["meaning"] for entry in _WORDS["options"] for name in entry["names"]}
"""Option names of other tools, without dashes, and their meaning here: a parameter (`a/b`: either) or a sentence.
`score:output` is the name in one command alone."""

FORMER_COMMANDS: dict[str, str] = _WORDS["commands"]
"""Word in a command's place → what stands for it."""
