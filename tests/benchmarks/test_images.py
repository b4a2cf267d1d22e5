"""Images of rows: which cells are read, where they are placed, and what is refused in a sentence.

For: harness.benchmarks.sources.images, harness.core.images, harness.benchmarks.sources.columnar.
"""

from __future__ import annotations

import base64
import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks import questions
from harness.benchmarks.card import Card, from_file, from_mapping
from harness.benchmarks.row_forms import text_list
from harness.benchmarks.sources import columnar
from harness.benchmarks.sources.images import placed, shared_folder
from harness.core.errors import StoreError, UsageError
from harness.core.images import MAX_IMAGE_BYTES, media_type, pixels
from tests.pictures import EXTENDED, KINDS, LOSSLESS, picture

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
    assert parts(tmp_path, {"images": two, "question": "<i> or <i>"}, image_mark="<i>") == [
        "#0",
        " or ",
        "#1",
    ]
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


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=9), max_size=4))
def test_a_list_that_python_wrote_is_read_as_its_texts(texts: list[str]) -> None:
    assert text_list(repr(texts)) == texts
    for other in (repr(texts)[:-1], f"{texts!r}+[]", f"[{texts!r}]", "['a' 'b']", "[a]", "['a'.upper()]"):
        with pytest.raises(ValueError, match="is not a list of strings"):
            text_list(other)
