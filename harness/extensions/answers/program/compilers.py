"""The C++ compiler of this machine: where it is, and what a sandbox must have for it.

The compiler is g++, since contests' solutions include bits/stdc++.h. Only a sandbox for C++ has these, read-only: g++
itself, the assembler and the linker, the folder of g++'s parts, the folders of headers, the folder of libraries.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

PROGRAM = "g++"

_ANSWER_SECONDS = 20.0


class Compiler(NamedTuple):
    """The C++ compiler. folders: folders that the sandbox has under the same paths. tools: path of a program → its path
    in the sandbox."""

    version: str
    folders: tuple[str, ...]
    tools: dict[str, str]


@cache
def compiler() -> Compiler | None:
    """The compiler of this machine; None if there is no compiler or it does not work."""
    path = shutil.which(PROGRAM)
    if path is None:
        return None
    try:
        version = _output(path, "-dumpfullversion").strip()
        searched = _output(path, "-E", "-v", "-x", "c++", os.devnull)
        parts = [_output(path, f"-print-prog-name={name}").strip() for name in ("cc1plus", "collect2")]
        libraries = [
            _output(path, f"-print-file-name={name}").strip() for name in ("libc.so", "libstdc++.so", "crtbegin.o")
        ]
        tools = {os.path.realpath(path): f"/usr/bin/{PROGRAM}"}
        for name in ("as", "ld"):
            # g++ answers with the bare name of a tool that it looks for in PATH.
            tool = shutil.which(_output(path, f"-print-prog-name={name}").strip())
            if tool is None:
                return None
            tools[os.path.realpath(tool)] = f"/usr/bin/{name}"
    except (OSError, subprocess.SubprocessError):
        return None
    headers = re.findall(r"^ (/\S+)$", searched, re.MULTILINE)
    # For a file that it does not know, g++ answers with the bare name, whose folder is empty.
    holding = map(os.path.dirname, [*parts, *libraries])
    folders = {os.path.realpath(folder) for folder in (*headers, *holding) if folder}
    return Compiler(version, _outermost(folder for folder in folders if Path(folder).is_dir()), tools)


def _output(*words: str) -> str:
    """Run the compiler; return its standard output followed by its standard error, where `-v` lists the folders of
    headers."""
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_ANSWER_SECONDS,
        check=True, cwd="/", env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
    )  # fmt: skip
    return done.stdout + done.stderr


def _outermost(folders: Iterable[str]) -> tuple[str, ...]:
    """Those of the folders that lie inside none of the others."""
    outer: list[str] = []
    for folder in sorted(folders):
        if not any(Path(folder).is_relative_to(above) for above in outer):
            outer.append(folder)
    return tuple(outer)
