"""The shipped cards against a hub that holds the same layouts as the real one, and against a plain web server."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from harness.benchmarks import card, catalogue, data, questions
from harness.benchmarks.card import Card, HubSource
from harness.benchmarks.sources import web
from harness.core.errors import UsageError
from harness.testing import FakeServer, Request, Step, http
from tests.benchmarks.hub_server import Dataset, Hub
from tests.benchmarks.made_up import LAYOUTS


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    """A folder of invented files, named and laid out as the real ones are."""
    folder = tmp_path / "made-up"
    folder.mkdir()
    for file, layout in LAYOUTS.items():
        (folder / file).write_bytes(layout.jsonl())
    return folder


def rows(folder: Path, file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / file).read_text("utf-8").split("\n") if line]


def parquet(found: list[dict[str, Any]]) -> bytes:
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(found), buffer)
    return buffer.getvalue()


def lines(found: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found).encode()


def bare(text: str) -> str:
    return text.removesuffix("\nPlease reason step by step, and put your final answer within \\boxed{}.")


def layouts(folder: Path) -> dict[str, dict[str, bytes]]:
    """The hub's layout of each set, made of a folder's rows: names of files and columns as the hub has them."""
    aime25 = [{"question": bare(r["prompt"]), "answer": str(r["answer"])} for r in rows(folder, "aime25.jsonl")]
    half = len(aime25) // 2
    solved = rows(folder, "aime24_with_solutions.jsonl")
    olympiad = rows(folder, "olympiadbench.jsonl")[:674]
    return {
        "aime24": {
            "data/train-00000-of-00001.parquet": parquet(
                [{key: row[key] for key in ("id", "problem", "solution", "answer", "url")} for row in solved]
            )
        },
        "aime25": {"aime2025-I.jsonl": lines(aime25[:half]), "aime2025-II.jsonl": lines(aime25[half:])},
        "aime25_i": {"aime2025-I.jsonl": lines(aime25[:half]), "aime2025-II.jsonl": lines(aime25[half:])},
        "aime25_ii": {"aime2025-I.jsonl": lines(aime25[:half]), "aime2025-II.jsonl": lines(aime25[half:])},
        "aime26": {
            "data/train-00000-of-00001.parquet": parquet(
                [
                    {"problem_idx": n, "problem": bare(r["prompt"]), "answer": int(r["answer"])}
                    for n, r in enumerate(rows(folder, "aime26.jsonl"), 1)
                ]
            )
        },
        "hmmt_feb25": {
            "data/train-00000-of-00001.parquet": parquet(
                [
                    {"problem_idx": n, "problem": bare(r["prompt"]), "answer": r["answer"], "problem_type": ["Algebra"]}
                    for n, r in enumerate(rows(folder, "hmmt_feb_2025.jsonl"), 1)
                ]
            )
        },
        "amc23": {
            "data/test-00000-of-00001.parquet": parquet(
                [{k: r[k] for k in ("id", "answer", "url", "question")} for r in rows(folder, "amc23.jsonl")]
            )
        },
        "math500": {"test.jsonl": (folder / "math500_with_solutions.jsonl").read_bytes()},
        "gsm8k": {
            "main/test-00000-of-00001.parquet": parquet(rows(folder, "gsm8k.jsonl")),
            "socratic/test-00000-of-00001.parquet": parquet(rows(folder, "gsm8k.jsonl")[:3]),
        },
        "olympiadbench": {"OlympiadBench/OE_TO_maths_en_COMP/OE_TO_maths_en_COMP.parquet": parquet(olympiad)},
        "minerva": {"test.jsonl": (folder / "minerva_limo.jsonl").read_bytes()},
    }


def publish(hub: Hub, source: HubSource, files: dict[str, bytes], **more: Any) -> None:
    assert source.revision
    hub.datasets[source.id] = Dataset({source.revision: files}, **more)


HUB_CARDS = [
    *("aime24", "aime25", "aime25_i", "aime25_ii", "aime26", "hmmt_feb25"),
    *("amc23", "math500", "gsm8k", "olympiadbench", "minerva"),
]


@pytest.mark.parametrize("name", HUB_CARDS)
def test_a_shipped_card_fetches_its_layout_from_the_hub_and_knows_its_own_rows(
    hub: Hub, made_up: Path, name: str
) -> None:
    shipped = catalogue.load(name)
    assert isinstance(shipped.source, HubSource)
    publish(hub, shipped.source, layouts(made_up)[name])
    uncounted = shipped.model_copy(update={"questions": None, "checksum": None, "answers_checksum": None})
    assert data.status(uncounted) == "absent"
    read = {question.references for question in questions.build(uncounted).questions}
    assert read <= {references for layout in LAYOUTS.values() for references in layout.references}
    assert data.status(uncounted) == "here"
    with pytest.raises(UsageError, match=rf"but the card '{name}' says"):
        data.fetch(shipped)


@pytest.mark.parametrize(
    ("name", "count"),
    [("aime24", 30), ("aime25", 30), ("aime25_i", 15), ("aime25_ii", 15), ("aime26", 30), ("hmmt_feb25", 30),
     ("amc23", 40), ("math500", 500), ("gsm8k", 1319), ("olympiadbench", 674), ("minerva", 272)],
)  # fmt: skip
def test_a_shipped_card_fetches_and_verifies_its_set_from_the_hub(
    hub: Hub, shared_data: Path, name: str, count: int
) -> None:
    loaded = catalogue.load(name)
    assert isinstance(loaded.source, HubSource)
    publish(hub, loaded.source, layouts(shared_data)[name])
    assert data.status(loaded) == "absent"
    assert data.fetch(loaded).n_questions == count
    assert data.status(loaded) == "here"


def test_the_other_hub_layout_of_aime24_reads_the_same(hub: Hub, shared_data: Path) -> None:
    revision = "8d88b2876a82a080e2f172cc9b25d0d9d2cb4792"
    second_layout = [
        {"ID": f"2024-{r['id']}", "Problem": r["problem"], "Solution": r["solution"], "Answer": int(r["answer"])}
        for r in rows(shared_data, "aime24_with_solutions.jsonl")
    ]
    hub.datasets["Maxwell-Jia/AIME_2024"] = Dataset({revision: {"aime_2024_problems.parquet": parquet(second_layout)}})
    own = catalogue.load("aime24").with_data(f"hf://datasets/Maxwell-Jia/AIME_2024@{revision}")
    built = questions.build(own)
    assert built.n_all == 30
    assert questions.answers_digest(q.references for q in built.questions) == catalogue.load("aime24").answers_checksum


def made_up_gpqa() -> bytes:
    """198 invented rows under GPQA's column names; its own text must not be written down."""
    text = io.StringIO(newline="")
    columns = ["Record ID", "Question", "Correct Answer"] + [f"Incorrect Answer {i}" for i in (1, 2, 3)]
    writer = csv.DictWriter(text, [*columns, "High-level domain", "Subdomain"])
    writer.writeheader()
    for n in range(198):
        cells = [f"rec{n:03}", f"Which number follows {n}?\n", f"{n + 1}\n", f"{n + 2}", f" {n + 3}", f"{n + 4}"]
        writer.writerow(dict(zip(columns, cells, strict=True)) | {"High-level domain": "Physics", "Subdomain": "Sums"})
    return text.getvalue().encode()


def test_gpqa_is_read_with_the_users_own_access_and_shuffled(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = catalogue.load("gpqa_diamond")
    assert isinstance(loaded.source, HubSource)
    publish(hub, loaded.source, {"gpqa_diamond.csv": made_up_gpqa(), "gpqa_main.csv": b""}, gated=True)
    with pytest.raises(UsageError, match="Idavidrein/gpqa is gated: accept its terms"):
        data.fetch(loaded)
    monkeypatch.setenv("HF_TOKEN", hub.token)
    built = questions.build(loaded)
    assert built.n_all == 198
    letters = [question.references[0] for question in built.questions]
    assert {letter: letters.count(letter) > 25 for letter in "ABCD"} == dict.fromkeys("ABCD", True)
    assert all(q.choices["ABCD".index(q.references[0])] == str(int(q.question_id[3:]) + 1) for q in built.questions)
    assert len(questions.build(loaded, filters=["Subdomain=Sums"]).questions) == 198


def test_limo_is_read_at_the_newest_revision_with_its_count_checked(hub: Hub) -> None:
    made_up = [{"question": f"What is {n} + 1?", "solution": "…", "answer": str(n + 1)} for n in range(817)]
    hub.datasets["GAIR/LIMO"] = Dataset({"c" * 40: {"limo.jsonl": lines(made_up)}})
    built = questions.build(catalogue.load("limo"))
    assert built.n_all == 817
    assert any("c" * 40 in note for note in built.notes)
    hub.datasets["GAIR/LIMO"] = Dataset({"d" * 40: {"limo.jsonl": lines(made_up[:800])}})
    with pytest.raises(UsageError, match="holds 800 questions, but the card 'limo' says 817"):
        questions.build(catalogue.load("limo"))


def web_card(hub: Hub, payload: bytes, sha256: str | None = None) -> Card:
    hub.datasets["web/set"] = Dataset({"e" * 40: {"set.jsonl": payload}})
    return card.from_mapping(
        {
            "name": "web",
            "title": "Web",
            "source": {
                "kind": "url",
                "url": f"{hub.url}/cdn/web/set/{'e' * 40}/set.jsonl",
                "sha256": sha256 or hashlib.sha256(payload).hexdigest(),
            },
            "columns": {"question": "q", "answer": "a"},
        },
        where="test",
    )


def test_a_file_at_a_fixed_address_is_downloaded_once_and_checked(hub: Hub) -> None:
    loaded = web_card(hub, lines([{"q": "1 + 1?", "a": 2}]))
    assert data.status(loaded) == "absent"
    assert questions.build(loaded).questions[0].references == ("2",)
    assert data.status(loaded) == "here"
    hub.log.clear()
    questions.build(loaded)
    assert hub.log == []


def test_a_file_with_another_checksum_is_never_read(hub: Hub) -> None:
    loaded = web_card(hub, lines([{"q": "1 + 1?", "a": 3}]), sha256="0" * 64)
    with pytest.raises(UsageError, match=r"has the checksum [0-9a-f]{64}, but the card says 0{64}"):
        questions.build(loaded)
    assert data.status(loaded) == "absent"


def test_an_address_that_does_not_answer_is_one_sentence(hub: Hub) -> None:
    loaded = web_card(hub, b"x")
    hub.broken = 404
    with pytest.raises(UsageError, match=r"answered 404 for .*; is the file still there"):
        questions.build(loaded)
    gone = loaded.model_copy(
        update={"source": loaded.source.model_copy(update={"url": "http://127.0.0.1:9/set.jsonl"})}
    )
    with pytest.raises(UsageError, match=r"is not in the cache and cannot be reached .* local file with `data`"):
        questions.build(gone)


def test_a_download_follows_redirects_and_survives_a_bad_moment(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = lines([{"q": "1 + 1?", "a": 2}])
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "own cache"))

    def answer(request: Request) -> Iterable[Step]:
        if request.path == "/v1/set.jsonl":
            return [http(302, location="/elsewhere")]
        return [http(503)] if request.number == 2 else [http(200, payload)]

    with FakeServer(answer) as server:
        loaded = web_card(hub, payload)
        source = loaded.source.model_copy(update={"url": f"{server.base_url}/set.jsonl"})
        assert questions.build(loaded.model_copy(update={"source": source})).questions[0].references == ("2",)
        assert [request.path for request in server.requests] == ["/v1/set.jsonl", "/elsewhere"] * 2
    assert len(list((tmp_path / "own cache" / "datasets").rglob("set.jsonl"))) == 1


def test_a_download_over_its_bound_is_refused(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "MAX_DOWNLOAD_BYTES", 10)
    with pytest.raises(UsageError, match="is longer than 10 bytes"):
        questions.build(web_card(hub, lines([{"q": "1 + 1?", "a": 2}])))


def test_the_chinese_sets_name_the_checksums_of_their_real_files(shared_data: Path) -> None:
    files = {
        "gaokao": "gaokao.jsonl",
        "kaoyan": "kaoyan.jsonl",
        "gradeschool": "grade_school_math.jsonl",
        "chmath": "cn_math_2024.jsonl",
    }
    for name, file in files.items():
        source = catalogue.load(name).source
        assert getattr(source, "sha256", None) == hashlib.sha256((shared_data / file).read_bytes()).hexdigest()
