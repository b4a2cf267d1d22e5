"""Turn an `eval.yaml` of the Hugging Face hub, which specifies how to evaluate a data set, into a card.

The file lists tasks. A task for inspect-ai specifies which columns are input, target and choices, what is asked, and
how often (https://huggingface.co/docs/hub/eval-results and `hf/OWNER/NAME` of inspect-ai). A prompt in the file is used
unchanged. For an inspect-ai step without text, our prompt with the same purpose is used: `boxed_letter` for
`multiple_choice`, `boxed` for `chain_of_thought`. Anything that a card cannot express is rejected, with its field.
"""

from __future__ import annotations

import re
from string import ascii_uppercase
from typing import Annotated, Any, Generic, Literal, TypeVar

import pydantic

from harness.benchmarks import card, prompts
from harness.benchmarks.card import Card
from harness.benchmarks.prompts import placeholders
from harness.benchmarks.sources import hub
from harness.core import yaml_file
from harness.core.errors import UsageError, near_names
from harness.core.sanitize import quoted, visible
from harness.core.validation import validated
from harness.core.yaml_mapping import Part, TextForm

NAME = "eval.yaml"
"""The file's name in a data set."""

N = TypeVar("N")


class _Step(Part, Generic[N]):
    """An inspect-ai solver (a step that builds the prompt) or scorer."""

    name: N
    args: dict[str, Any] = pydantic.Field(default_factory=dict)


_Solver = _Step[Literal["prompt_template", "system_message", "chain_of_thought", "multiple_choice", "generate"]]
"""A step that asks for one turn, as a card does."""

_Scorer = _Step[Literal["choice", "math", "match", "exact", "answer", "pattern"]]
"""A scorer that compares an answer with a single target, as our grader does."""


_Reducer = Annotated[str, TextForm(r"mean|mode|max|pass_at_[0-9]+", "mean, mode, max or pass_at_K")]


class _Fields(Part):
    input: str
    target: str
    choices: str | list[str] | None = None
    id: str | None = None
    metadata: str | list[str] = pydantic.Field(default_factory=list)
    description: str | None = None


class _Task(Part):
    """A task.

    epoch_reducer: how inspect-ai reduces a question's samples to one value. It needs no setting here, because a score
    includes all these values (mode is maj@k, max is pass@k).
    """

    id: str | None = None
    config: str = "default"
    split: str = "test"
    field_spec: _Fields
    shuffle_choices: bool | None = None
    epochs: Annotated[int, pydantic.Field(ge=1)] = 1
    epoch_reducer: _Reducer | None = None
    solvers: Annotated[list[_Solver], pydantic.Field(min_length=1)]
    scorers: Annotated[list[_Scorer], pydantic.Field(min_length=1)]


def of_hub(address: str) -> Card:
    """The card of `hf://datasets/OWNER/NAME[@COMMIT][/eval.yaml][#TASK]`. Raises `UsageError`.

    Without a commit, the newest one is looked up and written to the card, so that the file and the rows are from the
    same commit.
    """
    url, _, task = address.partition("#")
    repository = hub.from_url(url.removesuffix(f"/{NAME}"), split=None)  # the file names the split
    if repository.files:
        raise UsageError(f"{visible(address, 200)} is a data file: pass it as `data`, or omit the file name")
    path, revision = hub.file_of(repository, NAME)
    where = f"{repository.id}:{NAME}"
    value = yaml_file.read_mapping(path, "evaluation tasks")
    spec = _find_task(value, task, where)
    name = re.sub(r"[\x00-\x1f\x7f:,]", "-", spec.id or repository.id.rpartition("/")[2])[:100]
    columns, choices = _read_columns(spec, where)
    template, system = _read_solvers(spec, where)
    source = {"kind": "hub", "id": repository.id, "revision": revision, "split": spec.split}
    return card.from_mapping(
        {
            "name": name,
            "title": visible(" ".join(str(value.get("name") or name).split()), 500),
            "source": source if spec.config == "default" else {**source, "config": spec.config},
            "columns": columns,
            "choices": choices,
            "id_rule": "column" if spec.field_spec.id else "checksum",
            "kind": "choice" if choices or spec.scorers[0].name == "choice" else "auto",
            "prompt": NAME,  # the card's only prompt, named after its file
            "prompts": [{"name": NAME, "template": template, "system": system}],
            "samples": spec.epochs,
            "sampling": next((step.args for step in spec.solvers if step.name == "generate"), {}),
        },
        where,
        address=address,
    )


def _find_task(value: dict[str, Any], name: str, where: str) -> _Task:
    """The task called `name` in an eval.yaml; an empty name means the file's only task. Raises `UsageError`.

    value: the file's content. where: the file's name, for messages.
    """
    framework, tasks = str(value.get("evaluation_framework")), value.get("tasks")
    if framework.replace("_", "-").casefold() != "inspect-ai" or not isinstance(tasks, list) or not tasks:
        raise UsageError(f"{where}: expected inspect-ai tasks, found evaluation_framework: {quoted(framework)}")
    names = [str(task.get("id")) if isinstance(task, dict) else "" for task in tasks]
    if name not in names and (name or len(tasks) > 1):
        raise UsageError(f"{where}: add #TASK, one of {visible(', '.join(names), 2000)}.{near_names(name, names)}")
    index = names.index(name) if name else 0
    return validated(_Task, tasks[index], f"{where}: tasks[{index}]")


def _read_columns(spec: _Task, where: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Translate a task's fields into a card's `columns` and `choices`; `choices` is None without options."""
    fields, choices = spec.field_spec, spec.field_spec.choices
    columns = {"question": fields.input, "answer": fields.target, "id": fields.id or [], "metadata": fields.metadata}
    if bool(choices) != any(step.name == "multiple_choice" for step in spec.solvers):
        raise UsageError(f"{where}: field_spec.choices requires the solver multiple_choice, and vice versa")
    if not fields.target.startswith("literal:") and not spec.shuffle_choices:
        return columns, {"options": choices} if choices else None
    # "literal:B" names the second column of `choices`.
    indices = {f"literal:{letter}": index for index, letter in enumerate(ascii_uppercase[: len(choices or ())])}
    right = indices.get(fields.target)
    if right is None or not isinstance(choices, list) or not spec.shuffle_choices:
        ways = "use literal:LETTER with shuffle_choices: true and a list of choices, or a column without shuffling"
        raise UsageError(f"{where}: field_spec.target {quoted(fields.target)}: {ways}")
    wrong = [column for index, column in enumerate(choices) if index != right]
    return {**columns, "answer": []}, {"correct": choices[right], "incorrect": wrong, "shuffle_seed": 0}


def _read_solvers(spec: _Task, where: str) -> tuple[str, str | None]:
    """Translate a task's solvers into a card's (template of the user's message, system message; None without one).

    Each solver in turn extends the template so far. Raises `UsageError` for what a card cannot express.
    """
    template, system = "{question}", None
    if sum(step.name == "generate" for step in spec.solvers) > 1:
        raise UsageError(f"{where}: solvers (generate): a card can have only one generate solver; remove the others")
    for step in (step for step in spec.solvers if step.name != "generate"):
        here, arguments = f"{where}: solvers ({step.name})", dict(step.args)
        if step.name == "multiple_choice":
            arguments.pop("cot", None)  # "think first": a reasoning model does so anyway
            text = prompts.PROMPTS["boxed_letter"].template
        elif step.name == "chain_of_thought" and "template" not in arguments:
            text = prompts.PROMPTS["boxed"].template
        else:
            field = "" if step.name == "system_message" else "{prompt}"
            text = _template(arguments.pop("template", None), here, field)
        if arguments:
            raise UsageError(f"{here}: cards do not support args.{visible(next(iter(arguments)), 40)}; remove it")
        if step.name != "system_message":
            template = text.replace("{question}", template)
        elif system is None:
            system = text
        else:
            raise UsageError(f"{here}: a card can have only one system message; remove this solver")
    return template, system


def _template(text: object, where: str, field: str) -> str:
    """A template of inspect-ai as one of ours: `{prompt}` becomes `{question}`, and `{{` becomes `{`.

    field: the field that a card fills in; empty for none. Any other field is rejected, and so is one that `{{` makes
    literal.
    """
    if not isinstance(text, str):
        raise UsageError(f"{where}: args.template must be a string, found {quoted(repr(text))}")
    plain = text.replace("{{", "{").replace("}}", "}").strip("\n")
    for name in (*placeholders(plain), "{question}", "{choices}"):
        if name != field and name in plain:
            why = f"a card supports only {field}" if field else "no placeholder is supported here"
            raise UsageError(f"{where}: args.template contains {visible(name, 40)}, but {why}; remove it")
    return plain.replace("{prompt}", "{question}")
