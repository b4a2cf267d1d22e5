"""The model's own files as a run records them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.preparing import own_servers
from harness.preparing.own_servers import content, fingerprints


def folder(place: Path, **files: str) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    for name, text in {"config.json": "{}", "a.safetensors": "weights", **files}.items():
        (place / name.replace("__", ".")).write_text(text)
    return place


def test_a_changed_file_changes_its_own_checksum_and_no_other(tmp_path: Path) -> None:
    one = fingerprints(str(folder(tmp_path / "a", generation_config__json="{}")))
    of_second = fingerprints(str(folder(tmp_path / "b", generation_config__json='{"top_k": 20}')))
    assert one.keys() == of_second.keys() == {"config.json", "generation_config.json", "weights", "weights_sample"}
    assert {name for name in one if one[name] != of_second[name]} == {"generation_config.json"}


def test_weights_of_one_size_are_told_apart_by_their_contents_only(tmp_path: Path) -> None:
    one, second = str(folder(tmp_path / "a")), str(folder(tmp_path / "b", a__safetensors="WEIGHTS"))
    checksums = [fingerprints(place) for place in (one, second)]
    assert checksums[0]["weights"] == checksums[1]["weights"]
    assert checksums[0]["weights_sample"] != checksums[1]["weights_sample"]


def test_a_sample_of_the_weights_is_the_same_wherever_they_lie_and_sees_a_change_anywhere(tmp_path: Path) -> None:
    content_bytes = bytes(range(256)) * 4096
    places = [folder(tmp_path / name) / "a.safetensors" for name in ("a", "moved", "trained", "longer")]
    trained = bytes(b ^ 1 for b in content_bytes)
    for place, made in zip(places, (content_bytes, content_bytes, trained, content_bytes + b"x"), strict=True):
        place.write_bytes(made)
    places[1] = places[1].rename(places[1].with_name("renamed.safetensors"))
    checksums = [fingerprints(str(place.parent))["weights_sample"] for place in places]
    assert checksums[0] == checksums[1]
    assert len(set(checksums)) == 3


def test_a_name_of_the_hub_is_its_snapshot_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert fingerprints("org/model") == {}
    cached = tmp_path / "models--org--model"
    folder(cached / "snapshots/abc")
    (cached / "refs").mkdir()
    (cached / "refs/main").write_text("abc")
    assert fingerprints("org/model") == fingerprints(str(cached / "snapshots/abc")) != {}


def test_options_that_change_the_distribution_are_read_off_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text("{{ a }}")
    argv = ["vllm", "serve", "m", "--quantization", "fp8", "--kv_cache_dtype=fp8", "--chat-template"]
    argv += [str(tmp_path / "t.jinja"), "--port", "8000"]
    given = {name: own_servers.flag_value(argv, name) for name in own_servers.model_flags()}
    assert {name: value for name, value in given.items() if value is not None} == {
        "quantization": "fp8",
        "kv-cache-dtype": "fp8",
        "chat-template": content(str(tmp_path / "t.jinja")),
    }
