"""`harness score`, `grade` and `audit`, judges, and the run folders of older versions."""

from __future__ import annotations

import json
import shutil
from typing import Any

from tests.pins import reading, stored
from tests.pins.server import judging
from tests.pins.stage import Scene, Stage, write_lines
from tests.system.old_runs import FOLDERS, QUESTIONS, answer
from tests.system.old_runs import words as old_words

PROSE = "the process by which green plants turn light into sugar"
"""A reference that no rule can compare with anything but itself."""


def both_doors(stage: Stage, source: str, **keywords: Any) -> None:
    """The same scoring by the command and by Python, which takes the grades that are there."""

    def kept(out: str) -> None:
        if (run := stage.folder / source).is_dir():
            stage.keep(**reading.graded(run))
        elif out:
            lines = map(json.loads, (stage.folder / out).read_text("utf-8").splitlines())
            stage.keep(**reading.verdicts((f"{row['question_id']}:{row['sample_index']}", row) for row in lines))

    stage.both("score", source, workers=1, **keywords, read=reading.scores, then=kept)


def a_run_folder(stage: Stage) -> None:
    """Grades and scores of a stored run."""
    both_doors(stage, stored.copy("first", stage.folder), fresh=True)


def other_ks(stage: Stage) -> None:
    """Options that change what is counted."""
    run = stored.copy("first", stage.folder)
    both_doors(stage, run, k=3, answer_from_reasoning=True)


def a_file_of_outputs(stage: Stage) -> None:
    """A file with columns of its own, and the grades written beside."""
    rows = [
        {"question": "why?", "answer": PROSE, "gen": [rf"\boxed{{\text{{{PROSE}}}}}", r"\boxed{\text{they burn it}}"]},
        {"question": "2+2", "answer": "4", "gen": [r"\boxed{4}", r"\boxed{5}"]},
        {"question": "3/2", "answer": "1.5", "gen": [r"\boxed{\frac{3}{2}}", "I do not know"]},
    ]
    write_lines(stage.folder / "theirs.jsonl", rows)
    columns = {"response_key": "gen", "answer_key": "answer", "question_key": "question"}
    both_doors(stage, "theirs.jsonl", **columns, written_by="org/theirs")


def llmeval_rows(stage: Stage) -> None:
    """Rows that another tool wrote, a line a sample, known by their shape."""
    rows = [
        {"prompt": f"{n}+{n}", "answer": str(2 * n), "gen": rf"\boxed{{{2 * n + (i == n)}}}"}
        for n in range(3)
        for i in range(2)
    ]
    write_lines(stage.folder / "rows.jsonl", rows)
    both_doors(stage, "rows.jsonl", tool="llmeval")


def a_card_by_its_questions(stage: Stage) -> None:
    """A file that answers a card's questions is graded by the card's references."""
    rows = [{"question": "What is 15 - 6?", "answer": "9", "response": rf"\boxed{{{n}}}"} for n in (9, 8)]
    write_lines(stage.folder / "mine.jsonl", rows)
    both_doors(stage, "mine.jsonl", benchmark="demo", response_key="response", question_key="question")


def shards(stage: Stage) -> None:
    """Shards are joined and scored as one run."""
    for name in ("shard-1", "shard-2"):
        stored.copy(name, stage.folder)
    stage.command("merge", "shard-1", "shard-2", "--out", "joined")
    stage.command("score", "joined", "--workers", "1", "--json", read=reading.scores)
    stage.keep(**reading.graded(stage.folder / "joined"))


def refusals(stage: Stage) -> None:
    """Wrong options, by both doors."""
    stored.copy("first", stage.folder)
    (stage.folder / "theirs.jsonl").write_text('{"gen": "1", "answer": "1"}\n', "utf-8")
    wrong: tuple[tuple[str, dict[str, Any]], ...] = (
        ("nowhere", {}),
        ("first", {"workers": 0}),
        ("first", {"deadline": 0.0}),
        ("first", {"k": 0}),
        ("first", {"k": 9}),
        ("first", {"response_key": "gen"}),
        ("theirs.jsonl", {"response_key": "none"}),
        ("theirs.jsonl", {"tool": "nobody"}),
        ("first", {"track": "nobody"}),
        ("first", {"also_python": "python"}),
    )
    for source, keywords in wrong:
        stage.both("score", source, **keywords)


def judged(stage: Stage, source: str, **options: Any) -> None:
    """A judge is asked by the command, and for a copy of the run by Python; a second time it is asked nothing."""
    import harness

    judge = stage.server("judge", judging())
    copy = stage.folder / "by-python"
    copy.mkdir()
    for folder in (stage.folder, copy):
        stored.copy(source, folder, scored=True)
    keys = "".join(f",{name}={str(one).lower()}" for name, one in options.items())
    words = ["score", source, "--judge", f"pinned@{judge.base_url}{keys}", "--workers", "1", "--json"]
    model = harness.Judge(model="pinned", base_url=[judge.base_url], **options)
    for run in (source, source, f"by-python/{source}"):
        if run == source:
            stage.command(*words, read=reading.scores)
        else:
            stage.python("score", run, judge=model, workers=1, read=reading.scores)
        stage.keep(**reading.graded(stage.folder / run))
        stage.requests(judge)


def judge_of_the_undecided(stage: Stage) -> None:
    """The default: only what the rules left undecided is shown."""
    judged(stage, "first")


def judge_of_all(stage: Stage) -> None:
    """Every option of the judge. The toy judge states a verdict in the form of another prompt: it gives none."""
    own = {"temperature": 0.5, "max_tokens": 99, "concurrency": 2}
    judged(stage, "first", scope="all", override=True, prompt="limo", **own)


def judge_of_the_wrong(stage: Stage) -> None:
    """What the rules called wrong is shown as well."""
    judged(stage, "second", scope="wrong")


def judge_of_each_engine(stage: Stage) -> None:
    """A judge that an engine serves, which fills the fields that a request leaves open."""
    for engine in ("vllm", "sglang", "llama.cpp"):
        (stage.folder / engine).mkdir()
        run = f"{engine}/{stored.copy('first', stage.folder / engine, scored=True)}"
        judge = stage.server(engine, judging(engine))
        stage.command("score", run, "--judge", f"pinned@{judge.base_url}", "--workers", "1", "--json")
        stage.requests(judge)


def judge_of_a_file(stage: Stage) -> None:
    """Outputs of another tool are judged as a run."""
    wordy = [r"\boxed{\text{what comes after light}}", r"\boxed{\text{they burn sugar}}"]
    rows = [
        {"question": "why?", "answer": PROSE, "gen": wordy},
        {"question": "2+2", "answer": "4", "gen": [r"\boxed{4}", r"\boxed{5}"]},
    ]
    write_lines(stage.folder / "theirs.jsonl", rows)
    judge = stage.server("judge", judging())
    words = ["--judge", f"pinned@{judge.base_url}", "--response-key", "gen", "--answer-key", "answer"]
    stage.command("score", "theirs.jsonl", *words, "--workers", "1", "--json", read=reading.scores)
    stage.command("score", "theirs.jsonl", *words, "--out", "theirs", "--workers", "1", "--json", read=reading.scores)
    stage.requests(judge)


def judge_by_a_form(stage: Stage) -> None:
    """A card names the form of its judge, which gives points; a sample is right from 6 of 7 on."""
    lines = (
        "title: Proofs",
        "source: {kind: file, path: theirs.jsonl}",
        "kind: text",
        "prompt: none",
        "columns: {question: question, answer: answer, rubric: rubric}",
        "judge: proofbench",
        "right_from: 6",
        'rules: {grader: "harness.grading.verifiers.left_open:to_judge", whole_reply: true}',
    )
    (stage.folder / "proofs.yaml").write_text("\n".join(lines), "utf-8")
    rows = [
        {"question": f"why {n}?", "answer": PROSE, "rubric": "1 point: light", "gen": [f"proof {n} comes after", "so"]}
        for n in range(3)
    ]
    write_lines(stage.folder / "theirs.jsonl", rows)
    judge = stage.server("judge", judging())
    words = ["--benchmark", "./proofs.yaml", "--response-key", "gen", "--out", "theirs", "--workers", "1", "--json"]
    for _ in range(2):
        asks = ["--judge", f"pinned@{judge.base_url}"]
        stage.command("score", "theirs.jsonl", *words, *asks, read=reading.scores)
        stage.keep(**reading.graded(stage.folder / "theirs"))
        stage.requests(judge)


def audited(stage: Stage) -> None:
    """Samples are written for a person, who finds each right; the score gets the accuracy with these verdicts."""
    stored.copy("first", stage.folder, scored=True)
    stage.command("audit", "first")
    stage.command("audit", "first", "--samples", "6", "--out", "todo.jsonl")
    rows = [json.loads(line) for line in (stage.folder / "todo.jsonl").read_text("utf-8").splitlines()]
    stage.keep(drawn=[[row["question_id"], row["sample_index"]] for row in rows], **reading.fields("sheet", rows))
    write_lines(stage.folder / "said.jsonl", [{**row, "verdict": "correct"} for row in rows])
    stage.python("audit", "first", samples=3)
    stage.command("audit", "first", "--samples", "6", "--verdicts", "said.jsonl", "--who", "Ann")
    stage.keep(**reading.scores([json.loads((stage.folder / "first/sums/scores.json").read_text("utf-8"))]))
    stage.command("audit", "first", "--benchmark", "demo", "--out", "todo.jsonl")


def grade(stage: Stage) -> None:
    """One verdict of each kind, by both doors, and what is refused."""
    cases: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("1/2", r"So the answer is \boxed{0.5}.", {}),
        ("1/2", r"So \boxed{0.6}", {"absolute_tolerance": 0.2}),
        ("B", "I choose (B).", {"choices": ["stone", "apple"]}),
        ("x^2-1", r"\boxed{(x-1)(x+1)}", {"kind": "expression"}),
        ("3.14", r"\boxed{3.1415}", {"round_to_reference": True, "kind": "number", "deadline": 1.5}),
        (PROSE, r"\boxed{\text{they burn it}}", {}),
        ("4", "I do not know.", {}),
        ("1", "1", {"deadline": 0.0}),
    )
    stage.python(
        "grade", "B", "I choose (B).", choices=["stone", "apple"]
    )  # the processes of graders last from here on
    for reference, response, options in cases:
        stage.both("grade", reference, response, read=reading.verdict, json=False, **options)


def old(stage: Stage, name: str) -> None:
    """A folder of an older version: scored as it was left, shown, reported, resumed, and refused where it differs."""
    (stage.folder / "questions.jsonl").write_text(QUESTIONS, encoding="utf-8")
    for version in sorted(path.name for path in FOLDERS.iterdir()):
        run = f"run-{version}"
        shutil.copytree(FOLDERS / version / name, stage.folder / run)
        stage.command("score", run, "--workers", "1", "--json", read=reading.scores)
        stage.keep(**reading.graded(stage.folder / run))
        stage.command("show", run, read=reading.shown)
        stage.command("report", run, "--out", "report")
        stage.keep(**reading.reported(stage.folder / "report"))
        stage.command("status", run, "--json", read=reading.progress)
        server = stage.server(f"server-{version}", answer)
        stage.command(*old_words(name, server.base_url, run), "--json", read=reading.ran)
        stage.requests(server)
        stage.keep(**reading.samples(stage.folder / run))
        stage.command(*old_words(name, server.base_url, run, temperature="0.123"))


def old_card(stage: Stage) -> None:
    """A shipped card."""
    old(stage, "card")


def old_own_file(stage: Stage) -> None:
    """Questions of one's own, with a preset."""
    old(stage, "own-file")


def old_completions(stage: Stage) -> None:
    """The protocol of plain completions."""
    old(stage, "completions")


SCENES: tuple[Scene, ...] = (
    a_run_folder, other_ks, a_file_of_outputs, llmeval_rows, a_card_by_its_questions, shards, refusals,
    judge_of_the_undecided, judge_of_all, judge_of_the_wrong, judge_of_each_engine, judge_of_a_file, judge_by_a_form,
    audited, grade, old_card, old_own_file, old_completions,
)  # fmt: skip
