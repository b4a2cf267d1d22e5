"""Turning an `eval.yaml` of the Hugging Face hub, in which a data set says how it is evaluated, into a card.

The file lists tasks. A task for inspect-ai says which columns are input, target and choices, what is asked, and how
often (https://huggingface.co/docs/hub/eval-results and `hf/OWNER/NAME` of inspect-ai). A prompt that the file states is
used as it stands. For a step of inspect-ai without a text, our prompt of the same purpose is used: `boxed_letter` for
`multiple_choice`, `boxed` for `chain_of_thought`. Anything that a card cannot express is refused, with its field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Generic, Literal, TypeVar

import pydantic

from harness.benchmarks import card, prompts
from harness.benchmarks.card import Card, HubSource
from harness.benchmarks.drafts import LETTERS
from harness.benchmarks.sources import hub
from harness.core import yaml_file
from harness.core.errors import UsageError, near_names
from harness.core.inert import quoted, visible
from harness.core.part import Part
from harness.core.validation import first_problem

NAME = "eval.yaml"
"""The file's name in a data set."""

_Solver = Literal["prompt_template", "system_message", "chain_of_thought", "multiple_choice", "generate"]
"""Steps of inspect-ai that ask one turn, as a card does."""

_Scorer = Literal["choice", "math", "match", "exact", "answer", "pattern"]
"""Scorers of inspect-ai that compare an answer with one target, as our grader does."""

N = TypeVar("N")

_REDUCERS = r"^(mean|mode|max|pass_at_[0-9]+)$"
"""Names of inspect-ai's reducers, which make one value of a question's samples. They need no setting here, since a
score has all these values (mode is maj@k, max is pass@k).
"""


class _Step(Part, Generic[N]):
    """A solver (a step that builds the prompt) or a scorer of inspect-ai."""

    name: N
    args: dict[str, Any] = pydantic.Field(default_factory=dict)


class _Fields(Part):
    input: str
    target: str
    choices: str | list[str] | None = None
    id: str | None = None
    metadata: str | list[str] = pydantic.Field(default_factory=list)
    description: str | None = None


class _Task(Part):
    id: str | None = None
    config: str = "default"
    split: str = "test"
    field_spec: _Fields
    shuffle_choices: bool | None = None
    epochs: Annotated[int, pydantic.Field(ge=1)] = 1
    epoch_reducer: Annotated[str, pydantic.Field(pattern=_REDUCERS)] | None = None
    solvers: Annotated[list[_Step[_Solver]], pydantic.Field(min_length=1)]
    scorers: Annotated[list[_Step[_Scorer]], pydantic.Field(min_length=1)]


def of_hub(address: str) -> Card:
    """The card of `hf://datasets/OWNER/NAME[@COMMIT][/eval.yaml][#TASK]`. Raises `UsageError`.

    Without a commit the newest one is looked up and written into the card, so that the file and the rows belong to the
    same commit.
    """
    url, _, task = address.partition("#")
    repository = hub.from_url(url.removesuffix(f"/{NAME}"), None)
    if repository.files:
        raise UsageError(
            f"{visible(address, 200)} names a file of data: give the address with `data`, or leave out the file"
        )
    path, revision = hub.file_of(repository, NAME)
    where = f"{repository.id}:{NAME}"
    value = yaml_file.read_mapping(path, "tasks of an evaluation")
    spec, name = _find_task(value, task, where)
    config = () if spec.config == "default" else (spec.config,)
    source = HubSource(kind="hub", id=repository.id, config=config, split=spec.split, revision=revision)
    of_task = _card(value, spec, name or repository.id.rpartition("/")[2], source, where)
    of_task._address = address
    return of_task


def _find_task(value: Mapping[str, Any], name: str, where: str) -> tuple[_Task, str]:
    """Find the task called `name` in an eval.yaml; return it with its name. An empty name means the file's only task.

    value: the file's content. where: the file's name, for messages. Raises `UsageError`.
    """
    framework, tasks = value.get("evaluation_framework"), value.get("tasks")
    if str(framework).replace("_", "-").casefold() != "inspect-ai":
        raise UsageError(
            f"{where}: evaluation_framework is {quoted(repr(framework))}; only files for inspect-ai name the columns "
            "of question and answer. Describe the benchmark in a card (docs/benchmarks.md)"
        )
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks) or not tasks:
        raise UsageError(f"{where}: tasks must be a list of tasks")
    names = [str(task.get("id")) for task in tasks]
    if (name and name not in names) or (not name and len(tasks) > 1):
        shown = ", ".join(visible(candidate, 60) for candidate in names[:50])
        problem = f"has no task {visible(name, 60)!r}" if name else "has several tasks"
        raise UsageError(f"{where} {problem}: name one of {shown} after a #.{near_names(name, names)}")
    index = names.index(name) if name else 0
    try:
        parsed = _Task.model_validate(tasks[index])
    except pydantic.ValidationError as error:
        raise UsageError(f"{where}: tasks[{index}]: {first_problem(error, _KEYS).sentence}") from None
    return parsed, name or (names[0] if parsed.id else "")


def _card(value: Mapping[str, Any], spec: _Task, name: str, source: HubSource, where: str) -> Card:
    """The card for one task of an `eval.yaml`. Raises `UsageError` for anything in it that a card cannot express."""
    if spec.id:
        where = f"{where}, task {visible(spec.id, 60)}"
    columns, choices = _read_columns(spec, where)
    template, system, sampling = _read_solvers(spec, where)
    plain = re.sub(r"[\x00-\x1f\x7f:,]", "-", name)[:100]
    return card.from_mapping(
        {
            "name": plain,
            "title": _one_line(value.get("name")) or plain,
            "measures": _one_line(value.get("description")),
            "source": {key: value for key, value in source.model_dump().items() if value not in (None, ())},
            "columns": columns,
            **({"choices": choices} if choices else {}),
            "id_rule": "column" if spec.field_spec.id else "checksum",
            "kind": "choice" if choices or spec.scorers[0].name == "choice" else "auto",
            "prompt": NAME,
            "prompts": [{"name": NAME, "template": template, "system": system}],
            "samples": spec.epochs,
            "sampling": sampling,
        },
        where,
    )


def _one_line(text: object) -> str:
    return visible(" ".join(text.split()), 500) if isinstance(text, str) else ""


def _read_columns(spec: _Task, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Translate a task's fields into a card's `columns` and `choices`; `choices` is {} without options."""
    fields, choices = spec.field_spec, spec.field_spec.choices
    columns: dict[str, Any] = {"question": fields.input, "answer": fields.target, "metadata": fields.metadata}
    if fields.id:
        columns["id"] = fields.id
    solved = any(step.name == "multiple_choice" for step in spec.solvers)
    if bool(choices) != solved:
        raise UsageError(
            f"{where}: field_spec.choices and the solver multiple_choice go together, and one of them is missing"
        )
    if fields.target.startswith("literal:"):
        letter = fields.target.removeprefix("literal:")
        right = LETTERS.find(letter) if len(letter) == 1 else -1
        if not isinstance(choices, list) or not 0 <= right < len(choices) or not spec.shuffle_choices:
            raise UsageError(
                f"{where}: field_spec.target {quoted(fields.target)} is a place in a list of choices: give a list that "
                "has this place, and shuffle_choices: true, or name the column that holds the answers; otherwise every "
                "answer would be the same letter"
            )
        del columns["answer"]
        wrong = [column for index, column in enumerate(choices) if index != right]
        return columns, {"correct": choices[right], "incorrect": wrong, "shuffle_seed": 0}
    if spec.shuffle_choices:
        raise UsageError(
            f"{where}: leave out shuffle_choices: a column names the right option by letter, so the options are asked "
            "in their own order"
        )
    return columns, {"options": choices} if choices else {}


def _read_solvers(spec: _Task, where: str) -> tuple[str, str | None, dict[str, Any]]:
    """Translate a task's solvers, in order, into the user's message, the system message and the sampling."""
    template, system, sampling = "{question}", None, dict[str, Any]()
    for index, step in enumerate(spec.solvers):
        here = f"{where}: solvers[{index}] ({visible(step.name, 40)})"
        given = dict(step.args)
        if step.name == "generate":
            sampling = given
            continue
        if step.name == "multiple_choice":
            given.pop("cot", None)  # "think first": a reasoning model does so anyway
            template = prompts.PROMPTS["boxed_letter"].template.replace("{question}", template)
        elif step.name == "chain_of_thought" and "template" not in given:
            template = prompts.PROMPTS["boxed"].template.replace("{question}", template)
        elif step.name in ("prompt_template", "chain_of_thought"):
            template = _template(given.pop("template", None), here).replace("{prompt}", template)
        elif system is None:
            system = _template(given.pop("template", None), here)
        else:
            raise UsageError(f"{here}: a card has one system message; leave it out")
        if given:
            raise UsageError(f"{here}: a card cannot express args.{visible(next(iter(given)), 40)}; leave it out")
    return template, system, sampling


def _template(text: object, where: str) -> str:
    """A template of inspect-ai as one of ours: `{prompt}` stands for the question, and `{{` becomes `{`."""
    if not isinstance(text, str):
        raise UsageError(f"{where}: args.template must be a text, found {quoted(repr(text))}")
    # The braces of LaTeX commands (\boxed{x}) are no fields.
    fields = re.findall(r"(?<!\{)\{([A-Za-z_]\w*)\}(?!\})", re.sub(r"\\[A-Za-z]+\{", "", text))
    unknown = [name for name in fields if name != "prompt"]
    if unknown:
        raise UsageError(f"{where}: args.template fills in {{{visible(unknown[0], 40)}}}; a card has {{prompt}} only")
    return text.replace("{{", "{").replace("}}", "}").strip("\n")


_KEYS = {key for model in (_Task, _Fields, _Step) for key in model.model_fields}
