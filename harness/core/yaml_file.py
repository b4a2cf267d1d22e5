"""Reading YAML files as plain data, and matching names against patterns such as `aime*`.

Rejected: tags that build Python objects, aliases, duplicate keys in a mapping, deep nesting, files that are too long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from harness.core.errors import UsageError
from harness.core.files import read_named
from harness.core.sanitize import quoted

MAX_BYTES = 256 * 1024
"""Longest YAML file that is read, unless the caller passes another limit."""


# libyaml's parser takes a tenth of the time. PyYAML's wheels include it; a build from source may not.
_Loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


MAX_DEPTH = 50
"""Deepest nesting of mappings and lists; a file with deeper nesting is rejected."""


class _PlainLoader(_Loader):  # type: ignore[misc, valid-type]
    """A `SafeLoader` that rejects repeated keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping of a YAML node. Raises an error for a repeated key."""
        seen = set()
        for key_node, _ in node.value:
            key = (key_node.tag, key_node.value) if isinstance(key_node, yaml.ScalarNode) else None
            if key is not None and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key {key_node.value!r}", key_node.start_mark
                )
            seen.add(key)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def _check_events(text: str) -> None:
    """Raise for aliases (`yaml.MarkedYAMLError`) and for deep nesting (`RecursionError`), before anything is built.

    A few lines of aliases can expand to gigabytes. libyaml builds values by recursion in C, so a deeply nested file
    would crash the process.
    """
    depth = 0
    event: Any
    for event in yaml.parse(text, Loader=_PlainLoader):
        if isinstance(event, yaml.AliasEvent):
            raise yaml.constructor.ConstructorError(None, None, "YAML aliases are not allowed", event.start_mark)  # type: ignore[arg-type]
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise RecursionError
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def read_mapping(
    path: Path, what: str, max_bytes: int = MAX_BYTES, is_wanted: Callable[[str], bool] | None = None
) -> dict[str, Any]:
    """The mapping in a YAML file. what: what the file should contain ("a card"), for messages.

    is_wanted: whether to parse a line of the file; other lines count as empty. It allows reading a few keys of a long
    file quickly. Raises `UsageError` with file and line.
    """
    value, _ = _load_mapping(path, what, max_bytes, is_wanted)
    return value


Lines = Callable[[Sequence[str | int]], int]
"""A function that maps the path to a value, such as ("runs", 2, "model"), to the value's line, counted from 1. For a
value that is not in the file it returns the line of the nearest mapping or list around it."""


def read_with_lines(path: Path, what: str) -> tuple[dict[str, Any], Lines]:
    """Read the mapping in a YAML file; return it with a function that returns the line of each value.

    Raises `UsageError` with file and line.
    """
    value, text = _load_mapping(path, what, MAX_BYTES, is_wanted=None)
    root = yaml.compose(text, Loader=_PlainLoader)

    assert root is not None  # it contains a mapping

    def line(keys: Sequence[str | int]) -> int:
        """The line, counted from 1, of the value at a path of keys; if it is missing, that of the last key found."""
        node, number = root, root.start_mark.line
        for key in keys:
            below = _child_node(node, key)
            if below is None:
                break
            number, node = below
        return int(number) + 1

    return value, line


def _child_node(node: yaml.Node, key: str | int) -> tuple[int, yaml.Node] | None:
    """The line and the node of the value under a key or an index of `node`; None if there is none."""
    if isinstance(node, yaml.MappingNode):
        return next(((name.start_mark.line, value) for name, value in node.value if name.value == key), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and 0 <= key < len(node.value):
        return node.value[key].start_mark.line, node.value[key]
    return None


def _load_mapping(
    path: Path, what: str, max_bytes: int, is_wanted: Callable[[str], bool] | None
) -> tuple[dict[str, Any], str]:
    """Read the mapping in a YAML file; return it with the text that was parsed.

    what, max_bytes, is_wanted: as in `read_mapping`.
    """
    try:
        data = read_named(path, max_bytes)
    except OSError as error:
        raise UsageError(f"cannot read {what} from {path}: {error.strerror or error}") from error
    if len(data) > max_bytes:
        raise UsageError(f"{path} is too large for {what}; the limit is {max_bytes} bytes")
    try:
        # Windows editors put a byte order mark before the text.
        text = data.decode("utf-8-sig")
        if is_wanted is not None:
            # Blanked rather than left out, so that the line numbers in messages stay correct.
            text = "\n".join(line if is_wanted(line) else "" for line in text.split("\n"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    value = plain_value(text, str(path), what)
    # A file may have none of the wanted lines.
    value = {} if value is None and is_wanted is not None else value
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        kinds = {dict: "a non-string key", list: "a list", type(None): "nothing"}
        kind = kinds.get(type(value), "a single value")
        raise UsageError(f"{path} must contain `key: value` lines for {what}, found {kind}")
    return value, text


def plain_value(text: str, path: str, what: str) -> Any:
    """The value of a YAML document. path, what: its file and what it should be, for messages. Raises `UsageError`."""
    try:
        _check_events(text)
        return yaml.load(text, Loader=_PlainLoader)  # noqa: S506, TID251 - a SafeLoader, stricter
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{path}{line} is not plain YAML: {quoted(error.problem or str(error))}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{path} is not plain YAML: {quoted(str(error))}") from error
    except RecursionError as error:
        raise UsageError(f"{path} is nested too deeply for {what}") from error


# ---- names by pattern


def fits_any(name: str, patterns: Iterable[str]) -> bool:
    """Whether `name` matches at least one pattern (`*`, `?`, `[…]`), ignoring case."""
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)
