"""Plug-ins of other packages: the example, built as a wheel, does all eight things; a broken one harms nobody.

For: harness.cli.doctor.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import doctor
from harness.core import plugins
from tests.conftest import CHECKOUT
from tests.system import command

EXAMPLE = CHECKOUT / "examples" / "plugin_package"
RUN = "results/run"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip installed the example, of which it makes a wheel first."""
    folder = tmp_path_factory.mktemp("plugins")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-deps", "--target", str(folder), str(EXAMPLE)], check=True)
    return folder


def package(site: Path, name: str, points: str, module: str) -> Path:
    """A package as pip leaves it: a module, and metadata with entry points."""
    site.mkdir(exist_ok=True)
    (site / f"{name}.py").write_text(module)
    about = site / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(points)
    return site


def harness(folder: Path, site: Path, *words: str) -> command.Result:
    """Run `harness WORDS` in this process, which finds the packages of `site` meanwhile and forgets them afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        patch.delenv("HARNESS_GRADERS", raising=False)
        plugins._points.cache_clear()
        try:
            return command.harness(folder, *words)
        finally:
            plugins._points.cache_clear()
            for name, module in [*sys.modules.items()]:
                if str(getattr(module, "__file__", None)).startswith(f"{site}{os.sep}"):
                    del sys.modules[name]


def listed_by_doctor(folder: Path, site: Path) -> tuple[int, dict[tuple[str, str], str]]:
    """The exit code of `harness doctor`, without its checks of cards, and (kind, name) → what it says of a plug-in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doctor, "_cards", lambda _names: (True, set()))
        done = harness(folder, site, "doctor")
    assert "Traceback" not in done.err
    lines = re.findall(r"^  (\w+) (\S+) of (\S+ \S+) \(\S+\): (.*)$", done.out, re.MULTILINE)
    return done.code, {(kind, name): said for kind, name, _, said in lines}


def process(folder: Path, site: Path | None, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `harness WORDS` in a process of its own, whose children find the packages of `site`, too."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "HARNESS_GRADERS"))}
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, [str(site or ""), str(CHECKOUT)]))}
    argv = [sys.executable, "-m", "harness", *words]
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.wide
@pytest.mark.timeout(300)  # it builds a wheel, whose backend comes from the package index
def test_the_example_package_does_all_eight_things(installed: Path, tmp_path: Path) -> None:
    code, listed = listed_by_doctor(tmp_path, installed)
    kinds = {"grader", "prompt", "source", "launcher", "exporter", "provider", "tracker", "command"}
    assert {kind for kind, _ in listed} == kinds | {"answer"}, "the package of programs is one, too"
    assert (code, set(listed.values())) == (0, {"usable"})

    card = str(EXAMPLE / "palindromes.yaml")
    words = ("run", card, "--serve", "palindromes", "--model", "pal", "--out", RUN, "--no-canary")
    ran = process(tmp_path, installed, *words)
    assert ran.returncode == 0, ran.stderr
    stored = (tmp_path / RUN / "palindromes" / "questions.jsonl").read_text()
    assert "and nothing else, within" in stored
    assert '"grader":"harness_palindromes.grading:is_palindrome"' in stored

    score = process(tmp_path, installed, "score", RUN, "--workers", "1", "--json", "--track", "lines")
    assert score.returncode == 0, score.stderr
    assert json.loads(score.stdout)[0]["n_correct"] == 8
    assert "sent the scores to lines: tracked.jsonl" in score.stderr
    assert json.loads((tmp_path / "tracked.jsonl").read_text())["palindromes/n_correct"] == 8

    exported = harness(tmp_path, installed, "export", RUN, "--to", "lengths", "--out", "lengths")
    assert exported.code == 0, exported.err
    assert (tmp_path / "lengths" / "lengths-0.csv").read_text().count("correct") == 8

    hosted = harness(tmp_path, installed, "run", "demo", "--provider", "palindromes", "--model", "m", "--dry-run")
    assert "PALINDROMES_API_KEY" in hosted.out + hosted.err
    served = harness(tmp_path, installed, "serve", "palindromes", "pal", "--dry-run")
    assert "harness_palindromes.serving pal" in served.out, served.err
    longest = harness(tmp_path, installed, "palindromes", "noon racecar")
    assert (longest.code, longest.out) == (0, "racecar\n"), longest.err
    gone = harness(tmp_path, tmp_path, "serve", "palindromes", "pal", "--dry-run")
    assert (gone.code, "unknown engine or action 'palindromes'" in gone.err) == (2, True)


def test_a_package_that_raises_at_import_is_one_sentence_where_it_is_used(tmp_path: Path) -> None:
    points = "".join(f"[harness.{kind}s]\nbad = broken:thing\n" for kind in plugins.KINDS)
    site = package(tmp_path / "site", "broken", points, "raise RuntimeError('no\\x1b[31m luck')\n")
    for words in (("--help",), ("benchmarks",), ("grade", "1/2", r"\boxed{0.5}")):
        assert harness(tmp_path, site, *words).code == 0
    code, listed = listed_by_doctor(tmp_path, site)
    assert (code, sum("cannot be used" in said for said in listed.values())) == (1, len(plugins.KINDS))
    (tmp_path / "q.jsonl").write_text('{"problem": "1+1?", "answer": "2"}\n')
    uses = [
        ("run", "demo", "--prompt", "bad", "--dry-run"),
        ("run", "--data", "bad://x", "--dry-run"),
        ("run", "demo", "--provider", "bad", "--model", "m", "--dry-run"),
        ("run", "demo", "--serve", "bad", "--model", "m", "--dry-run"),
        ("run", "demo", "--on", "bad", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"),
        ("bad",),
    ]
    for words in uses:
        done = harness(tmp_path, site, *words)
        assert done.code == 2, words
        assert "from the package broken 1.0 cannot be used (broken:thing): RuntimeError: no\\x1b[31m luck" in done.err
        assert "Traceback" not in done.err
        assert "\x1b[31m" not in done.err


def test_two_packages_of_one_name_are_told_apart_by_the_user(tmp_path: Path) -> None:
    site = tmp_path / "site"
    for name in ("one", "two"):
        package(site, name, f"[harness.prompts]\nmine = {name}:P\n", "P = {'template': '{question}!'}\n")
    done = harness(tmp_path, site, "run", "demo", "--prompt", "mine", "--dry-run")
    assert done.code == 2
    assert "one 1.0 and two 1.0 both provide a prompt named 'mine': uninstall one of them" in done.err


PROMPT, SOURCE = "[harness.prompts]\nx = odd:X\n", "[harness.sources]\nx = odd:X\n"
BY_PROMPT, BY_SOURCE = ("run", "demo", "--prompt", "x", "--dry-run"), ("run", "--data", "x://y", "--dry-run")


@pytest.mark.parametrize(
    ("points", "module", "words", "sentence"),
    [
        (PROMPT, "X = 5\n", BY_PROMPT, "found int"),
        (PROMPT, "X = {'tempalte': 'a'}\n", BY_PROMPT, "the plug-in prompt 'x'"),
        (
            SOURCE,
            "def X(a, s):\n    return [1]\n",
            BY_SOURCE,
            "x://y:1: expected a mapping of column names to values, found int",
        ),
        (SOURCE, "def X(a, s):\n    raise OSError('gone')\n", BY_SOURCE, "the source 'x' failed: OSError: gone"),
        (
            SOURCE,
            "X = 5\n",
            ("run", "--data", "z://y", "--dry-run"),
            "unknown scheme z://; expected one of hf://, x://",
        ),
    ],
)
def test_what_a_plugin_gives_is_checked(
    tmp_path: Path, points: str, module: str, words: tuple[str, ...], sentence: str
) -> None:
    done = harness(tmp_path, package(tmp_path / "site", "odd", points, module), *words)
    assert done.code == 2
    assert sentence in done.err
    assert "Traceback" not in done.err


def test_a_name_of_ours_stays_ours(tmp_path: Path) -> None:
    points = "[harness.prompts]\nboxed = takes:P\n[harness.launchers]\nvllm = takes:P\n"
    site = package(tmp_path / "site", "takes", points, "P = {'template': 'SPOILT {question}'}\n")
    done = harness(tmp_path, site, "run", "demo", "--model", "m", "--base-url", "http://127.0.0.1:9", "--dry-run")
    assert "SPOILT" not in done.out + done.err


def test_a_strangers_card_may_not_name_any_code(tmp_path: Path) -> None:
    site = package(
        tmp_path / "site", "one", "[harness.graders]\nmine = one:right\n", "def right(a, q):\n    return True\n"
    )
    words = ("grade", "1", r"\boxed{2}", "--grader")
    for named in ("one:right", "mine"):
        assert process(tmp_path, site, *words, named).stdout.endswith("correct\n"), named
    refused = process(tmp_path, site, *words, "os:system")
    assert refused.returncode == 2
    assert "HARNESS_GRADERS" in refused.stderr


def test_help_imports_no_plugin_and_looks_for_none(tmp_path: Path) -> None:
    code = "import sys; from click.testing import CliRunner; from harness.cli.main import cli\n"
    code += "CliRunner().invoke(cli, ['--help']); assert 'harness.core.plugins' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(CHECKOUT)}, check=True
    )
