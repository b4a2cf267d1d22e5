"""Shipped cards against a hub with layouts as the real one has, and cards whose file lies at a plain web server."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import pytest

from harness.benchmarks import card, catalog, questions
from harness.benchmarks.card import Card, HubSource
from harness.benchmarks.sources import web
from harness.commands import card_data
from harness.core.errors import UsageError
from harness.testing import FakeServer, Request, Step, http
from tests.benchmarks.hub_server import Dataset, Hub, jsonl


def made_up_gpqa() -> bytes:
    """198 invented rows under GPQA's column names; its own text must not be written down."""
    wrong = ",".join(f"Incorrect Answer {i}" for i in (1, 2, 3))
    rows = (
        f'rec{n:03},"Which number follows {n}?\n","{n + 1}\n",{n + 2}, {n + 3},{n + 4},Physics,Sums' for n in range(198)
    )
    return "\n".join([f"Record ID,Question,Correct Answer,{wrong},High-level domain,Subdomain", *rows]).encode()


def test_gpqa_is_read_with_the_users_own_access_and_shuffled(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = catalog.load("gpqa_diamond")
    assert isinstance(loaded.source, HubSource)
    files = {"gpqa_diamond.csv": made_up_gpqa(), "gpqa_main.csv": b""}
    hub.datasets[loaded.source.id] = Dataset({str(loaded.source.revision): files}, gated=True)
    with pytest.raises(UsageError, match="Idavidrein/gpqa is gated: accept its terms"):
        card_data.fetch(loaded)
    monkeypatch.setenv("HF_TOKEN", hub.token)
    built = questions.build(loaded, filters=["Subdomain=Sums"])
    letters = [question.references[0] for question in built.questions]
    assert (built.n_all, len(letters)) == (198, 198)
    assert all(letters.count(letter) > 25 for letter in "ABCD")
    assert all(q.choices["ABCD".index(q.references[0])] == str(int(q.question_id[3:]) + 1) for q in built.questions)


def web_card(hub: Hub, payload: bytes = jsonl([{"q": "1 + 1?", "a": 2}]), **changes: str) -> Card:
    hub.datasets["web/set"] = Dataset({"e" * 40: {"set.jsonl": payload}})
    url = f"{hub.url}/cdn/web/set/{'e' * 40}/set.jsonl"
    source = {"kind": "url", "url": url, "sha256": hashlib.sha256(payload).hexdigest()} | changes
    columns = {"question": "q", "answer": "a"}
    return card.from_mapping({"name": "web", "title": "Web", "source": source, "columns": columns}, where="test")


def test_a_file_at_a_fixed_address_is_downloaded_once_and_checked(hub: Hub) -> None:
    loaded = web_card(hub)
    assert card_data.status(loaded) == "absent"
    assert questions.build(loaded).questions[0].references == ("2",)
    assert card_data.status(loaded) == "here"
    hub.log.clear()
    questions.build(loaded)
    assert hub.log == []


def test_a_file_that_is_wrong_long_or_not_there_is_one_sentence(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    other = web_card(hub, sha256="0" * 64)
    with pytest.raises(UsageError, match=r"has the checksum [0-9a-f]{64}, but the card specifies 0{64}"):
        questions.build(other)
    assert card_data.status(other) == "absent"
    with pytest.raises(UsageError, match=r"is not in the cache and cannot be reached .* local file as `data`"):
        questions.build(web_card(hub, url="http://127.0.0.1:9/set.jsonl"))
    monkeypatch.setattr(web, "MAX_DOWNLOAD_BYTES", 10)
    with pytest.raises(UsageError, match="exceeds the limit of 10 bytes"):
        questions.build(web_card(hub))
    hub.broken = 404
    with pytest.raises(UsageError, match=r"returned HTTP 404 for .*; check that the file still exists"):
        questions.build(web_card(hub))


def test_a_download_follows_redirects_and_survives_a_bad_moment(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "own cache"))

    def answer(request: Request) -> Iterable[Step]:
        if request.path == "/v1/set.jsonl":
            return [http(302, location="/elsewhere")]
        return [http(503)] if request.number == 2 else [http(200, jsonl([{"q": "1 + 1?", "a": 2}]))]

    with FakeServer(answer) as server:
        loaded = web_card(hub, url=f"{server.base_url}/set.jsonl")
        assert questions.build(loaded).questions[0].references == ("2",)
        assert [request.path for request in server.requests] == ["/v1/set.jsonl", "/elsewhere"] * 2
    assert len(list((tmp_path / "own cache" / "datasets").rglob("set.jsonl"))) == 1


def test_the_chinese_sets_name_the_checksums_of_their_real_files(shared_data: Path) -> None:
    files = {"gaokao": "gaokao", "kaoyan": "kaoyan", "gradeschool": "grade_school_math", "chmath": "cn_math_2024"}
    for name, file in files.items():
        content = (shared_data / f"{file}.jsonl").read_bytes()
        assert getattr(catalog.load(name).source, "sha256", None) == hashlib.sha256(content).hexdigest()
