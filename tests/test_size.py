"""Each file of the project is counted in `.ci/size.toml`, whose caps `make check` holds."""

from __future__ import annotations

from tools import size


def test_each_file_is_counted_under_one_cap() -> None:
    rows = size.counted()
    capped = {name for name, _, cap in rows if cap is not None}
    assert capped == {"product", "tests", "bench, tools", "words of docs", "commands", "options of run"}
    rooms = {name.strip(): count for name, count, cap in rows if cap is None}
    assert {"harness", "harness/grading", "server_launchers/engines", "tests", "tests/pins", "bench"} < rooms.keys()
    assert sum(rooms.values()) == sum(count for name, count, _ in rows if name in {"product", "tests", "bench, tools"})


def test_docstrings_comments_and_blank_lines_are_no_code() -> None:
    assert size.code_lines('"""Doc."""\n\n# Remark.\nX = """a\n\n# b"""\n"""What X is."""\n') == 3
    assert size.code_lines('def f() -> int:\n    """One."""\n    return 1  # why\n') == 2
