"""Runs whose questions show images: what a server gets, what the folder holds, and what reads it afterwards.

For: harness.client.apis, harness.core.images, harness.generation.network.requests, harness.benchmarks.sources.images,
harness.benchmarks.sources.columnar.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import struct
import zipfile
from collections import Counter
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.benchmarks import questions
from harness.benchmarks.card import Card, from_file, from_mapping
from harness.benchmarks.row_forms import text_list
from harness.benchmarks.sources import columnar
from harness.benchmarks.sources.images import placed, shared_folder
from harness.core.errors import StoreError, UsageError
from harness.core.images import MAX_IMAGE_BYTES, ImageFacts, media_type, pixels, unusual_traits
from harness.runs import RunFolder
from harness.testing import FakeServer, Request, http, serving
from tests.pictures import EXTENDED, KINDS, LOSSLESS, picture
from tests.system.command import harness as command
from tests.viewer.running import answering_here

N = 6


def shown(number: int) -> list[bytes]:
    """The images of a question: one of its own, one that all show, and one that no mark names."""
    return [picture(number + 1), picture(99, 3000), picture(50 + number)]


def expected(number: int) -> list[str | bytes]:
    """What the request of a question says and shows, in order."""
    own, common, unnamed = shown(number)
    return [f"q{number}: what of ", common, " and ", own, "?", unnamed]


def sent(request: Request) -> list[str | bytes]:
    """What a request says and shows, by the form of its API."""
    body = request.json
    (turn,) = body["input"] if request.api == "responses" else body["messages"]
    parts: list[str | bytes] = []
    for part in turn["content"]:
        url = part.get("image_url")
        if request.api == "messages" and part["type"] == "image":
            assert part["source"]["type"] == "base64"
            url = f"data:{part['source']['media_type']};base64,{part['source']['data']}"
        elif request.api == "chat" and url:
            url = url["url"]
        if url:
            kind, _, data = url.partition(";base64,")
            image = base64.b64decode(data, validate=True)
            assert kind == f"data:{media_type(image)}"
            parts.append(image)
        else:
            parts.append(part["text"])
    return parts


def number_of(request: Request) -> int:
    return int(str(sent(request)[0])[1])


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of questions that name their images, which lie next to it."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    rows = []
    for number in range(N):
        names = [f"{sha256(image).hexdigest()[:8]}.bin" for image in shown(number)]
        for name, image in zip(names, shown(number), strict=True):
            (tmp_path / name).write_bytes(image)
        text = f"q{number}: what of <image 2> and <image 1>?"
        rows.append({"id": f"q{number}", "question": text, "answer": "4", "images": names})
    (tmp_path / "seen.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path / "seen.jsonl"


def asked(data: Path, server: FakeServer, **more: Any) -> dict[str, Any]:
    settings = {"samples": 2, "model": "m", "base_url": server.base_url, "prompt": "none", "canary": False}
    return {"data": data, **settings, "max_tokens": 100, **more}


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_each_request_shows_the_bytes_of_the_row_in_their_places(data: Path, tmp_path: Path, api: str) -> None:
    with FakeServer(serving("so 4", "m")) as server:
        run = harness.run(out=tmp_path / "run", **asked(data, server, api=api))
        posts = [request for request in server.requests if request.method == "POST"]
    assert run.complete
    assert Counter(map(number_of, posts)) == dict.fromkeys(range(N), 2)
    assert all(sent(request) == expected(number_of(request)) for request in posts)
    stored = {file.name: file.read_bytes() for file in (tmp_path / "run" / "seen" / "images").iterdir()}
    assert {sha256(image).hexdigest(): image for n in range(N) for image in shown(n)} == stored
    assert b"base64" not in (tmp_path / "run" / "seen" / "questions.jsonl").read_bytes()


def test_other_images_are_refused_and_lost_ones_are_stored_again(data: Path, tmp_path: Path) -> None:
    with FakeServer(serving("so 4", "m")) as server:
        harness.run(out=tmp_path / "run", **asked(data, server))
        folder = RunFolder(tmp_path / "run").benchmark("seen")
        shutil.rmtree(folder.images)
        more = harness.run(out=tmp_path / "run", **asked(data, server, samples=3))
        assert more.outcome.tally.finished == N
        name = sha256(shown(0)[0]).hexdigest()
        (tmp_path / f"{name[:8]}.bin").write_bytes(picture(17))
        with pytest.raises(harness.StoreError, match="q0 of seen has changed since this run began"):
            harness.run(out=tmp_path / "run", **asked(data, server, samples=4))
        # A file that no longer fits its name ends the run before its request.
        (tmp_path / f"{name[:8]}.bin").write_bytes(shown(0)[0])
        (folder.images / name).unlink()
        (folder.images / name).write_bytes(picture(18))
        with pytest.raises(harness.HarnessError, match=f"{name} was changed; delete it"):
            harness.run(out=tmp_path / "run", **asked(data, server, samples=4))
        # So does one of the cache, by its path; once removed, it is stored again.
        (folder.images / name).unlink()
        (shared_folder().path / name).write_bytes(picture(18))
        with pytest.raises(harness.HarnessError, match=f"cache/images/{name} was changed; delete it"):
            harness.run(out=tmp_path / "run", **asked(data, server, samples=4))
        (shared_folder().path / name).unlink()
        assert harness.run(out=tmp_path / "run", **asked(data, server, samples=4)).complete


def test_shards_copy_their_own_images_and_a_merge_has_all(data: Path, tmp_path: Path) -> None:
    with FakeServer(serving("so 4", "m")) as server:
        parts = [harness.run(out=tmp_path / f"part{k}", shard=f"{k}/2", **asked(data, server)) for k in (1, 2)]
        whole = harness.run(out=tmp_path / "whole", **asked(data, server))
    images = [{file.name for file in (part.path / "seen" / "images").iterdir()} for part in (*parts, whole)]
    assert len(images[0] & images[1]) == 1
    assert images[0] | images[1] == images[2]
    merged = harness.merge([part.path for part in parts], out=tmp_path / "merged")
    assert merged.complete
    assert {file.name for file in (tmp_path / "merged" / "seen" / "images").iterdir()} == images[2]


def test_what_reads_a_run_knows_its_images(data: Path, tmp_path: Path) -> None:
    with FakeServer(serving(r"\boxed{4}", "m")) as server:
        run = harness.run(out=tmp_path / "run", **asked(data, server))
    harness.score(run)
    exported = {to: harness.export(run, to=to, i_know=True).folder for to in ("parquet", "sharegpt", "inspect")}
    rows = pq.read_table(exported["parquet"] / "seen.parquet").to_pylist()
    assert len(rows) == 2 * N
    for row in rows:
        number = int(row["question_id"][1:])
        in_order = [part for part in expected(number) if isinstance(part, bytes)]
        assert [image["bytes"] for image in row["images"]] == in_order
        assert [image["path"] for image in row["images"]] == [file_of(image) for image in in_order]
    lines = [json.loads(line) for line in (exported["sharegpt"] / "seen.jsonl").read_text().splitlines()]
    for line in lines:
        text = line["conversations"][0]["value"]
        said = expected(int(text[1]))
        assert [(exported["sharegpt"] / path).read_bytes() for path in line["images"]] == shown_in(
            expected(int(text[1]))
        )
        assert text == "".join(part if isinstance(part, str) else "<image>" for part in said)
    assert json.loads((exported["sharegpt"] / "dataset_info.json").read_text())["seen"]["columns"]["images"] == "images"
    with zipfile.ZipFile(exported["inspect"] / "seen.eval") as log:
        sample = json.loads(log.read("samples/q3_epoch_1.json"))
    urls = [part["image"].partition(",")[2] for part in sample["input"][0]["content"] if part["type"] == "image"]
    assert [*map(base64.b64decode, urls)] == shown_in(expected(3))
    with pytest.raises(
        harness.UsageError, match="contain images, which alpaca does not support: export them as sharegpt"
    ):
        harness.export(run, to="alpaca", i_know=True)
    printed = command(tmp_path, "show", "run", "q3")
    assert f"image: {file_of(shown(3)[0])}, 640 × 4 pixels, {len(shown(3)[0])} bytes" in printed.out


def test_the_viewer_shows_images_by_their_first_bytes_and_nothing_else(data: Path, tmp_path: Path) -> None:
    with FakeServer(serving("so 4", "m")) as server:
        harness.run(out=tmp_path / "runs" / "a", **asked(data, server))
    folder, where = tmp_path / "runs" / "a" / "seen" / "images", {"run": "a", "benchmark": "seen"}
    lost, bomb = (sha256(shown(0)[which]).hexdigest() for which in (0, 2))
    (folder / lost).unlink()
    (folder / lost).write_text("<svg onload='alert(1)'/>")
    with answering_here(tmp_path / "runs") as viewer, viewer.client() as client:
        (question,) = (client.get("/api/question", params={**where, "question": "q0"}).json()["question"],)
        assert [(image["name"] is not None, "was changed" in image["words"]) for image in question["images"]] == [
            (True, False), (False, True), (True, False)
        ]  # fmt: skip
        page = client.get("/image", params={**where, "name": bomb})
        assert page.content == shown(0)[2]
        assert page.headers["content-type"] == media_type(page.content)
        assert (page.headers["x-content-type-options"], page.headers["content-security-policy"]) == (
            "nosniff", "sandbox; default-src 'none'"
        )  # fmt: skip
        for name in (lost, "../questions.jsonl", "/etc/passwd", "0" * 64, ""):
            assert client.get("/image", params={**where, "name": name}).status_code == 409
    assert not ImageFacts("a", "png", (100_000, 100_000), 40).can_be_shown


def test_a_started_server_takes_images_and_a_text_model_is_one_sentence(data: Path, tmp_path: Path) -> None:
    words = ["--data", str(data), "--model", "org/model", "--out", "run"]
    dry = command(tmp_path, "run", *words, "--serve", "vllm", "--dry-run")
    assert """--limit-mm-per-prompt '{"image": 3}'""" in dry.out + dry.err
    assert "base64" not in dry.out
    refusal = http(400, {"error": {"message": "org/model is not a multimodal model"}})
    with FakeServer(serving([refusal], "org/model")) as server:
        refused = command(tmp_path, "run", *words, "--base-url", server.base_url, "--samples", "50")
        n_asked = sum(request.method == "POST" for request in server.requests)
    assert refused.code != 0
    assert "rejects every request: HTTP 400: org/model is not a multimodal model" in refused.err
    assert n_asked < 100


def scoring(folder: Path, replies: list[dict[str, str]]) -> list[str]:
    """Write the replies, and a card of the data; the words after `harness score`."""
    card = ["name: pics", "title: Pictures", "source: {kind: file, path: seen.jsonl}", "prompt: none",
            "columns: {question: question, answer: answer, id: id, images: [images]}"]  # fmt: skip
    (folder / "pics.yaml").write_text("\n".join(card))
    (folder / "out.jsonl").write_text("\n".join(map(json.dumps, replies)))
    return ["out.jsonl", "--benchmark", "pics.yaml", "--response-key", "gen", "--json"]


@pytest.mark.parametrize("right", [True, False])
def test_outputs_are_scored_with_the_images_of_a_card(data: Path, tmp_path: Path, right: bool) -> None:
    replies = [{"id": f"q{n}", "gen": rf"\boxed{{{4 if right else 5}}}"} for n in range(N)]
    words = scoring(tmp_path, replies)
    (score,) = json.loads(command(tmp_path, "score", *words, "--id-key", "id").out)
    assert (score["accuracy"]["value"], score["n_samples"]) == (float(right), N)
    images = {file.name for file in (tmp_path / "out.jsonl.scored" / "pics" / "images").iterdir()}
    assert images == {sha256(image).hexdigest() for n in range(N) for image in shown(n)}
    (tmp_path / f"{sha256(shown(3)[0]).hexdigest()[:8]}.bin").unlink()
    refused = command(tmp_path, "score", *words, "--id-key", "id", "--out", "other")
    assert refused.code != 0
    assert "seen.jsonl:4: the image in the column 'images' is" in refused.err
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("same", [True, False])
def test_outputs_need_ids_where_only_images_tell_questions_apart(data: Path, tmp_path: Path, same: bool) -> None:
    text = "<image 2> or <image 1>?"
    rows = [
        json.loads(row) | {"question": text, "answer": str(n)} for n, row in enumerate(data.read_text().splitlines())
    ]
    rows = [row | {"images": rows[0]["images"], "answer": "0"} for row in rows] if same else rows
    data.write_text("\n".join(map(json.dumps, rows)))
    replies = [{"id": row["id"], "question": text, "gen": rf"\boxed{{{row['answer']}}}"} for row in reversed(rows)]
    words = scoring(tmp_path, replies)
    (score,) = json.loads(command(tmp_path, "score", *words, "--id-key", "id").out)
    assert (score["accuracy"]["value"], score["n_missing"]) == (1.0, 0)
    without = [{key: reply[key] for key in ("question", "gen")} for reply in replies]
    scored = command(tmp_path, "score", *scoring(tmp_path, without))
    assert (scored.code == 0) == same
    assert same or f"'{text}' is the text of 6 questions of pics.yaml with different images; specify" in scored.err
    with FakeServer(serving("so 4", "m")) as server:  # nor does a run begin with such replies
        begun = command(
            tmp_path, "run", "pics.yaml", "--base-url", server.base_url, "--model", "m", "--out", "out.jsonl"
        )
    assert ("contains no replies to this run's questions" not in begun.err) == same
    assert (begun.code == 0) == same


def shown_in(parts: list[str | bytes]) -> list[bytes]:
    return [part for part in parts if isinstance(part, bytes)]


def file_of(image: bytes) -> str:
    return f"{sha256(image).hexdigest()}.{media_type(image).removeprefix('image/')}"


# -- reading the images of rows ----------------------------------------------------------------------------------------


ASKED = {"id": "q", "question": "Area of <image 2>?", "answer": "4"}
IMAGES = [picture(n) for n in range(1, 4)]
NAMES = [sha256(image).hexdigest() for image in IMAGES]


def data_url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def card(folder: Path, **more: Any) -> Card:
    columns = {"question": "question", "answer": "answer", "id": "id", "images": ["images"]}
    source = {"kind": "file", "path": "set.jsonl"}
    value = {"name": "set", "title": "t", "source": source, "columns": columns, "prompt": "none", **more}
    return from_mapping(value, "card", folder=folder, file=folder / "card.yaml")


def parts(folder: Path, row: dict[str, Any], **more: Any) -> list[str]:
    """What the question of a row sends: texts, and the numbers of images."""
    (folder / "set.jsonl").write_text(json.dumps(ASKED | row))
    (question,) = questions.build(card(folder, **more)).questions
    return [part if isinstance(part, str) else f"#{NAMES.index(part.sha256)}" for part in question.messages[-1].parts]


def test_images_stand_in_place_of_their_marks_and_the_others_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "a.png").write_bytes(IMAGES[0])
    two = ["figures/a.png", data_url(IMAGES[1])]
    gap = [None, data_url(IMAGES[1], "text/html"), "", data_url(IMAGES[2])]
    assert parts(tmp_path, {"images": two}) == ["Area of ", "#1", "?", "#0"]
    assert parts(tmp_path, {"images": gap}) == ["Area of ", "#1", "?", "#2"]
    assert parts(tmp_path, {"images": two}, images="first") == ["#0", "#1", "Area of <image 2>?"]
    assert parts(tmp_path, {"images": two, "question": "<i> or <i>"}, image_mark="<i>") == ["#0", " or ", "#1"]
    both = {"question": "<image 1><image 1>", "images": two[0]}
    assert parts(tmp_path, both) == ["#0", "#0"]
    listed = {"question": "Which? <image 1>", "options": ["<image 2>", "none"], "images": two, "answer": "A"}
    choices = {"choices": {"options": "options"}, "kind": "choice"}
    assert parts(tmp_path, listed, **choices) == ["Which? ", "#0", "\n\nA) ", "#1", "\nB) none"]
    assert {shared_folder().read(name) for name in NAMES} == {*IMAGES}
    text_only = {"question": "Area?", "images": [None, ""]}
    assert parts(tmp_path, text_only) == ["Area?"]


def outside(folder: Path) -> None:
    """Links out of the folder of the data, beside an image there."""
    (folder.parent / "secret.png").write_bytes(IMAGES[0])
    (folder / "link.png").symlink_to(folder.parent / "secret.png")
    (folder / "folder").symlink_to(folder.parent)


PNG = KINDS["png"](1, 1)
HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "missing": ({"images": ["b.png"]}, "is b.png, which cannot be read: No such file"),
    "above": ({"images": ["../secret.png"]}, r"must be inside the data file's folder and must not contain `\.\.`"),
    "passwd": ({"images": ["../../etc/passwd"]}, "a path must be inside the data file's folder"),
    "absolute": ({"images": ["/etc/passwd"]}, "a path must be inside the data file's folder"),
    "link": ({"images": ["link.png"]}, "a link that points outside the data file's folder"),
    "linked folder": ({"images": ["folder/secret.png"]}, "a link that points outside the data file's folder"),
    "folder as image": ({"images": ["."]}, "which cannot be read: not a regular file"),
    "address": ({"images": ["https://a.b/c.png"]}, "but URLs are not fetched: download the image and specify its path"),
    "svg": ({"images": data_url(b"<svg onload='alert(1)'/>")}, "is not a PNG, JPEG, WebP or GIF file"),
    "too long": ({"images": data_url(PNG + bytes(MAX_IMAGE_BYTES))}, f"the limit is {MAX_IMAGE_BYTES}"),
    "too many": ({"images": ["a.png"] * 101}, "one of more than 100, the limit for a question"),
    "no base64": ({"images": "data:image/png;base64,a?b="}, "is not valid base64"),
    "object": ({"images": {"bytes": "iVBO", "path": "a"}}, "must be bytes, a data URL or a file path"),
    "checksum": ({"images": {"sha256": "../../../etc/passwd"}}, "must be bytes, a data URL or a file path"),
    "no image": ({"images": []}, "contains the marker '<image 2>' but has no image 2"),
    "gap": ({"images": [data_url(PNG), None]}, "contains the marker '<image 2>' but has no image 2"),
    "zero": ({"images": data_url(PNG), "question": "<image 0>"}, "but has no image 0"),
    "in a text": ({"question": f"![]({data_url(PNG)})?", "images": []}, "the column 'question' contains an image"),
    "another mark": (
        {"question": "<Image 1>", "images": [data_url(PNG)]},
        "contains the marker <Image 1>; write markers as",
    ),
    "other column": ({"question": "?", "images": [], "photo": data_url(PNG)}, "the column 'photo' contains an image"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_rows_are_one_sentence_with_file_and_row(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    outside(folder)
    row, words = HOSTILE[name]
    with pytest.raises(UsageError, match=rf"set\.jsonl:1.*{words}"):
        parts(folder, row)


def test_completions_and_files_of_others_refuse_images(tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_text(json.dumps(ASKED | {"images": [None, data_url(PNG)]}))
    with pytest.raises(UsageError, match="only a user message can contain"):
        questions.build(card(tmp_path), templated=False)
    with pytest.raises(UsageError, match="card: `columns` has no `question`"):
        card(tmp_path, columns={"answer": "answer"})


@pytest.mark.parametrize("rows", [1, 20])
def test_a_parquet_file_gives_its_images_in_columns_and_in_lists(tmp_path: Path, rows: int) -> None:
    struct = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    cells = [{"bytes": image, "path": "../../etc/passwd"} for image in IMAGES]
    columns = {
        "question": pa.array(["<image 3>, <image 1>?"] * rows),
        "answer": pa.array([str(n) for n in range(rows)]),
        "image_1": pa.array([cells[0]] * rows, struct),
        "image_2": pa.array([None] * rows, struct),
        "image_3": pa.array([cells[2]] * rows, struct),
    }
    pa.parquet.write_table(pa.table(columns), tmp_path / "set.parquet")
    asked = questions.build(from_file(str(tmp_path / "set.parquet")), prompt="none").questions
    assert len(asked) == rows
    for question in asked:
        assert [image.sha256 for image in question.images] == [NAMES[2], NAMES[0]]
    bad = pa.table({"question": ["?"], "answer": ["1"], "images": pa.array([[{"bytes": b"<svg/>"}]], pa.list_(struct))})
    pa.parquet.write_table(bad, tmp_path / "bad.parquet")
    with pytest.raises(UsageError, match=r"row 1 of .*bad\.parquet: the image in the column 'images' is not a PNG"):
        questions.build(from_file(str(tmp_path / "bad.parquet")))


def test_an_unchanged_parquet_file_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, unpacked = tmp_path / "set.parquet", mock.Mock(wraps=columnar._unpacked)
    monkeypatch.setattr(columnar, "_unpacked", unpacked)

    def asked(image: bytes) -> int:
        """Ask for the image, which the file holds; how often the file has been unpacked."""
        (question,) = questions.build(from_file(str(file)), prompt="none").questions
        assert [shared_folder().read(part.sha256) for part in question.images] == [image]
        return unpacked.call_count

    def write(image: bytes) -> None:
        table = pa.table({"question": ["?"], "answer": ["1"], "image": [{"bytes": image, "path": ""}]})
        pa.parquet.write_table(table, file, compression="none")

    write(IMAGES[0])
    assert [asked(IMAGES[0]) for _ in range(3)] == [1, 1, 1]
    before, other = file.stat(), KINDS["jpeg"](640, 1)[:4] + IMAGES[0][4:]
    file.write_bytes(file.read_bytes().replace(IMAGES[0], other))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [asked(other), asked(other)] == [2, 2]
    (shared_folder().path / sha256(other).hexdigest()).write_bytes(b"")
    assert [asked(other), asked(other)] == [3, 3]


def test_the_header_states_kind_and_size_however_large_and_cut(tmp_path: Path) -> None:
    sizes = [(1, 1), (640, 480), (16383, 3)]
    for kind, make in KINDS.items():
        for size in sizes:
            assert (media_type(make(*size)), pixels(make(*size))) == (f"image/{kind}", size)
        whole = make(640, 480)
        for end in range(len(whole)):
            assert pixels(whole[:end]) in (None, (640, 480))
    assert pixels(KINDS["png"](100_000, 100_000)) == (100_000, 100_000)
    assert {pixels(LOSSLESS), pixels(EXTENDED)} == {(640, 480)}
    for other in (b"", b"BM", b"<svg/>", b"RIFF\0\0\0\0WAVE", b"\xff\xd8"):
        with pytest.raises(ValueError, match="is not a PNG"):
            media_type(other)


def test_an_image_that_was_changed_or_lost_is_never_read(tmp_path: Path) -> None:
    folder = shared_folder()
    name = folder.add(IMAGES[0])
    (folder.path / name).write_bytes(IMAGES[1])
    with pytest.raises(StoreError, match=f"the image .*{name} was changed; delete it"):
        folder.url(name)
    (folder.path / name).unlink()
    with pytest.raises(StoreError, match="is missing"):
        folder.url(name)
    assert placed("<image 1>", [name], "<image {n}>", first=False)[0].end == len("<image 1>")


TIFF = {"<": b"II*\0\x08\0\0\0\x01\0", ">": b"MM\0*\0\0\0\x08\0\x01"}
PNG_BITS = KINDS["png"](9, 9) + b"\x08\x02\0\0\0CRC "
GIF_FRAME = b"!\xf9\x04\0\1\0\0\0,"
NO_SIZE = "state no size that can be read"
UNUSUAL = {
    **{
        f"exif {order} {turn}": (
            b"\xff\xd8\xff\xe1\0\x22Exif\0\0" + TIFF[order] + struct.pack(order + "HHIHHI", 0x112, 3, 1, turn, 0, 0),
            [NO_SIZE] + ["are rotated by their Exif data"] * (turn > 1),
        )
        for order, turn in product("<>", (1, 6))
    },
    "jpeg": (KINDS["jpeg"](9, 9) + b"\x03", []),
    "cmyk": (KINDS["jpeg"](9, 9) + b"\x04", ["have CMYK colors"]),
    "png": (PNG_BITS, []),
    "16 bits": (PNG_BITS.replace(b"\x08\x02", b"\x10\x02"), ["have 16 bits per channel"]),
    "moving png": (PNG_BITS + b"\0\0\0\x08acTL" + bytes(12) + b"IDAT", ["are animated"]),
    "data like its mark": (PNG_BITS + b"\0\0\0\x08IDATacTL", []),
    "gif": (KINDS["gif"](9, 9) + GIF_FRAME, []),
    "moving gif": (KINDS["gif"](9, 9) + GIF_FRAME * 2, ["are animated"]),
    "moving webp": (EXTENDED[:20] + b"\x02" + EXTENDED[21:], ["are animated"]),
    "large": (KINDS["png"](20_000, 20_000), ["state more than 50 million pixels"]),
}
"""Name → the first bytes of an image, and what is unusual about it."""


@pytest.mark.parametrize("name", UNUSUAL)
def test_what_servers_may_treat_differently_is_read_from_the_header(name: str) -> None:
    data, marks = UNUSUAL[name]
    assert unusual_traits(data) == marks
    for end in range(len(data)):
        assert set(unusual_traits(data[:end])) <= {*marks, NO_SIZE}


def test_a_run_warns_once_of_each_kind_of_unusual_image(data: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in data.read_text().splitlines()]
    for row, name in zip(rows, ("large", "moving gif", "large"), strict=False):
        (tmp_path / row["images"][2]).write_bytes(UNUSUAL[name][0])
    with FakeServer(serving("so 4", "m")) as server:
        words = ["--data", str(data), "--model", "m", "--base-url", server.base_url, "--out", "run"]
        dry = command(tmp_path, "run", *words, "--dry-run")
    said = " ".join((dry.out + dry.err).split())
    assert said.count("state more than 50 million pixels") == said.count("are animated") == 1
    assert "such as in question q1, are animated" in said
    n = sum(len(row["images"]) for row in rows)
    assert re.search(rf"images {n} images in {len(rows)} questions, [\d,]+ bytes in \d+ files; the first: \w+", said)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=9), max_size=4))
def test_a_list_that_python_wrote_is_read_as_its_texts(texts: list[str]) -> None:
    assert text_list(repr(texts)) == texts
    for other in (repr(texts)[:-1], f"{texts!r}+[]", f"[{texts!r}]", "['a' 'b']", "[a]", "['a'.upper()]"):
        with pytest.raises(ValueError, match="is not a list of strings"):
            text_list(other)
