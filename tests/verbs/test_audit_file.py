"""The table of samples to judge: written for a spreadsheet, and read back only if nothing but verdicts changed.

For: harness.verbs.audit_file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.records import Key
from harness.presets.grading import GradingOptions
from harness.runs import RunFolder, overrides
from harness.scoring.pipeline import score_run
from tests.system.command import harness
from tests.verbs.judged_runs import write_run

ROWS = {
    "001": ("1/2", [r"So it is" + "\n\n" + r"\boxed{0.50 or so}", "=HYPERLINK(1)\x07 \\boxed{很大，约莫半个}"]),
    "q2": ("37000升", [r"-1 \boxed{37000升水吧}", "long " * 8_000 + r"\boxed{大概 37 个立方吧}"]),
}
Table = list[dict[str, str]]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = write_run(tmp_path / "run", ROWS)
    score_run(folder, GradingOptions(workers=1))
    written = harness(tmp_path, "audit", "run", "--undecided", "--out", "todo.csv")
    assert "4 samples to judge: todo.csv" in written.out, written.err
    return folder


def table(path: Path) -> Table:
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def save(path: Path, rows: Table, *, delimiter: str = ",", encoding: str = "utf-8-sig") -> None:
    """Write the table as a spreadsheet does."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, rows[0], delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes(text.getvalue().encode(encoding))


def stored(folder: RunFolder) -> dict[Key, str | None]:
    return {one.key: one.verdict for one in overrides.read(folder.benchmark("prose"))}


def test_no_cell_is_a_formula_a_number_or_a_date_for_a_spreadsheet(tmp_path: Path, run: RunFolder) -> None:
    assert (tmp_path / "todo.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    rows = table(tmp_path / "todo.csv")
    assert [row["verdict"] for row in rows] == [""] * 4
    texts = [row[name] for row in rows for name in ("question", "references", "answer", "text", "question_id")]
    assert all(text.startswith("'") for text in texts if text)
    assert rows[0]["references"] == "'1/2"
    assert "\\x07" in rows[1]["text"]
    assert max(map(len, texts)) < 32_767, "Excel cuts a longer cell"
    assert not any("rule" in name for name in rows[0])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030"])
@pytest.mark.parametrize(
    ("delimiter", "words"),
    [(",", ("correct", "Wrong ", "undecided", "")), (";", ("对", " 错误", "undecided", ""))],
)
def test_it_is_read_however_the_spreadsheet_saved_it(
    tmp_path: Path, run: RunFolder, delimiter: str, words: tuple[str, ...], encoding: str
) -> None:
    rows = table(tmp_path / "todo.csv")
    for row, verdict in zip(rows, words, strict=True):
        row["verdict"] = verdict
    rows.reverse()
    rows[0] |= {"question": "2-Jan", "text": "10?? ", "question_id": rows[0]["question_id"].removeprefix("'")}
    save(tmp_path / "back.csv", [{**row, "my notes": "…"} for row in rows], delimiter=delimiter, encoding=encoding)
    read = harness(tmp_path, "audit", "run", "--verdicts", "back.csv")
    assert "3 of 4 undecided samples are judged by hand" in read.out, read.err
    assert stored(run) == {Key("001", 0): "correct", Key("001", 1): "wrong", Key("q2", 0): "undecided"}


def in_column(name: str, cell: str) -> Callable[[Table], Table]:
    """A change of one cell of the second row; the verdicts are filled in."""
    return lambda rows: [{**row, "verdict": "wrong"} | ({name: cell} if n == 1 else {}) for n, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (in_column("checksum", "x1"), "was given on another reply, or on another answer from it, than the one in run"),
        (in_column("checksum", ""), "was given on another reply"),
        (in_column("question_id", "1"), "has no graded sample 1 of question 1;"),
        (in_column("sample_index", "0"), "was given on another reply"),
        (in_column("sample_index", "1.0"), "the column `sample_index` holds 1.0"),
        (in_column("undecided", "nein"), "the column `undecided` holds nein; expected yes, or an empty cell"),
        (
            in_column("verdict", "rihgt"),
            "holds rihgt; expected correct (对), wrong (错) or undecided, or an empty cell",
        ),
        (lambda rows: rows, "holds no verdict: fill in `verdict` in its lines, as correct, wrong or undecided"),
        (
            lambda rows: [{name: row[name] for name in row if name != "checksum"} for row in rows],
            "lacks the column `checksum`; expected those that `harness audit` wrote: verdict, benchmark, ",
        ),
    ],
)
def test_a_table_that_changed_beside_the_verdicts_is_refused_whole(
    tmp_path: Path, run: RunFolder, change: Callable[[Table], Table], sentence: str
) -> None:
    save(tmp_path / "back.csv", change(table(tmp_path / "todo.csv")))
    refused = harness(tmp_path, "audit", "run", "--verdicts", "back.csv")
    assert refused.code == 2
    assert sentence in refused.err
    assert stored(run) == {}


def test_what_is_no_table_is_refused(tmp_path: Path, run: RunFolder) -> None:
    (tmp_path / "odd.csv").write_bytes(b"verdict,\xff\xff\n")
    assert "odd.csv is neither UTF-8 nor GB 18030" in harness(tmp_path, "audit", "run", "--verdicts", "odd.csv").err
    for option in "--out", "--verdicts":
        assert "save the sheet as CSV in UTF-8" in harness(tmp_path, "audit", "run", option, "todo.xlsx").err
    (tmp_path / "lines.csv").write_text('{"verdict": "wrong"}\n')
    assert "rename it to end in .jsonl" in harness(tmp_path, "audit", "run", "--verdicts", "lines.csv").err


def test_a_table_with_verdicts_is_not_written_over(tmp_path: Path, run: RunFolder) -> None:
    again = ("audit", "run", "--undecided", "--out", "todo.csv")
    assert harness(tmp_path, *again).code == 0, "nothing is lost yet"
    save(tmp_path / "todo.csv", in_column("verdict", "")(table(tmp_path / "todo.csv")), delimiter=";")
    refused = harness(tmp_path, *again)
    assert "todo.csv exists and holds verdicts or other text, which would be lost" in refused.err


def test_an_id_that_a_cell_would_lose_is_refused_before_anybody_judges(tmp_path: Path) -> None:
    score_run(write_run(tmp_path / "run", {"a\x07": ROWS["q2"]}), GradingOptions(workers=1))
    refused = harness(tmp_path, "audit", "run", "--undecided", "--out", "todo.csv")
    assert "holds characters that a table loses: name a file that ends in .jsonl" in refused.err
    assert harness(tmp_path, "audit", "run", "--undecided", "--out", "todo.jsonl").code == 0
