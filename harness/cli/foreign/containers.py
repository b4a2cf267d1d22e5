"""Reads how a container is started: `docker run`, a compose file, or a Kubernetes manifest.

A service of a compose file and a container of a manifest are turned into the `docker run` that starts them, so that
only this command has to be translated (`tables/docker.yaml`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from harness.core import yaml_file

_MANIFEST = re.compile(r"^(?:services|apiVersion):", re.MULTILINE)
_START = re.compile(r"\A\s*(?:#[^\n]*\n\s*|---\s+)*[A-Za-z][\w-]*:", re.ASCII)
_WORDS = "entrypoint command args"
_LISTS = {"ports": "-p", "volumes": "-v", "environment": "-e", "env": "-e"}
"""A container's lists → the flag of `docker run` for each item; any other key is a flag of its own."""
_COPIES = re.compile(r"^\s*replicas:\s*([2-9]|\d\d+)\b", re.MULTILINE)
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
        copies = _COPIES.search(document)
        for container in _containers(content):
            flags = [f"--replicas={copies[1]}"] if copies else []
            variables = dict(item.partition("=")[::2] for item in map(_text, _items(container.get("env"))))

            def filled(text: Any, variables: dict[str, str] = variables) -> str:
                """The text of a pod file with the values of the container's variables, `$(NAME)`."""
                return re.sub(r"\$\((\w+)\)", lambda match: variables.get(match[1], match[0]), str(text))

            for name, value in container.items():
                if name in _LISTS:
                    items = filter(None, map(_text, _items(value)))
                    flags += [word for item in items for word in (_LISTS[name], expanded(item))]
                elif name not in ("image", *_WORDS.split()):
                    flags.append(f"--{name}={expanded(value if isinstance(value, str) else json.dumps(value))}")
            gpus = re.search(r'"device_ids": \[([^\]]*)\]', json.dumps(container.get("deploy")))
            flags += ["--gpus", f"device={re.sub('[^0-9,]', '', gpus[1])}"] if gpus else []
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
