"""`harness init`: writes a commented file of settings to begin with, for the most common tasks."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from harness.cli.help import SpelledCommand
from harness.core.errors import StoreError
from harness.core.files import disk_error, shipped_folder, write_atomically
from harness.runs.layout import MANIFEST

KINDS = {
    "checkpoint": "a checkpoint of yours, served on this machine",
    "hosted": "a model behind a hosted endpoint",
    "comparison": "two checkpoints on the same questions",
    "suite": "the benchmarks of a paper, on a model of yours",
    "questions": "a table of questions of your own",
    "training": "data, settings and launch lines for LLaMA-Factory, TRL and open-r1",
}
QUESTIONS = "questions"
"""The kind that writes a table of questions. All other kinds except `TRAINING` write a sweep's file."""
TRAINING = "training"
"""The kind that writes several files: settings of trainers, and a README."""


def template(kind: str) -> Path:
    """The path of this kind's shipped template: a file, or for `TRAINING` a folder of files."""
    suffix = {QUESTIONS: ".csv", TRAINING: ""}.get(kind, ".yaml")
    return shipped_folder("datasets", "datasets") / "templates" / f"{kind}{suffix}"


def template_files(kind: str) -> dict[str, Path]:
    """Name in the new folder → shipped file."""
    shipped = template(kind)
    if kind == TRAINING:
        return {path.name: path for path in sorted(shipped.iterdir()) if path.is_file()}
    return {"questions.csv" if kind == QUESTIONS else "run.yaml": shipped}


@click.command("init", cls=SpelledCommand)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--for",
    "kind",
    type=click.Choice(list(KINDS)),
    default="checkpoint",
    show_default=True,
    help="; ".join(f"{name}: {text}" for name, text in KINDS.items()) + ".",
)
def command(folder: Path, kind: str) -> None:
    """Write DIR/run.yaml, a commented file for `harness sweep` and `harness run`, or DIR/questions.csv, a table for
    `harness run --data`. It overwrites nothing. With --for training it writes the settings of trainers, and a README.md
    with the lines that start them.

    \b
    harness init mine
    harness init theirs --for hosted
    harness init exam --for questions
    harness init train --for training
    """
    files = template_files(kind)
    if (folder / MANIFEST).exists():
        raise StoreError(f"{folder} is the folder of a run: give a folder of its own for the file of settings")
    for name in files:
        if os.path.lexists(folder / name):
            raise StoreError(f"{folder / name} exists already and stays unchanged: give another folder")
    existing = next(above for above in (folder, *folder.absolute().parents) if above.exists())
    if not os.access(existing, os.W_OK):
        raise StoreError(f"{existing} is not writable: give another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(folder / next(iter(files)), error) from error
    for name, shipped in files.items():
        write_atomically(folder / name, shipped.read_bytes())  # a half-written file would stop the next `init`
    for line in _what_next(kind, folder, list(files)):
        click.echo(line)


def _what_next(kind: str, folder: Path, names: list[str]) -> list[str]:
    """The lines that say what was written, and the commands to type next. names: of the written files."""
    path = folder / names[0]
    shown = shlex.quote(str(path))
    if kind == TRAINING:
        return [
            f"{folder}: {KINDS[kind]}: {', '.join(names)}",
            f"Put your model in them; {folder / 'README.md'} has the lines that make the data and start a trainer",
        ]
    if kind == QUESTIONS:
        out = shlex.quote(str(folder / "run"))
        return [
            f"{path}: {KINDS[kind]}. Put your questions in it, then:",
            f"  harness run --data {shown} --base-url http://127.0.0.1:8000 --out {out}   # the address of your server",
            f"  harness score {out}",
        ]
    return [
        f"{path}: {KINDS[kind]}. Put your model in it, then:",
        f"  harness sweep {shown} --dry-run   # what will run, what it takes",
        f"  harness sweep {shown}             # the same line again continues where it stopped",
    ]
