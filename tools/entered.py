"""Counts how many files of the product a reader has to open to follow a command, as one table: `python -m tools.entered
[CHECKOUT ...]`.

A file of `harness/` or `server_launchers/` counts as entered if at least one of its functions is called, in any thread
of the main process. Imports do not count, nor do calls made while files are imported. `harness run` is watched from
argv to the moment when the first request for a completion reaches the server, and `harness score` from argv to its end,
which is its table. Processes that grade are not watched. The server answers sums, on this machine; each checkout is run
by this interpreter.

Lengths are those of `def` statements without decorators. An engine's name counts as a literal where a string is that
name and nothing else (`named_engines`). Two kinds of text do not count as an engine's name:

- the declaration `EngineName = Literal[...]` of `spec.py`: each name there is a file of the engines' room;
- a name of `OutputsFormat`, in its declaration, or in `harness/foreign` beside the variable `format`: a layout of
  files, called after the program that writes them. That room knows no server.
"""

from __future__ import annotations

import argparse
import ast
import http.server
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

HERE = Path(__file__).resolve()
PACKAGES = ("harness", "server_launchers")
ENGINES_ROOM = "server_launchers/engines/"
ENGINES_DECLARED = "server_launchers/spec.py"
FORMATS_ROOM = "harness/foreign/"
FORMATS_DECLARED = "harness/core/choices.py"
DECLARATIONS = {ENGINES_DECLARED: "EngineName", FORMATS_DECLARED: "OutputsFormat"}
"""Path of a file → the type in it that declares names."""
SAMPLES = ("--samples", "1", "--limit", "2", "--no-progress")
TIMEOUT_SECONDS = 120


# ---- what is written


def sources(checkout: Path) -> Iterator[tuple[str, ast.Module, int]]:
    """(path, tree, lines) of every file of the product."""
    for package in PACKAGES:
        for path in sorted((checkout / package).rglob("*.py")):
            text = path.read_text("utf-8")
            yield str(path.relative_to(checkout)), ast.parse(text), len(text.splitlines())


def functions(tree: ast.Module) -> Iterator[tuple[int, int, str]]:
    """Return (lines, parameters, name) of every function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            n = (
                len(given.posonlyargs)
                + len(given.args)
                + len(given.kwonlyargs)
                + bool(given.vararg)
                + bool(given.kwarg)
            )
            yield (node.end_lineno or node.lineno) - node.lineno + 1, n, node.name


def named_engines(path: str, tree: ast.Module, engines: Set[str], formats: Set[str]) -> list[ast.Constant]:
    """The strings of a file that are engines' names, docstrings, declarations and names of formats aside.

    path: from the checkout. engines: their names. formats: the names of `OutputsFormat`.
    """
    aside = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    aside |= {id(node) for node in declared(tree, DECLARATIONS.get(path, ""))}
    if path.startswith(FORMATS_ROOM):
        beside = (text for node in ast.walk(tree) if is_about_format(node) for text in strings(node))
        aside |= {id(text) for text in beside if text.value in formats}
    return [node for node in strings(tree) if node.value in engines and id(node) not in aside]


def strings(tree: ast.AST) -> Iterator[ast.Constant]:
    """All strings in a syntax tree."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))


def declared(tree: ast.Module, name: str) -> list[ast.Constant]:
    """The strings of `NAME = Literal[...]`; none where the file has no such line."""
    lines = (node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name)
    return [text for line in lines for text in strings(line.value)]


def is_about_format(node: ast.AST) -> bool:
    """Whether a syntax node compares the variable `format` with a value, or sets it."""
    if isinstance(node, ast.Compare):
        return ast.unparse(node.left) == "format"
    return isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["format"]


def declared_names(checkout: Path, path: str) -> frozenset[str]:
    """The names that the type of a file declares; of a name with underscores, also how people spell it."""
    texts = declared(ast.parse((checkout / path).read_text("utf-8")), DECLARATIONS[path])
    return frozenset(str(text.value).replace("_", mark) for text in texts for mark in ("_", "-", ".", ""))


def written(checkout: Path) -> dict[str, Any]:
    """The measures that are read from the source files, without a run."""
    files = list(sources(checkout))
    every = [(lines, n, name, path) for path, tree, _ in files for lines, n, name in functions(tree)]
    longest, widest = max(every), max(every, key=lambda pair: pair[1])
    outside = [(path, tree) for path, tree, _ in files if not path.startswith(ENGINES_ROOM)]
    names = [declared_names(checkout, path) for path in (ENGINES_DECLARED, FORMATS_DECLARED)]
    engines = [path for path, tree in outside if named_engines(path, tree, *names)]
    return {
        "files of the product": len(files),
        "lines of the product": sum(lines for _, _, lines in files),
        "functions over 60 lines": sum(pair[0] > 60 for pair in every),
        "functions over 70 lines": sum(pair[0] > 70 for pair in every),
        "longest function": f"{longest[0]} ({longest[2]})",
        "most parameters": f"{widest[1]} ({widest[2]})",
        "files with an engine's name as a literal": len(engines),
    }


# ---- what is entered


class Watch:
    """Notes the files of a checkout whose functions are entered, in all threads."""

    def __init__(self, checkout: Path) -> None:
        self.files: set[str] = set()
        self._folders = tuple(f"{checkout / package}{os.sep}" for package in PACKAGES)
        self._seen: set[CodeType] = set()

    def start(self) -> None:
        """Begin to watch, in this thread and in those that begin later."""
        threading.setprofile(self._entered)
        sys.setprofile(self._entered)

    def _entered(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event != "call" or code in self._seen:
            return
        if not (code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.startswith(self._folders)):
            self._seen.add(code)  # a module, the body of a class, or somebody else's
        elif not imports(frame):
            self._seen.add(code)
            self.files.add(code.co_filename)


def imports(frame: FrameType) -> bool:
    """Whether the frame was entered because a file is being imported."""
    back = frame.f_back
    while back is not None and not back.f_code.co_filename.startswith("<frozen importlib"):
        back = back.f_back
    return back is not None


class Server(http.server.ThreadingHTTPServer):
    """A server that lists one model and answers sums; it remembers which files had been entered when the first sum was
    requested.
    """

    daemon_threads = True

    def __init__(self, watch: Watch) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.watch = watch
        self.at_first_request: set[str] | None = None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        listed = {"data": [{"id": "sums", "object": "model"}]} if self.path.endswith("/models") else None
        self._send(200 if listed else 404, json.dumps(listed or {}), "application/json")

    def do_POST(self) -> None:
        if self.server.at_first_request is None:
            self.server.at_first_request = set(self.server.watch.files)
        self.rfile.read(int(self.headers["Content-Length"]))
        events: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": {"role": "assistant", "content": r"so \boxed{2}"}}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5}},
        ]
        stream = "".join(f"data: {json.dumps({'model': 'sums', **event})}\n\n" for event in events)
        self._send(200, f"{stream}data: [DONE]\n\n", "text/event-stream")

    def _send(self, status: int, body: str, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Print no line for each request."""


def watched(checkout: Path, verb: str) -> None:
    """Run `harness run` or `harness score` in this process; print, as JSON, the files whose functions were called.

    A run is watched until its first request, a score to its end. Called in a process of its own, since the profiler,
    `sys.argv` and the end of the command belong to the process.
    """
    sys.path.insert(0, str(checkout))
    watch = Watch(checkout)
    server = Server(watch)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    run = ["harness", "run", "demo", "--base-url", url, "--out", "run", *SAMPLES]
    out, sys.stdout = sys.stdout, sys.stderr
    sys.argv = run if verb == "run" else ["harness", "score", "run", "--workers", "1"]
    watch.start()
    try:
        from harness.__main__ import main

        main()
    except SystemExit as end:
        sys.setprofile(None)
        if end.code:
            raise
    entered = server.at_first_request if verb == "run" else watch.files
    assert entered is not None, "no request came"
    out.write(json.dumps(sorted(str(Path(file).relative_to(checkout)) for file in entered)))


def entered(checkout: Path) -> Mapping[str, list[str]]:
    """Verb → files entered, each verb in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        left_out = ("OPENAI_", "HARNESS_")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
        environment |= {"PYTHONPATH": str(checkout), "HARNESS_STATE": f"{folder}/state"}
        files = {}
        for verb in ("run", "score"):
            words = [sys.executable, str(HERE), "--watched", verb, str(checkout)]
            done = subprocess.run(
                words, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
            )
            if done.returncode:
                raise SystemExit(f"{checkout}: harness {verb} ended with {done.returncode}:\n{done.stderr}")
            files[verb] = json.loads(done.stdout)
    return files


# ---- the table


def measures(checkout: Path, listed: bool) -> dict[str, Any]:
    """Name of a measure → its value. listed: print the entered files, too."""
    files = entered(checkout)
    if listed:
        for verb, paths in files.items():
            sys.stdout.write("\n  ".join([f"{checkout}: {verb}", *paths]) + "\n")
    return {
        "files entered by run to its first request": len(files["run"]),
        "files entered by score to its table": len(files["score"]),
        **written(checkout),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="*", type=Path, help="default: this one")
    parser.add_argument("--files", action="store_true", help="list the entered files, too")
    parser.add_argument("--watched", choices=("run", "score"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    checkouts = [path.resolve() for path in options.checkouts] or [HERE.parent.parent]
    if options.watched:
        watched(checkouts[0], options.watched)
        return
    columns = [measures(checkout, options.files) for checkout in checkouts]
    width = max(map(len, columns[0]))
    rows = [("", [checkout.name[-18:] for checkout in checkouts])]
    rows += [(name, [str(column[name]) for column in columns]) for name in columns[0]]
    for name, values in rows:
        sys.stdout.write(f"{name:{width}} " + " ".join(f"{value:>18}" for value in values) + "\n")


if __name__ == "__main__":
    main()
