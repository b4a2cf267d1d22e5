"""The hub's `eval.yaml`, by which a data set says how it is evaluated, read as a card.

The file lists tasks; those for inspect-ai say which columns are input, target and choices, what is asked, and how often
(https://huggingface.co/docs/hub/eval-results and `hf/OWNER/NAME` of inspect-ai). A prompt that the file states is asked
as it stands there. Where it names a step of inspect-ai without a text, ours of the same purpose is asked:
`multiple_choice` is `boxed_letter`, `chain_of_thought` is `boxed`. What has no place in a card is refused by its field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, NoReturn

import pydantic

from harness.benchmarks import card, prompts
from harness.benchmarks.card import Card, HubSource
from harness.benchmarks.sources import hub, hub_files
from harness.core import yaml_file
from harness.core.errors import UsageError, near_names
from harness.core.inert import quoted, visible
from harness.core.part import Part
from harness.core.validation import first_problem
from harness.core.wording import option

NAME = "eval.yaml"

_MAX_FILES = 10_000
"""Files below the folder of a local eval.yaml that are looked at for its data."""

_SCORERS = ("choice", "math", "match", "exact", "answer", "pattern")
"""Scorers that compare one answer with one target, as the grader does."""

_REDUCERS = r"^(mean|mode|max|pass_at_[0-9]+)$"
"""Of the samples of a question to one value; all of them stand in a score (mode: maj@k, max: pass@k)."""


class _Step(Part):
    """A solver or a scorer."""

    name: str
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
    solvers: Annotated[list[_Step], pydantic.Field(min_length=1)]
    scorers: Annotated[list[_Step], pydantic.Field(min_length=1)]


def of_hub(address: str) -> Card:
    """The card of `hf://datasets/OWNER/NAME[@COMMIT][/eval.yaml][#TASK]`. Raises `UsageError`.

    Without a commit the newest is looked up, and the card pins it: the file and the rows are of one commit.
    """
    url, _, task = address.partition("#")
    repository = hub.from_url(url.removesuffix(f"/{NAME}"), None)
    if repository.files:
        raise UsageError(
            f"{visible(address, 200)} names a file of data: give it with {option('data')}, or leave it out"
        )
    path, revision = hub.file_of(repository, NAME)
    where = f"{repository.id}:{NAME}"
    value = yaml_file.read_mapping(path, "tasks of an evaluation")
    said, name = _task(value, task, where)
    config = () if said.config == "default" else (said.config,)
    source = HubSource(kind="hub", id=repository.id, config=config, split=said.split, revision=revision)
    return _card(value, said, name or repository.id.rpartition("/")[2], source.model_dump(), where, None)


def of_file(value: Mapping[str, Any], path: Path, task: str) -> Card:
    """The card of a local `eval.yaml`, whose data lie in one file in or below its folder. Raises `UsageError`."""
    said, name = _task(value, task, str(path))
    folder = path.resolve().parent
    config = None if said.config == "default" else said.config
    files = [one.relative_to(folder).as_posix() for one in islice(folder.rglob("*"), _MAX_FILES) if one.is_file()]
    chosen = hub_files.choose(files, [], config, said.split, visible(str(folder), 200))
    if len(chosen) != 1:
        raise UsageError(
            f"{path}: {len(chosen)} files belong to the split {visible(said.split, 60)!r} ({visible(chosen[0], 100)} "
            "is the first); put its rows into one"
        )
    return _card(value, said, name or folder.name, {"kind": "file", "path": chosen[0]}, str(path), folder)


def _task(value: Mapping[str, Any], wanted: str, where: str) -> tuple[_Task, str]:
    """(the one task, or that which is wanted; its name, empty where it is the only one)."""
    framework, tasks = value.get("evaluation_framework"), value.get("tasks")
    if str(framework).replace("_", "-").casefold() != "inspect-ai":
        raise UsageError(
            f"{where}: evaluation_framework is {quoted(repr(framework))}; only files for inspect-ai say which columns "
            "are asked, so write a card"
        )
    if not isinstance(tasks, list) or not all(isinstance(one, dict) for one in tasks) or not tasks:
        raise UsageError(f"{where}: tasks must be a list of tasks")
    names = [str(one.get("id")) for one in tasks]
    if (wanted and wanted not in names) or (not wanted and len(tasks) > 1):
        known = ", ".join(visible(name, 60) for name in names[:50])
        asked = f"has no task {visible(wanted, 60)!r}" if wanted else "has several tasks"
        raise UsageError(f"{where} {asked}: name one of {known} after a #.{near_names(wanted, names)}")
    place = names.index(wanted) if wanted else 0
    try:
        found = _Task.model_validate(tasks[place])
    except pydantic.ValidationError as error:
        raise UsageError(f"{where}: tasks[{place}]: {first_problem(error, _KEYS).sentence}") from error
    return found, wanted or (names[0] if found.id else "")


def _card(
    value: Mapping[str, Any], said: _Task, name: str, source: dict[str, Any], where: str, folder: Path | None
) -> Card:
    if said.id:
        where = f"{where}, task {visible(said.id, 60)}"
    columns, choices = _columns(said, where)
    template, system, sampling = _asked(said, where)
    for scorer in said.scorers:
        if scorer.name not in _SCORERS:
            _refuse(where, "scorers", scorer.name, "a card's answers are compared with one target", _SCORERS)
    plain = re.sub(r"[\x00-\x1f\x7f:,]", "-", name)[:100]
    return card.from_mapping(
        {
            "name": plain,
            "title": _line(value.get("name")) or plain,
            "measures": _line(value.get("description")),
            "source": {key: value for key, value in source.items() if value not in (None, ())},
            "columns": columns,
            **({"choices": choices} if choices else {}),
            "id_rule": "column" if said.field_spec.id else "checksum",
            "kind": "choice" if choices or said.scorers[0].name == "choice" else "auto",
            "prompt": NAME,
            "prompts": [{"name": NAME, "template": template, "system": system}],
            "samples": said.epochs,
            "sampling": sampling,
        },
        where,
        folder,
    )


def _line(text: object) -> str:
    return visible(" ".join(text.split()), 500) if isinstance(text, str) else ""


def _columns(said: _Task, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(columns, choices; the latter empty where there are none) of the card."""
    fields, choices = said.field_spec, said.field_spec.choices
    columns: dict[str, Any] = {"question": fields.input, "answer": fields.target, "metadata": fields.metadata}
    if fields.id:
        columns["id"] = fields.id
    solved = any(step.name == "multiple_choice" for step in said.solvers)
    if bool(choices) != solved:
        raise UsageError(
            f"{where}: field_spec.choices and the solver multiple_choice go together, and one of them is missing"
        )
    literal = re.fullmatch(r"literal:([A-Z])", fields.target)
    if literal:
        right = ord(literal[1]) - ord("A")
        if not isinstance(choices, list) or right >= len(choices) or not said.shuffle_choices:
            raise UsageError(
                f"{where}: field_spec.target {literal[0]!r} needs a list of choices of which it is one, and "
                "shuffle_choices: true; otherwise every answer would be the same letter"
            )
        del columns["answer"]
        wrong = [column for place, column in enumerate(choices) if place != right]
        return columns, {"correct": choices[right], "incorrect": wrong, "shuffle_seed": 0}
    if fields.target.startswith("literal:"):
        raise UsageError(f"{where}: field_spec.target {quoted(fields.target)} is one answer for all questions")
    if said.shuffle_choices:
        raise UsageError(
            f"{where}: shuffle_choices: options that a column names by letter are asked in their own order"
        )
    return columns, {"options": choices} if choices else {}


def _asked(said: _Task, where: str) -> tuple[str, str | None, dict[str, Any]]:
    """(template of the user's turn, system turn, sampling) of the solvers, each applied to what those before made."""
    template, system, sampling = "{question}", None, dict[str, Any]()
    for place, step in enumerate(said.solvers):
        here = f"{where}: solvers[{place}] ({visible(step.name, 40)})"
        given = dict(step.args)
        if step.name == "generate":
            sampling = given
            continue
        if step.name == "multiple_choice":
            given.pop("cot", None)  # a reasoning model thinks in any case
            template = prompts.PROMPTS["boxed_letter"].template.replace("{question}", template)
        elif step.name == "chain_of_thought" and "template" not in given:
            template = prompts.PROMPTS["boxed"].template.replace("{question}", template)
        elif step.name in ("prompt_template", "chain_of_thought"):
            template = _template(given.pop("template", None), here).replace("{prompt}", template)
        elif step.name == "system_message" and system is None:
            system = _template(given.pop("template", None), here)
        else:
            known = ("prompt_template", "system_message", "chain_of_thought", "multiple_choice", "generate")
            _refuse(where, f"solvers[{place}]", step.name, "a card asks one turn", known)
        if given:
            raise UsageError(f"{here}: args.{visible(next(iter(given)), 40)} has no place in a card")
    return template, system, sampling


def _template(text: object, where: str) -> str:
    """`text` as inspect-ai prints it: `{prompt}` is the question, doubled braces are single ones."""
    if not isinstance(text, str):
        raise UsageError(f"{where}: args.template must be a text, found {quoted(repr(text))}")
    named = re.findall(r"(?<!\{)\{([A-Za-z_]\w*)\}(?!\})", re.sub(r"\\[A-Za-z]+\{", "", text))
    other = [name for name in named if name != "prompt"]
    if other:
        raise UsageError(f"{where}: args.template fills in {{{visible(other[0], 40)}}}; a card has {{prompt}} only")
    return text.replace("{{", "{").replace("}}", "}").strip("\n")


def _refuse(where: str, field: str, name: str, why: str, known: tuple[str, ...]) -> NoReturn:
    raise UsageError(
        f"{where}: {field} {quoted(repr(name))} has no place in a card: {why}; expected {', '.join(known)}"
    )


_KEYS = {key for model in (_Task, _Fields, _Step) for key in model.model_fields}
