"""YAML that carries data only (no tags that build objects, no aliases, no repeated keys), and names by pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from harness.core.errors import UsageError
from harness.core.files import read_named
from harness.core.inert import quoted

MAX_BYTES = 256 * 1024
"""Longest file that is read as YAML, in bytes, unless its reader says otherwise."""


# libyaml's parser takes a tenth of the time; wheels of PyYAML have it, a build from source may not.
_Loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


MAX_DEPTH = 50
"""Deepest nesting of mappings and lists that is read."""


class _PlainLoader(_Loader):  # type: ignore[misc, valid-type]
    """`SafeLoader` that refuses repeated keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = (key_node.tag, key_node.value) if isinstance(key_node, yaml.ScalarNode) else None
            if key is not None and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key_node.value!r} stands there twice", key_node.start_mark
                )
            seen.add(key)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def _check_events(text: str) -> None:
    """Raise for an alias (`yaml.MarkedYAMLError`: a few lines of them unfold to gigabytes) and for deep nesting
    (`RecursionError`: libyaml composes by recursion, and a deep file would end the process)."""
    depth = 0
    event: Any
    for event in yaml.parse(text, Loader=_PlainLoader):
        if isinstance(event, yaml.AliasEvent):
            raise yaml.constructor.ConstructorError(None, None, "aliases are not allowed", event.start_mark)  # type: ignore[arg-type]
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise RecursionError
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def read_mapping(
    path: Path, what: str, max_bytes: int = MAX_BYTES, is_wanted: Callable[[str], bool] | None = None
) -> dict[str, Any]:
    """The mapping in the YAML file, which should hold `what` ("a card"). Raises `UsageError` with file and line.

    is_wanted: whether a line of a long file is parsed; other lines count as empty.
    """
    return _loaded(path, what, max_bytes, is_wanted)[0]


def read_list(path: Path, what: str, max_bytes: int = MAX_BYTES) -> list[Any]:
    """The list in the YAML file, which should hold `what`. Raises `UsageError` with file and line."""
    value, _ = _parsed(path, what, max_bytes, None)
    if not isinstance(value, list):
        raise UsageError(f"{path} must hold a list of {what}, found {type(value).__name__}")
    return value


Lines = Callable[[Sequence[str | int]], int]
"""The keys and indices that lead to a value (("runs", 2, "model")) → the line of the value, from 1; for a value that is
not there, the line of the nearest value around it."""


def read_with_lines(path: Path, what: str) -> tuple[dict[str, Any], Lines]:
    """The same mapping, and where each of its values stands. Raises as `read_mapping` does."""
    value, text = _loaded(path, what, MAX_BYTES, None)
    root = yaml.compose(text, Loader=_PlainLoader)

    assert root is not None  # it holds a mapping

    def line(keys: Sequence[str | int]) -> int:
        node, number = root, root.start_mark.line
        for key in keys:
            below = _below(node, key)
            if below is None:
                break
            number, node = below
        return int(number) + 1

    return value, line


def _below(node: yaml.Node, key: str | int) -> tuple[int, yaml.Node] | None:
    """(line of the key or item, its value) of one step down."""
    if isinstance(node, yaml.MappingNode):
        return next(((name.start_mark.line, value) for name, value in node.value if name.value == key), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and 0 <= key < len(node.value):
        return node.value[key].start_mark.line, node.value[key]
    return None


def _loaded(
    path: Path, what: str, max_bytes: int, is_wanted: Callable[[str], bool] | None
) -> tuple[dict[str, Any], str]:
    """(the mapping, the text that was parsed)."""
    value, text = _parsed(path, what, max_bytes, is_wanted)
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        kinds = {dict: "a key that is no text", list: "a list", type(None): "nothing"}
        kind = kinds.get(type(value), "a single value")
        raise UsageError(f"{path} must hold `key: value` lines of {what}, found {kind}")
    return value, text


def _parsed(path: Path, what: str, max_bytes: int, is_wanted: Callable[[str], bool] | None) -> tuple[Any, str]:
    """(the value, the text that was parsed)."""
    try:
        data = read_named(path, max_bytes)
    except OSError as error:
        raise UsageError(f"cannot read {what} from {path}: {error.strerror or error}") from error
    if len(data) > max_bytes:
        raise UsageError(f"{path} is longer than {what} may be: {max_bytes} bytes")
    try:
        text = data.decode("utf-8-sig")
        if is_wanted is not None:
            text = "\n".join(line if is_wanted(line) else "" for line in text.split("\n"))
        _check_events(text)
        value = yaml.load(text, Loader=_PlainLoader)  # noqa: S506, TID251 - a SafeLoader, stricter
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{path}{line} is no plain YAML: {quoted(error.problem or str(error))}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{path} is no plain YAML: {quoted(str(error))}") from error
    except RecursionError as error:
        raise UsageError(f"{path} is nested too deeply for {what}") from error
    return value, text


# ---- names by pattern


def fits_one(name: str, patterns: Iterable[str]) -> bool:
    """Whether the whole name fits at least one pattern."""
    name = name.lower()
    return any(_fits(name, pattern.lower()) for pattern in patterns)


def _fits(name: str, pattern: str) -> bool:
    if "?" in pattern or "[" in pattern:
        return fnmatchcase(name, pattern)
    # A start compares a hundred patterns, and compiling each as an expression would take longer than all else here.
    first, *middle = pattern.split("*")
    if not middle:
        return name == first
    last = middle.pop()
    if not name.startswith(first) or len(name) < len(first) + len(last) or not name.endswith(last):
        return False
    start, end = len(first), len(name) - len(last)
    for part in middle:
        start = name.find(part, start, end)
        if start < 0:
            return False
        start += len(part)
    return True
