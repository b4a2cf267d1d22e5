"""Shipped cards against a hub with layouts as the real one has, and cards whose file lies at a plain web server."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks import card, catalogue, data, questions
from harness.benchmarks.card import Card, HubSource
from harness.benchmarks.sources import web
from harness.core.errors import UsageError
from harness.testing import FakeServer, Request, Step, http
from tests.benchmarks.hub_server import Dataset, Hub, jsonl, parquet


def publish(hub: Hub, source: HubSource, files: dict[str, bytes], **more: Any) -> None:
    assert source.revision
    hub.datasets[source.id] = Dataset({source.revision: files}, **more)


def test_the_other_hub_layout_of_aime24_reads_the_same(hub: Hub, shared_data: Path) -> None:
    revision = "8d88b2876a82a080e2f172cc9b25d0d9d2cb4792"
    second_layout = [
        {"ID": f"2024-{r['id']}", "Problem": r["problem"], "Solution": r["solution"], "Answer": int(r["answer"])}
        for r in map(json.loads, (shared_data / "aime24_with_solutions.jsonl").read_text("utf-8").splitlines())
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
    hub.datasets["GAIR/LIMO"] = Dataset({"c" * 40: {"limo.jsonl": jsonl(made_up)}})
    built = questions.build(catalogue.load("limo"))
    assert built.n_all == 817
    assert any("c" * 40 in note for note in built.notes)
    hub.datasets["GAIR/LIMO"] = Dataset({"d" * 40: {"limo.jsonl": jsonl(made_up[:800])}})
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
    loaded = web_card(hub, jsonl([{"q": "1 + 1?", "a": 2}]))
    assert data.status(loaded) == "absent"
    assert questions.build(loaded).questions[0].references == ("2",)
    assert data.status(loaded) == "here"
    hub.log.clear()
    questions.build(loaded)
    assert hub.log == []


def test_a_file_with_another_checksum_is_never_read(hub: Hub) -> None:
    loaded = web_card(hub, jsonl([{"q": "1 + 1?", "a": 3}]), sha256="0" * 64)
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
    payload = jsonl([{"q": "1 + 1?", "a": 2}])
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
        questions.build(web_card(hub, jsonl([{"q": "1 + 1?", "a": 2}])))


def test_the_chinese_sets_name_the_checksums_of_their_real_files(shared_data: Path) -> None:
    files = {"gaokao": "gaokao", "kaoyan": "kaoyan", "gradeschool": "grade_school_math", "chmath": "cn_math_2024"}
    for name, file in files.items():
        source = catalogue.load(name).source
        assert (
            getattr(source, "sha256", None) == hashlib.sha256((shared_data / f"{file}.jsonl").read_bytes()).hexdigest()
        )
