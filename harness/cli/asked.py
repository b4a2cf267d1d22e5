"""What a run asks: the cards or files that were named, their questions, their sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.core.errors import UsageError

if TYPE_CHECKING:
    from harness.benchmarks.questions import QuestionSet
    from harness.presets.sampling import Sampling


@dataclass(frozen=True)
class Asked:
    """One benchmark of the command line. samples: of `name:samples`."""

    name: str
    samples: int | None
    card: Any


def asked_for(text: str | None, flags: dict[str, Any]) -> list[Asked]:
    """The cards that were named, or the file's own. Raises `UsageError`."""
    from harness.benchmarks import card, catalogue

    for key in ("question_key", "answer_key", "id_key", "split"):
        if flags[key] and not flags["data"]:
            raise UsageError(f"--{key.replace('_', '-')} goes with --data FILE")
    named = [part for part in (text or "").split(",") if part.strip()]
    if not named and not flags["data"]:
        raise UsageError("name a benchmark (see `harness benchmarks`), or give a file with --data")
    found = []
    for part in named:
        name, colon, number = part.strip().rpartition(":")
        if not colon or not number.isdigit():
            name, number = part.strip(), ""
        if number and not 1 <= int(number) <= 100_000:
            raise UsageError(f"{part}: the number of samples must be from 1 to 100000")
        found.append((catalogue.load(name), int(number) if number else None))
    if flags["data"]:
        keys = {key: flags[key] for key in ("question_key", "answer_key", "id_key", "split")}
        if not found:
            found = [(card.from_file(flags["data"], **keys), None)]
        elif len(found) > 1:
            raise UsageError("--data goes with one benchmark, or with none")
        elif any(keys[key] for key in ("question_key", "answer_key", "id_key")):
            raise UsageError(
                "--question-key, --answer-key and --id-key are for data without a card: leave out the benchmark"
            )
        else:
            found = [(found[0][0].with_data(flags["data"], flags["split"]), found[0][1])]
    names = [loaded.name for loaded, _ in found]
    if len(set(names)) < len(names):
        raise UsageError(
            f"a benchmark is named twice: {', '.join(sorted(n for n in set(names) if names.count(n) > 1))}"
        )
    return [Asked(loaded.name, number, loaded) for loaded, number in found]


def question_sets(asked: list[Asked], flags: dict[str, Any]) -> list[QuestionSet]:
    from harness.benchmarks import questions

    ids = [part.strip() for part in flags["ids"].split(",") if part.strip()] if flags["ids"] else None
    return [
        questions.build(
            one.card,
            prompt=flags["prompt"],
            system_prompt=flags["system_prompt"],
            limit=flags["limit"],
            ids=ids,
            filters=flags["filters"],
            api=flags["api"],
        )
        for one in asked
    ]


def sampling_of(flags: dict[str, Any], preset: Sampling | None, questions: QuestionSet) -> Sampling:
    """Command line over preset over card over defaults."""
    from pydantic import ValidationError

    from harness.presets import sampling

    given = {name: flags[name] for name in sampling.Sampling.model_fields if flags[name] not in (None, ())}
    try:
        line = sampling.Sampling(**given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0]).replace("_", "-")
        raise UsageError(f"--{name} {first['input']}: {first['msg']}") from error
    return sampling.resolve(line, preset, questions.sampling)
