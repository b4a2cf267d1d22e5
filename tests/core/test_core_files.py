"""Whole files are replaced atomically; YAML files contain data only.

For: harness.core.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from harness.core import yaml_file
from harness.core.errors import StoreError, UsageError
from harness.core.files import disk_error, replacing, write_atomically


def test_a_file_is_made_with_its_folders_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["file"]
    (tmp_path / "plain").touch()  # by the umask of whoever runs the test
    assert path.stat().st_mode & 0o777 == 0o644 & (tmp_path / "plain").stat().st_mode


class Death(BaseException):
    pass


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), Death()])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_and_a_crash_a_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException
) -> None:
    path, died = tmp_path / "file", isinstance(error, Death)
    write_atomically(path, b"old")

    def fail(*arguments: object, **named: object) -> None:
        raise error

    monkeypatch.setattr(os, call, fail)
    words = None if died else r"cannot write .*file: No space left on device \(\d+ MB free at /"
    with pytest.raises(Death if died else StoreError, match=words):
        write_atomically(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert died or [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_what_may_not_be_written_is_refused_with_the_folder_and_a_way_on(tmp_path: Path, number: int) -> None:
    (tmp_path / "file").write_text("x")
    way_on = f"{os.strerror(number)}. Make {tmp_path} writable, or work on a copy of it"
    for name in ("file", "new"):
        error = disk_error(tmp_path / name, OSError(number, os.strerror(number)))
        assert (str(error), error.exit_code) == (f"cannot write {tmp_path}/{name}: {way_on}", 3)


def test_the_next_write_removes_what_a_killed_writer_left(tmp_path: Path) -> None:
    left = tmp_path / f".another.{'0' * 16}.tmp"
    left.write_bytes(b"half")
    not_ours = [tmp_path / name for name in (".another.0.tmp", f"another.{'0' * 16}.tmp", f".another.{'0' * 16}.tmp2")]
    for path in not_ours:
        path.write_bytes(b"x")
    with replacing(tmp_path / "file") as file:
        file.write(b"slow")
        write_atomically(tmp_path / "file", b"quick")
    assert (tmp_path / "file").read_bytes() == b"slow", "one that is being written is no leftover"
    assert not left.exists()
    assert all(path.exists() for path in not_ours)


def test_a_leftover_that_is_no_file_is_left_alone_and_stops_nothing(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"precious")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / f".a.{'0' * 16}.tmp").symlink_to(elsewhere)
    (folder / f".b.{'0' * 16}.tmp").mkdir()
    os.mkfifo(folder / f".c.{'0' * 16}.tmp")
    write_atomically(folder / "file", b"x")
    assert elsewhere.read_bytes() == b"precious"
    assert len(list(folder.iterdir())) == 4


def test_a_place_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match=r"cannot write .*below: .*/file is not a folder; choose another path$"):
        write_atomically(tmp_path / "file" / "below", b"")


# -- YAML files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        # Seven levels of nine aliases would unfold to ten million values.
        (
            b"a: &a [x, x]\n"
            + b"".join(b"%c: &%c [%b]\n" % (c, c, b", ".join([b"*%c" % (c - 1)] * 9)) for c in b"bcdefgh"),
            r"x\.yaml:2 is not plain YAML: YAML aliases are not allowed",
        ),
        (b"base: &b {k: 1}\nrow:\n  <<: *b\n", r"x\.yaml:3 is not plain YAML: YAML aliases"),
        (b"a: 1\na: 2\n", r"x\.yaml:2 is not plain YAML: duplicate key 'a'"),
        (b"a: !!python/object/apply:os.getcwd []\n", r"x\.yaml:1 is not plain YAML"),
        (b"a: \xff\n", r"x\.yaml is not UTF-8 \(byte 3\)"),
        (b"- a\n", "must contain `key: value` lines for prices, found a list"),
        (b"1: a\n", "found a non-string key"),
        (b"[" * 300, "x.yaml is nested too deeply for prices"),
        (b"[" * 5000, "x.yaml.* (nested too deeply|nesting depth)"),  # newer versions of libyaml refuse it first
        (b"a: " + b"x" * 2000, r"x\.yaml is too large for prices; the limit is 1000 bytes"),
    ],
    ids=["bomb", "merge", "twice", "object", "latin", "list", "number", "deep", "deeper", "long"],
)
def test_what_is_no_plain_mapping_is_one_sentence(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=message) as caught:
        yaml_file.read_mapping(path, "prices", max_bytes=10_000 if b"[[" in data else 1000)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_an_endless_one_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read prices from .*absent\.yaml: No such file"):
        yaml_file.read_mapping(tmp_path / "absent.yaml", "prices")
    with pytest.raises(UsageError, match="cannot read prices from /dev/zero: not a regular file but a device"):
        yaml_file.read_mapping(Path("/dev/zero"), "prices")
    long = tmp_path / "long.yaml"
    long.write_bytes(b"#" * (yaml_file.MAX_BYTES + 1))
    with pytest.raises(UsageError, match=r"long\.yaml is too large for prices"):
        yaml_file.read_mapping(long, "prices")
