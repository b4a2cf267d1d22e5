"""Each link of a page leads to a file of the checkout and to a heading that it has. Python of the pages parses, no
block of commands was wrapped like prose, and no sentence is too long to be read once. What a page says that a command
prints is what the command prints, but for its numbers.

Blocks of `console` show a command behind `$` and its output. On the pages below, the runs are made up: samples of known
accuracy. A tutorial has its commands in a block of `sh`, the output in a block of `text` behind it.

For: harness.exports.selection, harness.exports.export, harness.client.address.providers.
"""

from __future__ import annotations

import ast
import json
import random
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from harness.client.address.providers import Provider
from harness.exports.selection import ExportedBenchmark, SampleChoice
from harness.runs import Manifest
from harness.testing import FakeServer, Request, Said, Step, delta, event, event_stream, http, serving
from tests.commands.calling_model import FAULTS as CALL_FAULTS
from tests.commands.calling_model import Asked, honest
from tests.commands.reading_server import Reader
from tests.commands.test_probe_replies import a_run
from tests.commands.test_sweep_tables import Overloaded
from tests.docs.pages import DOCS, ROOT, Block, blocks, sentences
from tests.exports.graded_runs import sample, write_run
from tests.faults.able import sums
from tests.system.command import harness
from tools.sentences import catalog

PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "examples").glob("*/README.md"))]


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as MkDocs and code hosts make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", one)).lower().replace(" ", "-") for one in headings
    }


def broken(page: Path) -> list[str]:
    """The links of the page that lead nowhere."""
    text = re.sub(r"^```.*?^```|``?[^`\n]+``?", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    wrong = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_every_page_that_the_code_names_is_there() -> None:
    rooms = [ROOT / room for room in ("harness", "server_launchers", "datasets", "bench", "examples")]
    files = [path for room in rooms for path in room.rglob("*") if path.suffix in (".py", ".yaml", ".md")]
    files += [ROOT / name for name in ("Dockerfile", "Makefile", "compose.yaml", "pyproject.toml")]
    named = {name for path in files for name in re.findall(r"(?<![\w/])docs/[\w/-]+\.md\b", path.read_text("utf-8"))}
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_a_link_that_leads_nowhere_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One heading\n\n[a](page.md#one-heading) [b](page.md#another) [c](none.md) [d](https://example.org)\n"
    )
    assert broken(page) == ["page.md#another", "none.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_of_a_page_keep_their_lines(page: Path) -> None:
    for block in blocks(page, "python"):
        ast.parse(block.text.replace("…", "..."), f"{page}:{block.line}")
    for block in blocks(page, "", "sh"):
        lines = block.text.splitlines()
        # Wrapped like prose, a command would stand at the end of the description before it.
        if sum(line.startswith("harness ") for line in lines) > 1:
            joined = [line for line in lines if re.search(r" {2,}.*\bharness [a-z]+( |$)", line)]
            assert not joined, f"{page}:{block.line}: {joined[0]}"


MAX_WORDS = 30
SKIMMED = {"docs/deciding.md", "docs/grading.md", "docs/statistics.md"}
"""Pages that many people skim: a sentence there has at most 25 words."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_sentence_is_long(page: Path) -> None:
    if page.parent.name in ("reference", "commands") or page.name == "CHANGELOG.md":
        return
    most = 25 if str(page.relative_to(ROOT)) in SKIMMED else MAX_WORDS
    assert [sentence for sentence, n_words in sentences(page) if n_words > most] == []


def test_the_words_of_a_sentence_are_counted(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(
        "# A title\n\nOne `of us` [two](x.md) words. And\nmore.\n\n- A point\n\n    code\n"
    )
    assert [n for _, n in sentences(tmp_path / "page.md") if n] == [4, 2, 2]


def meaning(line: str) -> str:
    """A line without what differs from one run to the next: numbers, times, how many blanks stand between words."""
    bare = re.sub(r"\[[\d–]+\]|─+", "", line)  # marks of footnotes, rules of tables
    return re.sub(r"[-+<]?\d[\d,.]*", "#", " ".join(bare.split()))


def missing(shown: str, printed: str) -> list[str]:
    """The lines of a page's block that a command did not print, in their order. "…" stands for the rest of a line."""
    rest = iter([meaning(line) for line in printed.splitlines()])
    lines = [meaning(line) for line in shown.splitlines() if line.strip() != "…"]
    found = (
        any(got.startswith(line[:-1].rstrip()) if line.endswith("…") else got == line for got in rest) for line in lines
    )
    return [line for line, there in zip(lines, found, strict=True) if not there]


def made_up(folder: Path, name: str, accuracy: float, seed: int, benchmark: str = "sums", model: str = "m") -> None:
    """A run of 64 samples of each of 30 questions, some hard and some easy."""
    draws, ease = random.Random(f"{name} {seed}"), [random.Random(number).gauss(0, 1.2) for number in range(30)]
    right = [1 / (1 + 2.718 ** (-one - 4.8 * (accuracy - 0.5))) for one in ease]
    texts = [(n, i, n + 1 if draws.random() < right[n] else n + 2) for n in range(30) for i in range(64)]
    samples = [sample(n, i, rf"\boxed{{{value}}}", benchmark, seed=seed + 100 * i + n) for n, i, value in texts]
    identity = {"model": model, "sampling": {"temperature": 0.6, "top_p": 0.95, "max_tokens": 32768}}
    write_run(folder / name, {benchmark: samples}, questions=30, of_each=64, identity=identity, settings={"seed": seed})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs that the pages name."""
    folder = tmp_path_factory.mktemp("made-up")
    for name, accuracy, seed in (("base", 0.55, 7), ("tuned", 0.65, 8), ("compressed", 0.55, 9)):
        made_up(folder, name, accuracy, seed)
    made_up(folder, "qwq", 0.69, 7, "aime24", "Qwen/QwQ-32B")
    a_run(folder, name="results/base")
    sums(folder, 24)
    (folder / "load.yaml").write_text(blocks(DOCS / "questions/load.md", "yaml")[0].text)
    for name, length, seed in (("lastnight", 2.9, "1"), ("tonight", 2.4, "2")):
        with FakeServer(serving(partial(drafted, length))) as server:
            server.metrics = lambda _: [http(200, b'vllm:generation_tokens_total{model_name="test-model"} 0\n')]
            words = ["run", "--data", "sums.jsonl", "--samples", "4", "--out", name, "--base-url", server.base_url]
            assert harness(folder, *words, "--seed", seed).code == 0
    assert harness(folder, "score", "lastnight", "tonight").code == 0
    return folder


def drafted(length: float, request: Request) -> Iterator[Step]:
    """An answer of 300 tokens, of which a step of decoding accepts so many in the mean."""
    asked = request.json["messages"][-1]["content"]
    rng = random.Random(f"{asked} {request.json['seed']}")
    steps = round(300 / length * rng.gauss(1, 0.03))
    counts = {"num_spec_steps": steps, "num_accepted_draft_tokens": 300 - steps}
    usage = {"prompt_tokens": 9, "completion_tokens": 300}
    last = event({"choices": [], "usage": usage, "metrics": {"speculative_decoding": counts}})
    answer = int(asked.split()[2]) + rng.choice([1, 1, 2])
    return event_stream(delta(rf"{'so ' * 300}\boxed{{{answer}}}"), delta(finish="stop"), last)


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    """Address on a page → that of its stand-in: a base model and a changed copy, one that streams no calls, and one
    that drops answers if four requests are in flight.
    """

    def called(request: Request) -> Said:
        asked = Asked(request.json, random.Random(1))
        return CALL_FAULTS["no calls in streams"][2](asked, honest(asked))

    answers = {
        "base": Reader(jitter=0.003),
        "copy": Reader("copy", shift=-0.05, rounding=0.05),
        "node1": serving(called),
        "node2": serving(Overloaded(4).answer),
    }
    with ExitStack() as stack:
        yield {
            f"http://{name}:8000": stack.enter_context(FakeServer(answer)).base_url.removesuffix("/v1")
            for name, answer in answers.items()
        }


SHOWN = [
    block
    for page in (*(ROOT / name for name in ("README.md", *sorted(SKIMMED))), *sorted(DOCS.glob("questions/*.md")))
    for block in blocks(page, "console")
]


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: f"{block.page.stem}-{block.line}")
def test_the_output_on_the_page_is_what_the_command_prints(block: Block, runs: Path, servers: dict[str, str]) -> None:
    text = block.text
    for shown, address in servers.items():
        text = text.replace(shown, address)
    command, _, output = text.partition("\n")
    result = harness(runs, *shlex.split(command.removeprefix("$ harness ")))
    assert missing(output, result.out) == [], result.out


def test_a_line_that_is_no_more_printed_would_be_seen() -> None:
    printed = "sums: 55.6% over 30 questions\n  same questions   -15.5 to -3.2   worse\n"
    assert missing("sums: 1.0% over 2 questions\n…\n same questions 1 to 2 worse", printed) == []
    assert missing("sums: 1.0% over …\n same questions 1 to 2 better", printed) == ["same questions # to # better"]


def test_the_catalog_holds_help_messages_pages_and_screens() -> None:
    found = {name for name, _, _ in catalog([])}
    assert {"README.md", "docs/reference/commands/run.md", "harness/viewer/front/compare.js"} <= found
    assert {"harness/core/files.py", ".github/pull_request_template.md", "CHANGELOG.md"} <= found


def test_a_sentence_is_named_by_its_file_and_line() -> None:
    (name, line, words), *_ = catalog(["harness/core/secret.py"], docstrings=True)
    assert (name, line) == ("harness/core/secret.py", 1)
    assert words.endswith(".")
    assert words not in {sentence for _, _, sentence in catalog(["harness/core/secret.py"])}


PAGE = (Path(__file__).resolve().parents[2] / "examples" / "plugin_package" / "README.md").read_text("utf-8")


def part(heading: str) -> str:
    return PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]


def named(heading: str) -> set[str]:
    """The names in the first column of the part's table, without brackets."""
    cells = re.findall(r"^\| (`[^|]*) \|", part(heading), re.MULTILINE)
    return {name.removesuffix("()") for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def example(heading: str) -> dict[str, Any]:
    """The names that the part's code block makes."""
    (block,) = re.findall(r"```python\n(.*?)```", part(heading), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "examples/plugin_package/README.md", "exec"), names)
    return names


def test_the_tables_name_every_attribute_and_no_other() -> None:
    own = {name for name in vars(ExportedBenchmark) if not name.startswith("_")}
    assert named("Exporters") == own | set(ExportedBenchmark.__dataclass_fields__)
    assert named("Providers") == set(Provider.model_fields)


def test_the_page_s_provider_is_one() -> None:
    provider = Provider.model_validate(example("Providers")["PROVIDER"])
    assert provider.endpoint(None, "key").base_url == "https://api.example.com/v1"


def test_the_pages_exporter_writes_the_shortest_correct_replies(tmp_path: Path) -> None:
    replies = [(0, r"So \boxed{1}."), (0, r"\boxed{1}"), (0, r"\boxed{9}"), (1, r"\boxed{7}"), (2, r"I say \boxed{3}")]
    samples = [sample(number, index, text) for index, (number, text) in enumerate(replies)]
    folder = write_run(tmp_path / "run", samples, of_each=len(samples))
    benchmark = ExportedBenchmark(folder, Manifest.load(folder), "own", SampleChoice())
    (path,) = example("Exporters")["best"]([benchmark], tmp_path / "out")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert lines == [{"id": "q0", "reply": r"\boxed{1}"}, {"id": "q2", "reply": r"I say \boxed{3}"}]
