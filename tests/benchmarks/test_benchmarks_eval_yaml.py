"""A data set's own `eval.yaml` as a card: from the hub, and what is refused by its field.

For: harness.benchmarks.eval_yaml, harness.benchmarks.drafts.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.benchmarks import catalog, questions
from harness.benchmarks.card import HubSource
from harness.commands import card_data
from harness.core.errors import UsageError
from tests.benchmarks.hub_server import FIRST, SECOND, Dataset, Hub, jsonl

MATHS: dict[str, Any] = {
    "field_spec": {"input": "problem", "target": "answer", "metadata": ["level"]},
    "epochs": 4,
    "epoch_reducer": "pass_at_1",
    "solvers": [
        {"name": "system_message", "args": {"template": "Be brief."}},
        {"name": "prompt_template", "args": {"template": "{prompt}\n\nPut your final answer within \\boxed{{}}.\n"}},
        {"name": "generate", "args": {"temperature": 0.5}},
    ],
    "scorers": [{"name": "math"}],
}
CHOICE: dict[str, Any] = {
    "id": "listed",
    "config": "listed",
    "split": "test",
    "field_spec": {"input": "question", "target": "answer_index", "choices": "options"},
    "solvers": [{"name": "multiple_choice", "args": {"cot": True}}],
    "scorers": [{"name": "choice"}],
}
COLUMNS: dict[str, Any] = {
    **CHOICE,
    "id": "columns",
    "config": "columns",
    "field_spec": {"input": "Question", "target": "literal:B", "choices": ["Wrong 1", "Right", "Wrong 2"]},
    "shuffle_choices": True,
}
SUMS = [{"problem": f"What is {n} + 1?", "answer": str(n + 1), "level": n % 2} for n in range(4)]
LISTED = [{"question": "Which is even?", "options": ["1", "2", "3"], "answer_index": n} for n in (1, 0)]
IN_COLUMNS = [{"Question": f"{n}?", "Right": f"{n} yes", "Wrong 1": "no", "Wrong 2": "never"} for n in range(6)]


SET = "hf://datasets/someone/sums"


def text(*tasks: dict[str, Any], framework: str = "inspect-ai") -> bytes:
    content = {
        "name": "Sums",
        "description": "Of two\nnumbers.\n",
        "evaluation_framework": framework,
        "tasks": [*tasks],
    }
    return yaml.safe_dump(json.loads(json.dumps(content))).encode()  # copies: no aliases


@pytest.fixture
def publish(hub: Hub) -> Callable[..., Dataset]:
    def published(*tasks: dict[str, Any], **more: bytes) -> Dataset:
        files = {
            "eval.yaml": text(*tasks),
            "data/test-00000-of-00001.jsonl": jsonl(SUMS),
            "listed/test.jsonl": jsonl(LISTED),
            "columns/test.jsonl": jsonl(IN_COLUMNS),
        }
        if len(tasks) == 1 and isinstance(tasks[0], dict) and tasks[0].get("config", "default") == "default":
            files = {name: files[name] for name in ("eval.yaml", "data/test-00000-of-00001.jsonl")}
        dataset = hub.datasets["someone/sums"] = Dataset({FIRST: {**files, **more}})
        return dataset

    return published


def test_a_data_set_of_the_hub_is_asked_as_its_own_file_says(publish: Callable[..., Dataset]) -> None:
    publish(MATHS)
    card = catalog.load(SET)
    assert (card.name, card.title) == ("sums", "Sums")
    assert isinstance(card.source, HubSource)
    assert card.source.revision == FIRST
    assert (card.samples, card.sampling.request_fields()) == (4, {"temperature": 0.5})
    built = questions.build(card)
    assert [question.references for question in built.questions] == [("1",), ("2",), ("3",), ("4",)]
    assert built.questions[1].metadata["level"] == 1
    system, user = built.questions[0].messages
    assert (system.role, system.content) == ("system", "Be brief.")
    assert user.content == "What is 0 + 1?\n\nPut your final answer within \\boxed{}."


def test_the_rows_are_of_the_commit_of_the_file(publish: Callable[..., Dataset]) -> None:
    dataset = publish(MATHS)
    card = catalog.load(f"{SET}/eval.yaml")
    dataset.commits[SECOND] = {"eval.yaml": text(MATHS), "test.jsonl": jsonl(SUMS[:1])}
    for loaded, n in ((card, 4), (catalog.load(SET), 1), (catalog.load(f"{SET}@{FIRST}"), 4)):
        assert len(questions.build(loaded).questions) == n


def test_the_folder_that_fetch_names_is_enough_on_another_machine(
    publish: Callable[..., Dataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(MATHS)
    fetched = card_data.fetch(catalog.load(SET))
    assert fetched.to_copy is not None
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "there"))
    with pytest.raises(UsageError, match=r"copy .*there/datasets--someone--sums from a machine that has it"):
        catalog.load(SET)
    shutil.copytree(fetched.to_copy, tmp_path / "there" / fetched.to_copy.name, symlinks=True)
    assert questions.build(catalog.load(SET)).dataset_digest == fetched.questions.dataset_digest


def test_options_stand_in_a_list_or_in_columns(publish: Callable[..., Dataset]) -> None:
    publish(CHOICE, COLUMNS)
    question, _ = questions.build(catalog.load(f"{SET}#listed")).questions
    assert (question.choices, question.references, question.kind) == (("1", "2", "3"), ("B",), "choice")
    assert r"\boxed{}" in question.messages[-1].content
    shuffled = questions.build(catalog.load(f"{SET}#columns")).questions
    for asked in shuffled:
        assert asked.choices["ABC".index(asked.references[0])].endswith(" yes")
    assert len({question.references for question in shuffled}) > 1


def test_of_several_tasks_one_is_named(publish: Callable[..., Dataset]) -> None:
    publish(CHOICE, COLUMNS)
    for task, message in (("", r"add #TASK, one of listed, columns"), ("#lsted", r"add #TASK.*Did you mean listed")):
        with pytest.raises(UsageError, match=message):
            catalog.load(f"{SET}{task}")


def test_a_set_without_the_file_and_a_local_file_are_refused(hub: Hub, tmp_path: Path) -> None:
    hub.datasets["someone/sums"] = Dataset({FIRST: {"test.jsonl": jsonl(SUMS)}})
    (tmp_path / "eval.yaml").write_bytes(text(MATHS))
    for name, message in (
        (SET, r"someone/sums has no file 'eval.yaml'; it contains test.jsonl"),
        (f"{SET}/test.jsonl", "is a data file"),
        (str(tmp_path / "eval.yaml"), r"eval.yaml files can only be read from the Hub: use hf://"),
    ):
        with pytest.raises(UsageError, match=message):
            catalog.load(name)


def fields(**changes: Any) -> dict[str, Any]:
    return {**MATHS, "field_spec": {**MATHS["field_spec"], **changes}}


def solved(*steps: dict[str, Any]) -> dict[str, Any]:
    return {**MATHS, "solvers": list(steps)}


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (fields(input_image="picture"), "field_spec.input_image"),
        (fields(inputt="a"), "field_spec.inputt"),
        (fields(choices=["a", "b"]), "field_spec.choices requires the solver multiple_choice, and vice versa"),
        (fields(target="literal:A"), "field_spec.target literal:A: use literal:LETTER"),
        (fields(target="literal:yes"), "or a column without shuffling"),
        ({**COLUMNS, "shuffle_choices": False}, "with shuffle_choices: true"),
        (
            {**COLUMNS, "field_spec": {**COLUMNS["field_spec"], "target": "literal:D"}},
            "use literal:LETTER with shuffle_choices: true",
        ),
        ({**CHOICE, "shuffle_choices": True}, "or a column without shuffling"),
        ({**MATHS, "epochs": 0}, "epochs"),
        ({**MATHS, "epoch_reducer": "median"}, "epoch_reducer"),
        ({**MATHS, "scorers": [{"name": "math"}, {"name": "model_graded_qa"}]}, "scorers.1.name: expected 'choice'"),
        ({**MATHS, "scorers": []}, "scorers"),
        ({**MATHS, "sandbox": "docker"}, "sandbox"),
        ({key: value for key, value in MATHS.items() if key != "field_spec"}, "field_spec"),
        (solved({"name": "use_tools"}), "solvers.0.name: expected 'prompt_template'"),
        (solved({"name": "multiple_choice", "args": {"multiple_correct": True}}), "field_spec.choices"),
        (solved({"name": "prompt_template"}), "solvers (prompt_template): args.template must be a string"),
        (
            solved({"name": "prompt_template", "args": {"template": "{story} {prompt}"}}),
            "args.template contains {story}, but a card supports only {prompt}",
        ),
        (
            solved({"name": "prompt_template", "args": {"template": "{prompt} {{question}}"}}),
            "args.template contains {question}, but a card supports only {prompt}",
        ),
        (
            solved({"name": "system_message", "args": {"template": "Use {x}"}}),
            "args.template contains {x}, but no placeholder is supported here",
        ),
        (
            solved({"name": "system_message", "args": {"template": "Use {prompt}"}}),
            "args.template contains {prompt}, but no placeholder is supported here",
        ),
        (solved(MATHS["solvers"][2], {"name": "generate"}), "a card can have only one generate solver"),
        (solved({"name": "prompt_template", "args": {"template": "{prompt}", "x": 1}}), "cards do not support args.x"),
        (solved({"name": "prompt_template", "args": {"template": "{prompt}\x07"}}), "control character"),
        (solved({"name": "generate", "args": {"temperature": -1}}), "sampling.temperature"),
        (solved({"name": "generate", "args": {"cache": True}}), "sampling.cache"),
        ({**CHOICE, "solvers": [{"name": "multiple_choice", "args": {"multiple_correct": True}}]}, "multiple_correct"),
        ("a word", "tasks[0]: "),
    ],
)
def test_wrong_keys_of_a_card_are_refused_by_name(publish: Callable[..., Dataset], task: Any, message: str) -> None:
    publish(task, **({} if isinstance(task, dict) else {"eval.yaml": text(task)}))
    with pytest.raises(UsageError, match=r"eval\.yaml") as refused:
        catalog.load(SET)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_file_of_another_framework_is_refused(publish: Callable[..., Dataset]) -> None:
    publish(MATHS, **{"eval.yaml": text({"id": "hle", "config": "default", "split": "test"}, framework="hle")})
    with pytest.raises(UsageError, match="expected inspect-ai tasks, found evaluation_framework: hle"):
        catalog.load(SET)


def test_a_step_without_a_text_is_asked_in_our_words(publish: Callable[..., Dataset]) -> None:
    publish(solved({"name": "chain_of_thought"}, {"name": "generate"}))
    built = questions.build(catalog.load(SET))
    assert [message.role for message in built.questions[0].messages] == ["user"]
    assert "reason step by step" in built.questions[0].messages[0].content
