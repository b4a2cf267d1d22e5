"""LiveCodeBench's packed tests are read, and no other pickle is."""

from __future__ import annotations

import base64
import pickle  # noqa: TID251 - to make what must be refused
import zlib

import pytest

from reasoning_programs.rows import pickled_text, unpacked_text

TEXTS = ["", "[]", "ä ﷽ 😀" * 50, "x" * 70_000, "\ud800"]


class Calls:
    def __reduce__(self) -> tuple[object, ...]:
        return (print, ("executed",))


@pytest.mark.parametrize("protocol", range(1, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("text", TEXTS)
def test_a_pickled_text_is_read(text: str, protocol: int) -> None:
    data = pickle.dumps(text, protocol)
    assert pickled_text(data) == text
    assert unpacked_text(base64.b64encode(zlib.compress(data)).decode()) == text


@pytest.mark.parametrize("value", [1, b"x", ["x"], ("x", "y"), None, {"a": "b"}, Calls(), pickle.PickleBuffer])
def test_any_other_pickle_is_refused(value: object, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="contains more than text"):
        pickled_text(pickle.dumps(value))
    assert capsys.readouterr().out == ""


def test_what_is_cut_off_or_goes_on_is_refused() -> None:
    data = pickle.dumps("text" * 100)
    for part, message in [(data[:size], "is a pickle that") for size in range(len(data))] + [
        (data + b".", "more than")
    ]:
        with pytest.raises(ValueError, match=message):
            pickled_text(part)
    cut = base64.b64encode(zlib.compress(data)[:-4]).decode()
    for text, message in ((cut, "is truncated"), ("not base64!", "neither JSON nor a base64")):
        with pytest.raises(ValueError, match=message):
            unpacked_text(text)
