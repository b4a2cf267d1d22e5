"""YAML that people write carries data only, within bounds; every refusal is one sentence with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core import yaml_file
from harness.core.errors import UsageError


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
