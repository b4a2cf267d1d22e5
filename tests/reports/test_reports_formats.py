"""One report of real run folders in every format; foreign text stays text in each.

For: harness.reports.
"""

from __future__ import annotations

import csv
import html
import html.parser
import io
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

import harness
from harness.benchmarks import catalog
from harness.commands.compare import compare
from harness.core.codec import digest
from harness.core.errors import StoreError
from harness.core.number_text import amount, in_points
from harness.core.records import Question
from harness.core.sanitize import visible
from harness.options.decisions import CompareOptions
from harness.reports import page as page_module
from harness.reports.console import Fitted
from harness.reports.formats import to_latex, to_markdown, to_terminal
from harness.reports.report import Report, report
from harness.reports.score_tables import score_table
from harness.reports.table import Table, p_cell
from harness.runs import RunLog
from harness.runs.layout import RunFolder
from harness.scoring.benchmark_score import score_benchmark
from harness.scoring.score import warned
from harness.scoring.stats import Interval
from harness.scoring.table_cells import accuracy_cell, percent
from tests.budget import thinned
from tests.patience import PATIENCE_SECONDS
from tests.reports.payloads import PAYLOADS
from tests.reports.run_folders import hostile_report, write_run
from tests.scoring.graded import graded
from tests.system.command import harness as command
from tests.viewer.small_run import RunQuestion, RunReply
from tests.viewer.small_run import write_run as viewed_run

pytestmark = pytest.mark.slow


def terminal(shown: object, width: int = 160) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture
def two_runs(tmp_path: Path) -> Report:
    first = write_run(tmp_path / "base", benchmarks=[("demo", 6, 4), ("other", 3, 2)], cut=0.5)
    second = write_run(tmp_path / "tuned", benchmarks=[("demo", 6, 4)], strength=0.7, seed=2)
    return report([first, second])


def test_one_difference_is_shown_as_one_number_however_it_was_computed() -> None:
    differences = [a / 80 - b / 80 for a in range(81) for b in range(81) if a - b == -3]
    assert len(set(differences)) > 1
    assert {in_points(difference) for difference in differences} == {"-3.8"}
    assert {percent(1 - difference) for difference in (0.63750000000000007, 0.6375)} == {"36.2"}


def test_numbers_of_samples_that_differ_are_shown_as_at_most_so_many() -> None:
    def shown(planned: int | None, **letters: str) -> str:
        table = score_table([("run", score_benchmark(*graded(**letters), planned))])
        return table.rows[0][table.columns.index("size")]

    assert shown(None, q1="cw", q2="cwwww") == "2 × ≤ 5"
    assert shown(None, q1="cwwww", q2="cwwww") == "2 × 5"
    assert shown(5, q1="cwwww", q2="cwwww") == "2 × 5"


def test_the_settings_that_differ_stand_in_a_report(tmp_path: Path) -> None:
    ours = write_run(tmp_path / "ours", settings={"sampling": {"max_tokens": 32768, "top_k": 7}})
    theirs = write_run(tmp_path / "theirs", settings={"sampling": {"max_tokens": 4096, "top_k": 7}})
    twin = write_run(tmp_path / "twin", settings={"sampling": {"max_tokens": 4096, "top_k": 7}})
    shown = report([ours, theirs])
    rest = shown.markdown().partition("**Settings of demo that differ**")[2]
    assert "| setting | ours | theirs |" in rest
    assert "32,768 | 4,096 |" in rest
    assert "top" not in rest
    assert "that differ" not in report([theirs, twin]).markdown()


def test_markdown_ends_with_the_commands_that_repeat_the_runs(tmp_path: Path) -> None:
    run = write_run(tmp_path / "ours")
    shown = Report(report([run]).runs, repeat=lambda _manifest, label, _scores: [f"harness run --out {label}-again"])
    assert shown.markdown().endswith("\n**Reproduce it**\n\n    harness run --out ours-again\n")
    assert "Reproduce it" not in Report(shown.runs).markdown()


def test_each_warning_of_a_score_is_a_footnote_of_its_own() -> None:
    plain = score_benchmark(*graded(q1="cw", q2="cw"), 2)
    plain = msgspec.structs.replace(plain, accuracy=msgspec.structs.replace(plain.accuracy, question=None))
    score, other = (
        msgspec.structs.replace(plain, warnings=tuple(warned("file", texts)))
        for texts in (("one thing", "another thing"), ("a third",))
    )
    table = score_table([("run", score), ("other", other)])
    assert [row[1].partition(" ")[2] for row in table.rows] == ["[1–2]", "[3]"]
    name = score.benchmark
    assert table.notes == (f"run, {name}: one thing.", f"run, {name}: another thing.", f"other, {name}: a third.")


def test_a_second_run_is_paired_with_the_first(two_runs: Report) -> None:
    paired = next(table for table in two_runs.tables if table.title.startswith("Paired differences from base"))
    assert [row[:2] for row in paired.rows] == [("tuned", "demo [1–2]"), ("base", "other [3]")]
    assert paired.notes[2:] == ("base, other: not compared because no other run has this benchmark.",)


def test_the_mean_of_several_benchmarks_has_the_numbers_of_compare(tmp_path: Path) -> None:
    both = [("demo", 30, 16), ("sums", 20, 16)]
    base = write_run(tmp_path / "base", benchmarks=both, strength=0.5)
    tuned = write_run(tmp_path / "tuned", benchmarks=both, strength=0.44, seed=2)
    part = write_run(tmp_path / "part", benchmarks=both, strength=0.44, seed=2, missing=0.5)
    (paired,) = (
        table for table in report([base, tuned]).tables if table.title.startswith("Paired differences from base")
    )
    first, second = (pair.decision for pair in compare([base, tuned], CompareOptions()))
    assert first.mean is not None
    name, difference, _, p, _, _, detectable, _ = paired.rows[-1][1:]
    assert name == "mean of 2 benchmarks"
    assert (difference, p) == (in_points(first.mean.compared.difference.value), p_cell(first.mean.p_sampling))
    assert detectable == percent(first.mean.detectable)
    assert [row[4] for row in paired.rows[:2]] == [p_cell(first.p_sampling), p_cell(second.p_sampling)]
    assert [row[7] for row in paired.rows[:2]] == [percent(first.detectable), percent(second.detectable)]
    (paired,) = (
        table for table in report([base, part]).tables if table.title.startswith("Paired differences from base")
    )
    assert paired.rows[-1][1].startswith("mean of 2 benchmarks [")
    assert paired.notes[-1] == "part, mean of 2 benchmarks: not compared because samples are missing."


def test_each_benchmark_is_paired_with_the_first_run_that_has_it(tmp_path: Path) -> None:
    held = {"a": "demo", "b": "other", "c": "demo", "d": "other", "e": "third"}
    folders = [write_run(tmp_path / run, benchmarks=[(name, 6, 4)], seed=len(run)) for run, name in held.items()]
    (paired,) = (table for table in report(folders).tables if table.title.startswith("Paired differences from"))
    assert paired.title.startswith(
        "Paired differences from the first run of each benchmark (demo: a; other: b), in points"
    )
    assert [(row[0], row[1].partition(" ")[0], row[2] == "–") for row in paired.rows] == [
        ("c", "demo", False),
        ("d", "other", False),
        ("e", "third", True),
    ]
    # Wrong twins: nothing to pair is no table, and one baseline is named as before.
    assert not [table for table in report(folders[:2]).tables if table.title.startswith("Paired")]
    (one,) = (table for table in report([folders[0], folders[2]]).tables if table.title.startswith("Paired"))
    assert one.title.startswith("Paired differences from a, in points")


def test_a_run_that_shares_no_question_with_the_first_is_named(tmp_path: Path) -> None:
    first = write_run(tmp_path / "a", benchmarks=[("demo", 6, 4)])
    other = write_run(tmp_path / "b", benchmarks=[("demo", 6, 4)], spoil=lambda text: f"other {text}")
    (paired,) = (
        table for table in report([first, other]).tables if table.title.startswith("Paired differences from a")
    )
    assert [row[2] for row in paired.rows] == ["–"]
    assert paired.notes == ("b, demo: not compared because it has no question in common with a.",)


@pytest.mark.parametrize(
    ("laid", "cell"),
    [
        ({"missing": 0.6}, r"\d+\.\d \(bounds \d+\.\d–\d+\.\d\) \[1\]"),
        ({"missing": 0.003, "benchmarks": [("demo", 20, 50)]}, r"\d+\.\d \(\d+\.\d–\d+\.\d\) \[1\]"),  # one sample
        ({"benchmarks": [("demo", 6, 1)]}, r"\d+\.\d \(at most \d+\.\d–\d+\.\d\) \[1\]"),
    ],
)
def test_a_cell_shows_bounds_an_interval_or_at_most_one(tmp_path: Path, laid: dict[str, Any], cell: str) -> None:
    shown = report([write_run(tmp_path / "run", **laid)]).tables[0]
    assert re.fullmatch(cell, shown.rows[0][2])
    assert ("missing" in shown.notes[0]) == ("missing" in laid)


def test_a_damaged_scores_file_is_refused_in_one_sentence(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    folder.benchmark("demo").scores.write_bytes(b'{"schema": 2, "accuracy": "high"}')
    with pytest.raises(StoreError, match=r"scores\.json is not a scores file .* Run `harness score` again"):
        report([folder])


def test_runs_of_one_folder_name_are_told_apart_by_their_path(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / place / "run") for place in ("a", "b")]
    assert [run.label for run in report(folders).runs] == ["a/run", "b/run"]


@pytest.mark.parametrize("payload", thinned(PAYLOADS))
def test_no_format_lets_a_foreign_text_act(tmp_path: Path, payload: str) -> None:
    hostile = payload.format(url="http://example.invalid")
    model = hostile.encode("utf-8", "replace").decode()
    folder = write_run(tmp_path / "run", model=model, benchmarks=[("demo", 3, 2)], spoil=lambda text: hostile + text)
    made = report([folder])
    shown = terminal(made.terminal())
    assert not set(map(chr, [*range(32), *range(127, 160), 0x202E, 0x2066])) & (set(shown) - {"\n"})
    for document in (made.markdown(), made.latex(), made.csv(), made.html()):
        document.encode("utf-8")
        assert "\x1b" not in document
    assert not re.search(r"(?<!\\)<|(?<!\\)!\[|(?<!\\)\]\(", made.markdown())
    rows = list(csv.reader(io.StringIO(made.csv())))
    assert not any(cell[:1] in ("=", "+", "@", "\t", "\r") for row in rows for cell in row)


SPECIAL_TO_LATEX = r"50% & \input{x} a_b^c~d#$ ± × ≤ – − → “”’ …·"


def test_a_report_is_one_table_for_a_paper(two_runs: Report) -> None:
    latex = two_runs.latex()
    assert latex.count(r"\begin{table}") == latex.count(r"\caption{") == latex.count(r"\label{") == 1
    assert latex.count("{") == latex.count("}") > 0, "notes are in a group, so that the text behind keeps its size"
    assert re.search(r"\\end\{tabular\}\n\{\\footnotesize\n(\\par \[\d\] .*\n)+\\par\}\n\\end\{table\}", latex)


def test_latex_is_set_by_tex_as_it_was_written(two_runs: Report, tmp_path: Path) -> None:
    if not shutil.which("pdflatex") or subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True).returncode:
        pytest.skip("no pdflatex with booktabs here (Debian: texlive-latex-recommended): LaTeX is not set")
    table = Table(SPECIAL_TO_LATEX, (SPECIAL_TO_LATEX,), ((SPECIAL_TO_LATEX,),), (SPECIAL_TO_LATEX,))
    lines = [r"\documentclass[a4paper]{article}\usepackage{booktabs}\begin{document}", two_runs.latex()]
    lines += [to_latex([table]), r"\makeatletter\typeout{Size behind: \f@size}\end{document}"]
    (tmp_path / "paper.tex").write_text("\n".join(lines))
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Size behind: 10" in done.stdout
    assert "Overfull" not in done.stdout, "the table is no wider than a page"


def test_csv_has_one_line_a_score_and_a_column_for_each_k(tmp_path: Path) -> None:
    two_benchmarks = report([write_run(tmp_path / "run", benchmarks=[("other", 3, 3), ("demo", 6, 4)])])
    lines = csv.DictReader(io.StringIO(two_benchmarks.csv()))
    filled = {line["benchmark"]: [k for k in ("3", "4") if line[f"pass@{k}"]] for line in lines}
    assert filled == {"other": ["3"], "demo": ["4"]}


def test_a_breakdown_stands_in_every_format_and_its_csv_has_a_line_a_value(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", benchmarks=[("demo", 10, 4)])
    shown = report([folder])
    shown.write(folder.path)
    (groups,) = (score.breakdowns["level"] for _, _, score in shown.scores)
    for name in ("report.html", "report.md"):
        assert "run, demo by level, in" in (folder.path / name).read_text("utf-8"), name
    assert "| 3 | 2 | " in shown.markdown()
    lines = list(csv.DictReader((folder.path / "report_breakdowns.csv").read_text("utf-8").splitlines()))
    assert [(line["column"], line["value"], float(line["accuracy"])) for line in lines] == [
        ("level", value, group.accuracy.value) for value, group in groups.items()
    ]
    assert {(line["run"], line["benchmark"], line["n_questions"], line["n_answered"]) for line in lines} == {
        ("run", "demo", "2", "2")
    }
    # Wrong twin: report.csv stays one line a score, and a report without a breakdown leaves no former file behind.
    assert shown.csv().count("\n") == 2
    report([write_run(tmp_path / "small", benchmarks=[("demo", 1, 4)])]).write(folder.path)
    assert not (folder.path / "report_breakdowns.csv").exists()


def test_a_group_with_unanswered_questions_says_how_many_it_covers(tmp_path: Path) -> None:
    """A file has rows of two of four questions: those of the first unit are answered, and one of the second."""
    (tmp_path / "table.csv").write_text(
        "id,question,answer,unit\n1,one?,1,sums\n2,two?,2,areas\n3,three?,3,areas\n4,four?,4,areas\n"
    )
    (tmp_path / "card.yaml").write_text(
        "title: units\nsource: {kind: file, path: table.csv}\n"
        "columns: {question: question, answer: answer, id: id, metadata: [unit]}\n"
        "kind: auto\nprompt: boxed\n"
    )
    (tmp_path / "typed.csv").write_text("question,answer,response\none?,1,1\ntwo?,2,2\n")
    harness.score(tmp_path / "typed.csv", benchmark=str(tmp_path / "card.yaml"))
    shown = harness.report(tmp_path / "typed.csv", out=tmp_path / "out")
    assert re.search(r"\| areas \| 1 of 3 \| 100\.0 \|", shown.markdown())
    assert re.search(r"\| sums \| 1 \| 100\.0 \|", shown.markdown())
    (areas, sums) = csv.DictReader((tmp_path / "out" / "report_breakdowns.csv").read_text("utf-8").splitlines())
    assert [(group["n_questions"], group["n_answered"]) for group in (areas, sums)] == [("3", "1"), ("1", "1")]


WORDS = st.text(st.sampled_from("abcé漢-_/"), min_size=1, max_size=12)
CELLS = {
    True: st.sampled_from(["0", "65,592", "57.1 (55.9–58.3)", "41.7 (at most 7.4–83.0)", "–"]),
    False: st.lists(WORDS, max_size=6).map(" ".join),
}


@given(st.data(), st.lists(st.booleans(), max_size=12), st.sampled_from([60, 80, 200]), st.booleans())
def test_narrow_tables_break_no_word(data: st.DataObject, numeric: list[bool], width: int, of_a_command: bool) -> None:
    """With names that are longer than the terminal, and with more columns than one table has room for."""
    rows = data.draw(st.lists(st.tuples(*(CELLS[each] for each in numeric)), max_size=4))
    heads = ("run", *(f"mean of column {i}" for i in range(len(numeric))))
    numbers = frozenset(number for number, each in enumerate(numeric, 1) if each)
    named = [("run-" * 40, *row) for row in rows]
    table = Table("T", heads, tuple(named), (), numbers)
    shown = terminal(Fitted(heads, named, numeric=numbers) if of_a_command else to_terminal([table]), width)
    first = 1 if of_a_command else 2  # the second of a report's columns is a name, too
    assert all(shown.count(word) for row in named for cell in row[first:] for word in cell.split())
    assert max(map(cell_len, shown.splitlines()), default=0) <= width
    cells = Counter(cell for row in rows for number, cell in enumerate(row, 1) if number in numbers)
    assert all(shown.count(cell) >= times for cell, times in cells.items())


def test_a_name_that_is_too_long_breaks_after_a_hyphen_or_underscore() -> None:
    shown = terminal(Fitted(("run", "n"), [("base-model_8b-instruct", "0.5")], numeric={1}), 22)
    assert [line.split() for line in shown.splitlines()[-3:-1]] == [["base-model_8b-", "0.5"], ["instruct"]]


def test_the_tables_of_commands_are_80_columns_wide_where_no_terminal_is(tmp_path: Path) -> None:
    names = ["a-name-that-goes-on-" * 4 + letter for letter in "ab"]
    for number, name in enumerate(names):
        write_run(tmp_path / name, model="org/" + name, benchmarks=[(f"set{i}", 3, 2) for i in range(6)], seed=number)
    for words in (["benchmarks"], ["report", *names, "--out", "report"]):
        shown, wide = (
            command(tmp_path, *words, extra={"COLUMNS": columns}).out.partition("report: ")[0].splitlines()
            for columns in ("", "300")
        )
        assert max(map(cell_len, shown)) <= 80 < max(map(cell_len, wide))


@given(st.text(max_size=40))
def test_a_markdown_cell_never_breaks_its_row(text: str) -> None:
    lines = to_markdown([Table("t", ("a", "b"), ((text, "x"),))]).splitlines()
    assert len(lines) == 5
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", lines[4])) == 3


def test_the_accuracy_cell_of_no_sample_is_a_range() -> None:
    question = Question(
        benchmark="b", question_id="q", references=("1",), kind="integer", row_digest="", prompt_digest=""
    )
    assert accuracy_cell(score_benchmark([question], [], 4)) == "– (bounds 0.0–100.0)"


def test_the_ends_of_an_interval_are_told_apart_however_near_they_are() -> None:
    assert Interval(0.5512, 0.588).in_percent == "55.1–58.8"
    assert Interval(0.99996, 1.0).in_percent == "99.996–100.000"


def test_a_report_prints_as_its_runs_by_name(tmp_path: Path) -> None:
    shown = report([write_run(tmp_path / "one"), write_run(tmp_path / "two")])
    assert repr(shown) == "<Report of one, two>"
    assert shown._repr_markdown_().startswith("no difference seen between two and one on demo: ")


def test_a_table_beyond_ascii_begins_with_a_byte_order_mark(tmp_path: Path) -> None:
    run = write_run(tmp_path / "班级", benchmarks=[("练习", 3, 2)])
    plain = write_run(tmp_path / "class", benchmarks=[("demo", 3, 2)])
    for folder in (run, plain):
        report([folder]).write(folder.path)
    assert (run.path / "report.csv").read_bytes().startswith(b"\xef\xbb\xbfrun,model,")
    assert "练习" in (run.path / "report.csv").read_text("utf-8-sig")
    assert (plain.path / "report.csv").read_bytes().startswith(b"run,model,")


def secret_run(path: Path, strength: float) -> RunFolder:
    """A run whose questions hold one mark and whose answers hold another; ids and levels hold none."""

    def spoil(text: str) -> str:
        if text.startswith("Find"):
            return f"SECRET-QUESTION {text}"
        return text if text.startswith(("q0", "http", "overloaded")) else f"SECRET-ANSWER {text}"

    return write_run(path, benchmarks=[("own-set", 12, 4)], spoil=spoil, strength=strength)


def everything(of_runs: Report) -> str:
    texts = [of_runs.html(), of_runs.markdown(), of_runs.latex(), of_runs.csv()]
    return "\n".join(texts + [plot.csv() + plot.summary + plot.svg(alone=True) for plot in of_runs.plots()])


def test_no_question_and_no_answer_of_any_set_is_in_any_format(tmp_path: Path) -> None:
    runs = [secret_run(tmp_path / name, strength) for name, strength in (("a", 0.9), ("b", 0.1))]
    of_runs = report(runs)
    # A level, by which a score is broken down, is one of 1 to 5.
    assert not re.search(r"SECRET-QUESTION|SECRET-ANSWER (0|\d\d)", everything(of_runs))


def test_the_shipped_cards_that_ask_for_it_say_so() -> None:
    asking = {card.name for card in catalog.cards() if not card.publish_questions}
    assert asking == {"gpqa_diamond", "gpqa_main", "hle_full", "hle_text", "hle_verified"}
    assert not catalog.may_publish("gpqa_diamond", {})
    assert not catalog.may_publish("anything", {"publish_questions": False})
    assert catalog.may_publish("aime24", {})
    assert catalog.may_publish("../../etc/passwd.yaml", {})


# -- the HTML page: self-contained, inert, bounded ---------------------------------------------------------------------


TAGS = set(
    re.findall(
        r"\w+",
        """
        html head meta title style body main header nav a section h1 h2 h3 h4 p div dl dt dd table thead tbody tr th td
        ol li code br span figure figcaption details summary footer svg g defs clippath rect line path text
        """,
    )
)


class Elements(html.parser.HTMLParser):
    """Every element with its attributes, and the text between."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(attrs)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_page_of_hostile_texts_has_only_our_elements_and_no_handlers(tmp_path: Path) -> None:
    found = Elements(hostile_report(tmp_path, "http://example.invalid").html())
    assert found.tags <= TAGS
    names = {name for name, _ in found.attributes}
    assert not names & {"src", "style", "action", "data", "srcset", "xlink:href"}
    assert {value for name, value in found.attributes if name == "href"} <= {
        "#benchmark-1",
        "#benchmark-2",
        "#benchmark-3",
        "#numbers",
        "#making",
    }
    assert not any(name.startswith("on") for name in names)
    assert any("<script>fetch(" in text for text in found.texts)


def test_the_policy_allows_nothing_but_the_pages_own_style(tmp_path: Path) -> None:
    page = report([write_run(tmp_path / "run")]).html()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/=]+'; base-uri 'none'; form-action 'none'",
        html.unescape(policy[1]),
    )
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_long_texts_are_clipped_and_the_page_stays_small(tmp_path: Path) -> None:
    short = report([write_run(tmp_path / "short", benchmarks=[("demo", 4, 2)])]).html()
    long = write_run(tmp_path / "long", benchmarks=[("demo", 4, 2)], spoil=lambda text: text + "x" * 1_000_000)
    assert len(report([long]).html()) < len(short) + 10_000


def test_the_headline_is_the_accuracy_with_both_intervals_by_their_names(tmp_path: Path) -> None:
    of_one_run = report([write_run(tmp_path / "run", benchmarks=[("demo", 6, 4)])])
    score = of_one_run.scores[0][2]
    assert score.accuracy is not None
    assert score.accuracy.sampling is not None
    texts = "".join(Elements(of_one_run.html()).texts)
    low, high = (f"{100 * end:.1f}" for end in score.accuracy.sampling)
    assert re.search(rf"demo\s*{100 * score.accuracy.value:.1f}%\s*same questions{low}–{high}", texts)


def test_a_question_list_shows_texts_where_ids_are_only_checksums(tmp_path: Path) -> None:
    asked = {
        digest(["What is 2 + 3?"])[:16]: RunQuestion("What is 2 + 3?", "5", [RunReply("5")]),
        "0123456789abcdef": RunQuestion("What is 1 + 1?", "2", [RunReply("2")]),
    }
    worse = {name: RunQuestion(one.text, one.reference, [RunReply("7")]) for name, one in asked.items()}
    for name, questions in (("base", asked), ("worse", worse)):
        viewed_run(tmp_path / name, {"sums": questions})
    shown = command(tmp_path, "show", "base").out
    assert f"{digest(['What is 2 + 3?'])[:16]}  What is 2 + 3?   reference 5" in shown, "its id opens it"
    assert "0123456789abcdef   reference 2" in shown
    compared = command(tmp_path, "compare", "base", "worse", "--samples").out
    assert re.findall(r"(What is 2 \+ 3\?|0123456789abcdef) +100% of 1 +0% of 1", compared)[1:], compared


def test_the_page_says_how_long_it_took_and_what_it_cost(tmp_path: Path) -> None:
    run = write_run(
        tmp_path / "run",
        settings={"prices": {"prompt": 1.0, "completion": 2.0, "cached": 0.25}},
        environment={"engine": "vllm 0.33"},
    )
    with RunLog(run) as log:
        log.write("session_ended", done=24, spent={"prompt_tokens": 1_000_000, "completion_tokens": 250_000})
        log.write("session_ended", done=24, spent={"prompt_tokens": 0, "completion_tokens": 0, "n_unstated": 1})
        log.write("session_ended", done=24, spent={"prompt_tokens": 900_000, "cached_tokens": 800_000})
    of_one_run = report([run])
    workload = of_one_run.scores[0][2].workload
    assert workload is not None
    cost = (workload.prompt_tokens + 2 * workload.completion_tokens) / 1e6
    rows = dict(re.findall(r"<tr><td>([^<]*)</td><td>([^<]*)</td></tr>", of_one_run.html()))
    assert rows["cost of the samples"] == f"{cost:.4f} USD"
    n_right = of_one_run.scores[0][2].n_correct
    assert n_right
    assert rows["cost per right answer"] == f"{amount(cost / n_right)} USD"
    assert rows["cost of all sessions"] == "at most 1.80 USD"
    written = command(tmp_path, "report", "run", "--out", "report")
    assert "all sessions of run: at most 1.80 USD" in written.out.splitlines(), written.err
    unpriced = report([write_run(tmp_path / "unpriced")]).html()
    assert "cost of" not in unpriced
    assert rows["tokens out"] == f"{workload.completion_tokens:,}"
    assert rows["engine"] == "vllm 0.33"
    assert rows["requests for them"] == str(24 + 3)


@given(st.text(max_size=60))
def test_any_text_comes_back_inert_from_content_and_attribute(text: str) -> None:
    template = page_module._environment().from_string('<p title="{{ text }}">{{ text }}</p>')
    found = Elements(template.render(text=text))
    assert "".join(found.texts) == visible(text)
    assert found.attributes == {("title", visible(text))}
    assert found.tags == {"p"}
