"""A new API, tool, engine and verifier, each added to a copy of the code, work from `harness run` to an export.

For: harness.client.apis.table, harness.tools.table, harness.grading.verifiers, server_launchers.engines.table.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from harness.client.apis.table import APIS
from harness.core import plugins
from harness.tools.table import TOOLS
from server_launchers.spec import ENGINES
from tests.conftest import CHECKOUT

API = """
from harness.client.apis.api import API
from harness.client.apis.chat import OWNED, READER

TEXTS = API(
    name="texts", path="/texts", owned=OWNED, bound="max_new_tokens", templated=False, reader=lambda: READER,
    prompt=lambda _messages, text: {"inputs": text},
)
"""

TOOL = """
from harness.tools.tool import CallRunner, Ran, Tool

class Adding(CallRunner):
    def __init__(self, settings): ...
    def run(self, key, /, sum):
        return Ran(str(sum_of(sum)), "ran")

def sum_of(text):
    return int(text.split("+")[0]) + int(text.split("+")[1])

ADDER = Tool(
    name="adder", parameters={"type": "object", "properties": {"sum": {"type": "string"}}}, runner=Adding,
    description=lambda settings: "Adds two numbers.", checked=lambda given: {"sum": str(given["sum"])}, main="sum",
)
"""

ENGINE = """
import sys
from pathlib import Path
from server_launchers.command_line import ProcessCommand
from server_launchers.engines.engine import ROUTED, Engine, Readiness

class Scripted(Engine):
    summary = "Start a server with scripted answers."
    takes = ROUTED
    devices = "none"
    def readiness(self, _spec):
        return Readiness(health_path=None)
    def command(self, spec, _version, port):
        return ProcessCommand((sys.executable, str(Path(__file__).with_name("_answers.py")), str(port), spec.model))

ENGINE = Scripted()
"""

ANSWERS = r"""
# Adds what a text asks for. In a chat it calls the tool with text that is not JSON, and then repeats its output.
import re, sys, threading
sys.path[:] = [entry for entry in sys.path if not entry.endswith("engines")]
from harness.testing import FakeServer, Said, serving

def reply(request):
    body = request.json
    if request.path.endswith("/texts"):
        one, other = re.findall(r"(\d+) \+ (\d+)", body["inputs"])[-1] if body["inputs"] else (0, 0)
        return Said(rf"\boxed{{{int(one) + int(other)}}}")
    last = body["messages"][-1]
    if last["role"] == "tool":
        sent = body["messages"][-2]["tool_calls"][0]["function"]["arguments"]
        is_own_form = re.fullmatch(r'\{"sum":"\d+ \+ \d+"\}', sent)
        return Said(rf"\boxed{{{last['content'] if is_own_form else 0}}}")
    asked = re.search(r"\d+ \+ \d+", last["content"])
    return Said("", calls=(("adder", asked[0]),), finish="tool_calls") if asked else Said("Hi")

with FakeServer(serving(reply, sys.argv[2]), port=int(sys.argv[1])):
    threading.Event().wait()
"""

VERIFIER = """
def is_sum(answer, question):
    return sum(map(int, question.references[0].split("+"))) == int(answer)
"""

CARD = """
title: Sums
source: {kind: file, path: rows.jsonl}
columns: {question: question, answer: answer}
rules: {grader: "harness.grading.verifiers.sums:is_sum"}
prompt: few_shot
samples: 1
"""

FILES = {
    "harness/client/apis/texts.py": API,
    "harness/tools/adder.py": TOOL,
    "server_launchers/engines/scripted.py": ENGINE,
    "server_launchers/engines/_answers.py": ANSWERS,
    "harness/grading/verifiers/sums.py": VERIFIER,
}
NAMES = {
    "harness/client/apis/table.py": [("\nAPIS = (", "\nfrom harness.client.apis.texts import TEXTS\nAPIS = (TEXTS, ")],
    "harness/core/literals.py": [('ApiName = Literal["chat"', 'ApiName = Literal["texts", "chat"')],
    "harness/tools/table.py": [
        ("in (PYTHON,)", "in (PYTHON, ADDER)"),
        ("from harness.tools.python", "from harness.tools.adder import ADDER\nfrom harness.tools.python"),
    ],
    "server_launchers/spec.py": [("EngineName = Literal[", 'EngineName = Literal["scripted",')],
}
"""File → the steps of CONTRIBUTING that add the new names to it."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code with the new kinds, and a benchmark."""
    folder = tmp_path_factory.mktemp("kinds")
    for name in ("harness", "server_launchers"):
        shutil.copytree(CHECKOUT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "datasets").symlink_to(CHECKOUT / "datasets")
    for file, text in FILES.items():
        (folder / file).write_text(text)
    for file, changes in NAMES.items():
        text = (folder / file).read_text("utf-8")
        for old, new in changes:
            assert old in text, (file, old)
            text = text.replace(old, new, 1)
        (folder / file).write_text(text, "utf-8")
    rows = [{"question": f"What is {n} + 40?", "answer": f"{n} + 40"} for n in (1, 2)]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "sums.yaml").write_text(CARD)
    return folder


def harness(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    argv = [sys.executable, "-m", "harness", *words]
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60)


def scored(folder: Path, run: str, *options: str) -> None:
    """Run the benchmark with the new engine and score it: every answer is right by the new verifier."""
    words = ("run", "sums.yaml", "--serve", "scripted", "--model", "some/model", "--out", run, "--no-canary")
    ran = harness(folder, *words, *options)
    assert ran.returncode == 0, ran.stderr
    score = harness(folder, "score", run, "--workers", "1", "--json")
    assert score.returncode == 0, score.stderr
    assert json.loads(score.stdout)[0]["n_correct"] == 2


@pytest.mark.timeout(300)
def test_a_new_api_without_a_chat_template_is_sent_the_question(copy: Path) -> None:
    scored(copy, "texts", "--api", "texts")
    exported = harness(copy, "export", "texts", "--to", "lm_eval", "--out", "e")
    assert exported.returncode == 0, exported.stderr
    (results,) = (copy / "e").rglob("results*.json")
    assert json.loads(results.read_text())["config"]["model"] == "local-completions"
    refused = harness(copy, "run", "sums.yaml", "--api", "texts", "--tool", "adder", "--model", "m", "--dry-run")
    assert (refused.returncode, "--api texts does not support tool calls" in refused.stderr) == (2, True)
    (copy / "talk.jsonl").write_text(
        '{"messages": [{"role": "user", "content": "1 + 1?"}, {"role": "assistant", "content": "2"}, '
        '{"role": "user", "content": "2 + 2?"}], "answer": "4"}\n'
    )
    talk = harness(copy, "run", "--data", "talk.jsonl", "--api", "texts", "--model", "m", "--dry-run")
    assert (talk.returncode, "use the chat API" in talk.stderr) == (2, True)


@pytest.mark.timeout(300)
def test_a_second_tool_is_called_handed_back_and_exported_in_its_own_form(copy: Path) -> None:
    scored(copy, "tool", "--tool", "adder,steps=3")
    exported = harness(copy, "export", "tool", "--to", "inspect", "--out", "i")
    assert exported.returncode == 0, exported.stderr
    with zipfile.ZipFile(next((copy / "i").glob("*.eval"))) as log:
        samples = [json.loads(log.read(name)) for name in log.namelist() if name.startswith("samples/")]
    called = [turn["tool_calls"][0] for sample in samples for turn in sample["messages"] if turn.get("tool_calls")]
    assert sorted((call["function"], call["arguments"]["sum"]) for call in called) == [
        ("adder", "1 + 40"),
        ("adder", "2 + 40"),
    ]


NAMED = {
    "harness/client/apis": {api.name for api in APIS},
    "harness/tools": {*TOOLS},
    "server_launchers/engines": {*ENGINES},
    "harness/extensions/clusters": {*plugins.extensions("cluster")},
    "harness/extensions/trackers": {*plugins.extensions("tracker")},
}
"""The folder of a kind → the names that no code outside it compares."""


def compared(code: str) -> set[object]:
    """The constants with which code compares something: `x == "a"`, `x in ("a", "b")`, `case "a"`."""
    nodes = [*ast.walk(ast.parse(code))]
    sides = [side for node in nodes if isinstance(node, ast.Compare) for side in node.comparators]
    sides += [node.value for node in nodes if isinstance(node, ast.MatchValue)]
    sides += [
        node.left for node in nodes if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq)
    ]
    leaves = [leaf for side in sides for leaf in (getattr(side, "elts", None) or [side])]
    return {leaf.value for leaf in leaves if isinstance(leaf, ast.Constant)}


def test_no_code_outside_a_kind_compares_its_names() -> None:
    assert compared('x != "a" or x in ("b", "c") or "key" in x') == {"a", "b", "c"}
    found = []
    for path in (path for room in ("harness", "server_launchers") for path in (CHECKOUT / room).rglob("*.py")):
        file = str(path.relative_to(CHECKOUT))
        if not file.startswith("harness/foreign/"):  # the layouts of other tools' files have the tools' names
            constants = compared(path.read_text("utf-8"))
            found += [(file, names & constants) for folder, names in NAMED.items() if not file.startswith(folder)]
    assert [each for each in found if each[1]] == []
