"""Each file of the project is counted in `.ci/size.toml`, whose caps `make check` holds."""

from __future__ import annotations

from tools import size


def test_each_file_is_counted_and_each_place_is_there() -> None:
    caps, files = size.read_caps(), [*size.files()]
    assert [path for path in files if not size.group_of(path, caps)] == []
    places = [place for row in caps.code.values() for place in row.places]
    assert [place for place in places if not (size.CHECKOUT / place).exists()] == []
    assert len(places) == len(set(places))
    assert "tests/test_size.py" in files
    assert size.group_of("harness/grading/verdict.py", caps) != size.group_of("harness/verbs/run.py", caps)


def test_docstrings_comments_and_blank_lines_are_no_code() -> None:
    assert size.code_lines('"""Doc."""\n\n# Remark.\nX = """a\n\n# b"""\n"""What X is."""\n') == 3
    assert size.code_lines('def f() -> int:\n    """One."""\n    return 1  # why\n') == 2
