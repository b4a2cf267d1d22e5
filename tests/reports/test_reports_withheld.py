"""No format and no plot of a report holds a question or an answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.benchmarks import catalogue
from harness.cli.flags import command_of
from harness.reports.report import Report, report
from harness.runs.layout import RunFolder
from tests.reports.run_folders import write_run
from tests.system.command import harness

pytestmark = pytest.mark.slow


def secret_run(path: Path, strength: float) -> RunFolder:
    """A run whose questions hold one mark and whose answers hold another; ids and levels hold none."""

    def spoil(text: str) -> str:
        if text.startswith("Find"):
            return f"SECRET-QUESTION {text}"
        return text if text.startswith(("q0", "http", "overloaded")) else f"SECRET-ANSWER {text}"

    return write_run(path, benchmarks=[("own-set", 12, 4)], spoil=spoil, strength=strength)


def everything(of_runs: Report) -> str:
    texts = [of_runs.html(), of_runs.markdown(), of_runs.latex(), of_runs.csv()]
    return "\n".join(texts + [plot.csv() + plot.summary + str(plot.specification()) for plot in of_runs.plots()])


def test_no_question_and_no_answer_of_any_set_is_in_any_format(tmp_path: Path) -> None:
    runs = [secret_run(tmp_path / name, strength) for name, strength in (("a", 0.9), ("b", 0.1))]
    of_runs = report(runs)
    # A level, by which a score is broken down, is one of 1 to 5.
    assert not re.search(r"SECRET-QUESTION|SECRET-ANSWER (0|\d\d)", everything(of_runs))


def test_the_option_of_an_export_is_answered_by_why_a_report_needs_none(tmp_path: Path) -> None:
    done = harness(tmp_path, "report", "run", "--i-know")
    assert (done.code, "nothing is withheld: leave it out" in done.err, "export" in done.err) == (2, True, False)


def test_the_command_writes_every_plot_in_every_format(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    done = CliRunner().invoke(command_of("report"), [str(folder.path), "--plots", str(tmp_path / "plots")])
    assert done.exit_code == 0
    assert {file.suffix for file in (tmp_path / "plots").iterdir()} == {".svg", ".png", ".csv"}
    assert f"plots: {len(list((tmp_path / 'plots').glob('*.csv')))} in " in done.output


def test_the_shipped_cards_that_ask_for_it_say_so() -> None:
    asking = {card.name for card in catalogue.cards() if not card.publish_questions}
    assert asking == {"gpqa_diamond", "gpqa_main", "hle_text", "hle_verified"}
    assert not catalogue.may_publish("gpqa_diamond", {})
    assert not catalogue.may_publish("anything", {"publish_questions": False})
    assert catalogue.may_publish("aime24", {})
    assert catalogue.may_publish("../../etc/passwd.yaml", {})
