"""Reads how a container is started: `docker run`, a compose file, or a Kubernetes manifest.

A service of a compose file and a container of a manifest are turned into the `docker run` that starts them, so that
only this command has to be translated (`tables/docker.yaml`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from harness.core import yaml_file

_MANIFEST = re.compile(r"^(?:services|apiVersion):", re.MULTILINE)
_START = re.compile(r"\A\s*(?:#[^\n]*\n\s*|---\s+)*[A-Za-z][\w-]*:", re.ASCII)
_WORDS = "entrypoint command args"
_RUN = re.compile(r"(?:.*/)?(?:docker|nerdctl|podman)")


class DockerRun(NamedTuple):
    """A `docker run`: its flags with their values, and the image with the words after it."""

    flags: list[tuple[str, str]]
    image: str
    words: Sequence[str]


def docker_run(words: Sequence[str], switches: str) -> DockerRun | None:
    """The `docker run` among the words; None if there is none. switches: the flags of docker without a value."""
    start = next((i for i, word in enumerate(words) if _RUN.fullmatch(word)), len(words))
    left = [*words[start + 1 :]]
    if "run" not in left[:2]:
        return None
    del left[: left.index("run") + 1]
    flags = []
    while left and left[0].startswith("-"):
        flag, is_set, value = left.pop(0).partition("=")
        has_value = flag.lstrip("-") not in switches.split() and not re.fullmatch("-[dit]+", flag)
        flags.append((flag, left.pop(0) if has_value and not is_set and left else value))
    return DockerRun(flags, left[0] if left else "", left[1:])


def is_manifest(text: str) -> bool:
    """Whether the text is a compose file or a Kubernetes manifest."""
    return bool(_MANIFEST.search(text) and _START.match(text))


def runs(text: str, expanded: Callable[[str], str], words_in: Callable[[str], list[str]]) -> Iterator[list[str]]:
    """Yield a `docker run` for each container in the text. expanded: fills in the variables of a text. words_in: splits
    a command. Raises `UsageError`.
    """
    for document in re.split(r"^---.*$", text, flags=re.MULTILINE):
        content = yaml_file.plain_value(document, "the text", "a compose or pod file")
        for container in _containers(content):
            flags: list[str] = []
            for name, flag in (("ports", "-p"), ("volumes", "-v"), ("environment", "-e"), ("env", "-e")):
                items = map(_text, _items(container.get(name)))
                flags += [word for item in items if item for word in (flag, expanded(item))]
            variables = dict(item.partition("=")[::2] for item in map(_text, _items(container.get("env"))))

            def filled(text: Any, variables: dict[str, str] = variables) -> str:
                """The text of a pod file with the values of the container's variables, `$(NAME)`."""
                return re.sub(r"\$\((\w+)\)", lambda match: variables.get(match[1], match[0]), str(text))

            gpus = [str(one) for one in _values_of("device_ids", container)]
            flags += ["--gpus", f"device={','.join(gpus)}"] if gpus else []
            parts = [container.get(name) for name in _WORDS.split()]
            words: list[str] = []
            for part in parts:
                words += words_in(part) if isinstance(part, str) else [expanded(filled(word)) for word in _items(part)]
            yield ["docker", "run", *flags, expanded(str(container["image"])), *words]


def _containers(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the mappings with an image and words for it, at any depth."""
    if isinstance(value, dict) and "image" in value:
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _containers(part)


def _values_of(key: str, value: Any) -> Iterator[Any]:
    """Yield the items of the lists under this key, at any depth."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    yield from value[key] if isinstance(value, dict) and isinstance(value.get(key), list) else ()
    for part in parts:
        yield from _values_of(key, part)


def _items(value: Any) -> list[Any]:
    """The items of a list; a mapping's as `name=value`."""
    if isinstance(value, dict):
        return [f"{name}={text}" for name, text in value.items()]
    return value if isinstance(value, list) else []


def _text(item: Any) -> str:
    """An item as `docker run` has it: a variable's `name` and `value`, a port's `published` and `target`, or itself."""
    if not isinstance(item, dict):
        return str(item)
    for first, second, between in (("name", "value", "="), ("published", "target", ":"), ("source", "target", ":")):
        if first in item and second in item:
            return f"{item[first]}{between}{item[second]}"
    return ""
