"""What `tools.entered` counts: files whose functions are called, up to the first request, in every thread."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.entered import entered, functions, named_engines

CHECKOUT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.wide

MAX_ENTERED = {"run": 80, "score": 50}
"""Files that a reader opens to follow a command; each limit only goes down."""

MAIN = """
import sys, threading, urllib.request
from harness import called, imported, never
def main():
    if sys.argv[1] == "run":
        called.before()
        thread = threading.Thread(target=called.ask, args=(sys.argv[sys.argv.index("--base-url") + 1],))
        thread.start()
        thread.join()
        from harness import after
        after.late()
"""
CALLED = """
import urllib.request
def before(): pass
def ask(url):
    from harness import thread
    thread.entered()
    urllib.request.urlopen(urllib.request.Request(url + "/v1/chat/completions", b"{}"))
"""


def test_files_are_entered_by_their_functions_until_the_first_request(tmp_path: Path) -> None:
    folder = tmp_path / "harness"
    folder.mkdir()
    texts = {
        "__init__": "",
        "__main__": MAIN,
        "called": CALLED,
        "imported": "def at_import(): return 1\nVALUE = at_import()\n",
        "never": "class Never:\n    def called(self): pass\n",
        "thread": "def entered(): pass\n",
        "after": "def late(): pass\n",
    }
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    files = entered(tmp_path)
    assert files["run"] == ["harness/__main__.py", "harness/called.py", "harness/thread.py"]
    assert files["score"] == ["harness/__main__.py"]


@pytest.mark.slow
def test_a_reader_follows_a_command_through_few_files() -> None:
    over = {verb: paths for verb, paths in entered(CHECKOUT).items() if len(paths) > MAX_ENTERED[verb]}
    assert over == {}, "python -m tools.entered --files lists them: is one called that has nothing to do?"


ENGINES = frozenset({"vllm", "sglang"})


def test_lengths_and_literals_are_counted() -> None:
    tree = ast.parse('"""vllm"""\n@decorated\ndef f(self, a, /, b, *c, d, **e):\n    """sglang"""\n    return 1\n')
    assert list(functions(tree)) == [(3, 6, "f")]
    assert not named_engines("harness/a.py", tree, ENGINES, frozenset())
    assert named_engines("harness/a.py", ast.parse('x = "vllm"'), ENGINES, frozenset())
    assert not named_engines("harness/a.py", ast.parse('x = "served by vllm"'), ENGINES, frozenset())
