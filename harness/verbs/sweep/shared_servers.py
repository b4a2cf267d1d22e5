"""Finds servers of a sweep that cannot differ in their weights: a mistake that nothing else shows."""

from __future__ import annotations

from harness.core.codec import digest
from harness.verbs.sweep.cells import Sweep
from server_launchers.engines.table import ANY_PROGRAM

_SAME_WEIGHTS = ("model", "served_name", "port", "devices", "name")
"""Fields of a server's spec that change no weights of a user's command. The model does if `{model}` is in a word."""


def without_model(sweep: Sweep) -> list[str]:
    """A sentence for each server entry whose command starts the same program for two models that differ."""
    sentences = []
    for entry in sweep.axes.get("servers", ()):
        models: dict[str, set[str]] = {}
        for group in sweep.groups:
            spec = group.spec
            if spec is not None and spec["engine"] == ANY_PROGRAM and group.cells[0].point["servers"] == entry.name:
                words = [word.replace("{model}", spec["model"]) for word in spec["extra_flags"]]
                weights = {name: value for name, value in spec.items() if name not in _SAME_WEIGHTS}
                models.setdefault(digest(weights | {"extra_flags": words}), set()).add(spec["model"])
        if any(len(same) > 1 for same in models.values()):
            sentences.append(
                f"{entry.where}: no word of `command` says which model to load, so the server {entry.name} may load "
                'the same weights for each of them: write "{model}" where the program takes the path of the weights, '
                'such as command: [python, serve.py, "{model}", "{port}"]. A program that is told the model '
                "in another way, for example by {served_name}, needs no change"
            )
    return sentences
