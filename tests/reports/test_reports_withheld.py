"""A card that asks to keep its questions out of what is published is obeyed, in every format and every plot."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.benchmarks import catalogue
from harness.cli.report import command
from harness.reports.report import Report, report
from harness.runs.layout import RunFolder
from tests.reports.run_folders import write_run

pytestmark = pytest.mark.slow


def secret_run(path: Path, benchmark: str, settings: dict[str, object] | None = None) -> RunFolder:
    """A run whose questions hold one mark and whose answers hold another; ids and levels hold none."""

    def spoil(text: str) -> str:
        if text.startswith("Find"):
            return f"SECRET-QUESTION {text}"
        return text if text.startswith(("q0", "http", "overloaded")) else f"SECRET-ANSWER {text}"

    return write_run(path, benchmarks=[(benchmark, 12, 4)], spoil=spoil, settings=settings)


def everything(of_runs: Report) -> str:
    texts = [of_runs.html(), of_runs.markdown(), of_runs.latex(), of_runs.csv()]
    return "\n".join(texts + [plot.csv() + plot.summary + str(plot.specification()) for plot in of_runs.plots()])


@pytest.mark.parametrize(("benchmark", "settings"), [("gpqa_diamond", {}), ("own-set", {"publish_questions": False})])
def test_no_question_and_no_answer_of_a_withheld_set_is_in_any_format(
    tmp_path: Path, benchmark: str, settings: dict[str, object]
) -> None:
    folders = [secret_run(tmp_path / name, benchmark, settings) for name in ("a", "b")]
    of_runs = report(folders)
    assert "SECRET-QUESTION" not in everything(of_runs)
    rows = of_runs.html().split("<summary>Questions", 1)[1].split("</details>", 1)[0]
    assert "SECRET-ANSWER" not in rows
    assert "holds no question, no answer and no sample of it" in of_runs.html()


def test_other_sets_and_those_who_know_see_them(tmp_path: Path) -> None:
    assert "SECRET-QUESTION" in report([secret_run(tmp_path / "a", "own-set")]).html()
    withheld = secret_run(tmp_path / "b", "gpqa_diamond")
    shown = report([withheld], show_withheld=True).html()
    assert "SECRET-QUESTION" in shown
    assert "holds no question" not in shown


def test_the_command_withholds_unless_told(tmp_path: Path) -> None:
    folder = secret_run(tmp_path / "run", "gpqa_diamond")
    assert CliRunner().invoke(command, [str(folder.path)]).exit_code == 0
    assert "SECRET-QUESTION" not in (folder.path / "report.html").read_text("utf-8")
    assert CliRunner().invoke(command, [str(folder.path), "--i-know"]).exit_code == 0
    assert "SECRET-QUESTION" in (folder.path / "report.html").read_text("utf-8")


def test_the_command_writes_every_plot_in_every_format(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    done = CliRunner().invoke(command, [str(folder.path), "--plots", str(tmp_path / "plots")])
    assert done.exit_code == 0
    assert {file.suffix for file in (tmp_path / "plots").iterdir()} == {".svg", ".png", ".csv"}
    assert f"plots: {len(list((tmp_path / 'plots').glob('*.csv')))} in " in done.output


def test_the_shipped_cards_that_ask_for_it_say_so() -> None:
    asking = {card.name for card in catalogue.cards() if not card.publish_questions}
    assert asking == {"gpqa_diamond", "gpqa_main", "hle_text"}
    assert not catalogue.may_publish("gpqa_diamond", {})
    assert not catalogue.may_publish("anything", {"publish_questions": False})
    assert catalogue.may_publish("aime24", {})
    assert catalogue.may_publish("../../etc/passwd.yaml", {})
