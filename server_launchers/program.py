"""How to build a command line: a program, its options with values, and the order of versions. Pure functions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

if TYPE_CHECKING:
    from server_launchers.spec import ServerSpec

KEY_VARIABLE = "HARNESS_SERVER_KEY"
"""This variable passes a key to a program that accepts keys only on its command line, where every user of the machine
can read them. `program.key_arguments` starts such a program.
"""


class Program(msgspec.Struct, frozen=True):
    """How to call a program: as a script of an environment, or as a module of its interpreter."""

    script: str | None
    """Console script; None if the program is only a module."""
    module: tuple[str, ...]
    """The arguments `-m …` that call the same program as a module."""
    package: str
    """The distribution whose version determines which flags exist."""
    install: str
    """The sentence that says how to install it."""
    subcommand: tuple[str, ...] = ()
    """First words of the script's own arguments."""


def key_arguments(program: Program) -> tuple[str, ...]:
    """Interpreter arguments that run the program's module with `--api-key` and the key, taken from `KEY_VARIABLE`.

    The option follows the subcommand, before the other arguments.
    """
    position = 1 + len(program.subcommand)
    return (
        "-c",
        # Popped, so that the engine's own children do not inherit the key.
        f"import os, runpy, sys; sys.argv[{position}:{position}] = ['--api-key', os.environ.pop('{KEY_VARIABLE}')]; "
        f"runpy.run_module('{program.module[-1]}', run_name='__main__', alter_sys=True)",
    )


def install_hint(requirement: str, *others: str, option: str = "python") -> str:
    """The sentence that says how to install an engine, or a router, into its own environment.

    requirement: the requirement to install with pip. others: options that provide the engine in another way, such as
    "IMAGE as `docker`". option: the option for the environment's interpreter.
    """
    environment = f"uv venv ENV && uv pip install --python ENV/bin/python {requirement}"
    ways = "".join(f", or {way}" for way in others)
    return f"install it into a separate environment: {environment}, then set `{option}` to ENV/bin/python{ways}"


def of_version(program: Program, tested: str, version: str | None) -> Program:
    """The program with a hint that installs this version instead of the tested one."""
    return program if version is None else replace(program, install=program.install.replace(tested, version))


def local_model(spec: ServerSpec) -> str:
    """The model's name for the engine: a folder becomes an absolute path, because engines start in another folder."""
    path = Path(spec.model).expanduser()
    return str(path.absolute()) if path.exists() else spec.model


def flag_pairs(*pairs: tuple[str, object]) -> list[str]:
    """Options with their values as words; None and False are omitted, and True yields the option alone.

    pairs: (flag, value).
    """
    words: list[str] = []
    for flag, value in pairs:
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words += [flag, str(value)]
    return words


def version_key(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, for ordering: `0.7.3.post1` → (0, 7, 3), `0.32.0rc1+cpu` → (0, 32, 0)."""
    numbers: list[int] = []
    for part in version.partition("+")[0].split("."):
        digits = re.match(r"\d*", part, re.ASCII)[0]  # type: ignore[index]
        numbers += [int(digits)] if digits else []
        if digits != part:
            break
    return tuple(numbers)


def at_least(version: str, first: tuple[int, ...]) -> bool:
    """Whether this version is `first` or newer; a version that cannot be parsed counts as the newest."""
    key = version_key(version)
    return not key or key >= first
