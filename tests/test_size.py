"""`tools.size` counts each Python file of the project once."""

from __future__ import annotations

from tools import size


def test_each_file_is_counted_in_one_sum() -> None:
    rows = dict(size.counted())
    assert {"words of docs", "commands", "options of run"} < rows.keys()
    rooms = {name.strip(): count for name, count in rows.items() if name.startswith("  ")}
    assert {"harness", "harness/grading", "server_launchers/engines", "tests", "tests/pins", "bench"} < rooms.keys()
    assert sum(rooms.values()) == sum(rows[name] for name in size.CODE)


def test_docstrings_comments_and_blank_lines_are_no_code() -> None:
    assert size.code_lines('"""Doc."""\n\n# Remark.\nX = """a\n\n# b"""\n"""What X is."""\n') == 3
    assert size.code_lines('def f() -> int:\n    """One."""\n    return 1  # why\n') == 2
