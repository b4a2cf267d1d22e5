"""Warnings before the first request of a run: questions that will be hard to grade or that the run already contains,
and settings that are allowed but rarely intended. Nothing is rejected here.

`harness doctor` checks question files the same way.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from harness.benchmarks.questions import QuestionSet
from harness.benchmarks.sources.images import shared_folder
from harness.client.facts.server_info import ServerInfo
from harness.core.errors import StoreError, UsageError
from harness.core.images import unusual_traits
from harness.core.number_text import count_noun
from harness.core.records import GradeRules, Question
from harness.core.sanitize import visible
from harness.generation.context import fitted_max_tokens
from harness.generation.settings import RunSettings
from harness.options.run import RunOptions
from harness.preparing.servers import ReachedServers
from harness.presets import preset as presets
from harness.progress.events import Watcher
from harness.runs import Manifest, RunFolder, questions
from reasoning_answers.host import with_stated_answers


def question_warnings(sets: Sequence[QuestionSet], folder: RunFolder, *, judged: bool) -> Iterator[str]:
    """Yield each warning about the questions of a run in `folder`. judged: whether a judge will score the run."""
    if not judged:
        yield from warnings_without_a_judge(sets)
    yield from unusual_images(sets)
    yield from _ungradable(sets)
    yield from _renamed_benchmarks(sets, folder)


def unusual_images(sets: Sequence[QuestionSet]) -> Iterator[str]:
    """Yield a warning for each kind of image that servers may treat differently. The bytes are sent unchanged."""
    owners = {image.sha256: item for one in sets for item in one.questions for image in item.images}
    folder, by_mark = shared_folder(), dict[str, list[Question]]()
    for name, question in owners.items():
        for mark in unusual_traits(folder.head(name)):
            by_mark.setdefault(mark, []).append(question)
    for mark, of in by_mark.items():
        first = visible(of[0].question_id, 60)
        yield (
            f"{count_noun(len(of), 'image')} of {len(owners)}, such as in question {first}, {mark}; servers may "
            "reject, scale or turn such images differently. They are sent unchanged"
        )


MAX_READ = 1000
"""Number of references per file that are checked before the first request."""


_PLAIN = re.compile(r"\s*-?\d+(?:\.\d+)?\s*")
"""References that the rules can certainly read, so that the grader need not be imported for them: numbers in digits."""


_SIGN = re.compile(r"\W*")
"""References without a letter or a digit, such as × in a true-or-false question, with nothing next to the answer."""


_LONG = 9
"""Length of the shortest reference that can be a sentence."""


_FORMULA = re.compile(r"[\d\\$^=<>+_]")
"""A character that does not occur in a sentence."""


_CHINESE = re.compile(r"[\u3400-\u9fff]")


_WORDED = frozenset({"text", "expression", "multiple"})
"""Kinds of answer whose references may be sentences."""


def warnings_without_a_judge(sets: Sequence[QuestionSet]) -> Iterator[str]:
    """Yield a warning for each benchmark with references that the rules cannot compare but a judge could."""
    for name in (each.name for each in sets if each.questions[0].rules.judge):
        yield f"{visible(name, 80)} needs a judge, according to its card; specify one when you run or score (`judge`)"
    yield from sentence_warnings(sets)
    yield from _unread(sets)


def _unread(sets: Sequence[QuestionSet]) -> Iterator[str]:
    """Yield a warning for each file of the user's questions with references that no rule reads.

    This is the check that `harness doctor` makes of a file's first `MAX_READ` questions.
    """
    for question_set in sets:
        if question_set.given_data is None:  # the references of our own cards are tested
            continue
        first = list(islice(question_set.questions, MAX_READ))
        unread = [reference for item in first if (reference := _unread_reference(item)) is not None]
        if unread:
            looked = "" if len(first) == len(question_set.questions) else "the first "
            yield (
                f"{visible(question_set.name, 80)}: no rule can parse the reference answer for {len(unread):,} of "
                f"{looked}{count_noun(len(first), 'question')}, such as “{visible(unread[0], 100)}”. Replies that do "
                "not repeat it remain undecided. Put only the answer into the answer column, or specify the column "
                "that contains it (`answer_key`)"
            )


def _unread_reference(question: Question) -> str | None:
    """The question's reference if the rules must compare it but cannot read it, else None."""
    reference = next(iter(with_stated_answers(question).references), "")
    by_rules = question.rules.is_built_in and question.kind not in ("choice", "text", "calls")
    if not by_rules or _PLAIN.fullmatch(reference):
        return None
    from reasoning_answers.host import is_unread  # Imported late: most references are numbers.

    return reference if is_unread(reference) and not is_sign(reference) else None


def is_sign(reference: str) -> bool:
    """Whether a reference has no letter and no digit, so that it can contain nothing but the answer."""
    return _SIGN.fullmatch(reference) is not None


def sentence_warnings(sets: Sequence[QuestionSet]) -> Iterator[str]:
    """Yield a warning for each benchmark whose references are mostly sentences, which the rules can rarely grade."""
    for question_set in sets:
        questions_as_graded = map(with_stated_answers, question_set.questions)
        graded = [item for item in questions_as_graded if item.kind in _WORDED and item.rules.is_built_in]
        long = [item for item in graded if item.references and all(len(text) >= _LONG for text in item.references)]
        sentences = [item for item in long if all(map(_is_sentence, item.references))]
        if 2 * len(sentences) > len(question_set.questions):
            n_questions = count_noun(len(question_set.questions), "question")
            yield (
                f"{visible(question_set.name, 80)}: the answers of {len(sentences)} of {n_questions} are sentences. "
                "The rules accept only a reply that repeats the answer, and leave all other replies undecided. A judge "
                "can grade these replies; specify one when you run or score (`judge`)"
            )


def _is_sentence(text: str) -> bool:
    """Whether `text` is five or more words without a digit or a formula, or ten or more Chinese characters."""
    if _FORMULA.search(text) is not None:
        return False
    return len(_CHINESE.findall(text)) >= 10 or len(text.split()) >= 5


def _ungradable(sets: Sequence[QuestionSet]) -> Iterator[str]:
    """Yield a warning for each kind of answer, such as programs, that this machine cannot currently grade.

    These answers are graded by another package (`harness.grading.external_graders`) in a sandbox that may be missing
    here.
    """
    # Grader → a benchmark that it grades. All questions of a benchmark have the same grader, so only the first question
    # is checked. If several benchmarks share a grader, the first is named, so it comes last here.
    graders = {item.rules.grader: of.name for of in reversed(sets) for item in of.questions[:1]}
    graders.pop(GradeRules().grader, None)
    if not graders:
        return
    # Imported late: few runs have such answers.
    from harness.grading.external_graders import Decider, is_elsewhere, require_package

    for grader, benchmark in graders.items():
        if not is_elsewhere(grader):  # a verifier: a Python function, which needs no sandbox
            continue
        # One worker with the default sandbox: when asked for its name, the decider tries it, and raises an error if it
        # fails.
        with contextlib.closing(Decider(require_package(grader), 1, None)) as decider:
            try:
                _ = decider.name
            except UsageError as error:
                yield (
                    f"{visible(benchmark, 80)} cannot be scored here yet: {error.sentence}. The run continues; score "
                    f"it on another machine, or run `harness score` with --sandbox docker:IMAGE"
                )


def _renamed_benchmarks(sets: Sequence[QuestionSet], folder: RunFolder) -> Iterator[str]:
    """Yield a warning for each new benchmark in the run whose prompts were all answered under another name, and for
    each other user file that joins the run's benchmarks.
    """
    records = Manifest.load(folder).benchmarks if folder.manifest.is_file() else {}
    new = {of.name: of for of in sets if of.name not in records}
    for name in records if new else ():
        held = folder.benchmark(name)
        if not (held.samples.is_file() and held.samples.stat().st_size and held.questions.is_file()):
            continue
        stored: set[str] = set()
        with contextlib.suppress(StoreError):  # a damaged file of another benchmark does not concern this command
            stored = {question.prompt_digest for question in questions.iterate(held)}
        for of in new.values():
            if not all(question.prompt_digest in stored for question in of.questions):
                if of.without_card:
                    yield (
                        f"{visible(of.name, 80)} will be added as a separate benchmark to the run in "
                        f"{visible(str(folder.path))}, which already has samples for {visible(name, 80)}; to keep them "
                        "apart, use another folder (`out`)"
                    )
                continue
            each = "the question" if len(of.questions) == 1 else f"all {len(of.questions)} questions"
            yield (
                f"{visible(str(folder.path))} already contains replies to {each} of {visible(of.name, 80)}, under the "
                f"benchmark {visible(name, 80)}; this run requests new replies. To grade the existing replies with "
                f"{visible(of.name, 80)}, {questions.grading_anew(held, of.given_data or of.card_file or of.name)}"
            )


USUAL = {"temperature": (0.0, 2.0), "top_p": (0.1, 1.0), "repetition_penalty": (0.5, 2.0)}
"""Sampling field → the range (low, high) outside which a value is more likely a typo than intended."""


def warn_of_settings(
    settings: RunSettings,
    sets: Sequence[QuestionSet],
    options: RunOptions,
    reached: ReachedServers,
    info: ServerInfo,
    watcher: Watcher,
) -> None:
    """Warn about effects of the run's settings, about fields that the provider ignores (none is omitted silently; only
    the user does that, with `drop`), and about settings that the model's card advises against.
    """
    sent = (settings.template(name).names(seed=settings.seed is not None) for name in settings.benchmarks)
    ignored = (reached.provider.warnings(settings.model, n, options.thinking, settings.spelling.api_name) for n in sent)
    for warning in dict.fromkeys(chain.from_iterable(ignored)):
        watcher.warn(warning)
    preset = presets.for_model(settings.model)
    for question_set in sets:
        name = question_set.name
        benchmark = settings.benchmarks[name]
        n = benchmark.samples
        for field, (low, high) in USUAL.items():
            value = getattr(benchmark.sampling, field)
            if value is not None and not low <= value <= high:
                watcher.advise(f"{name}: {field} is {value:g}; the usual range is {low:g} to {high:g}")
        if benchmark.sampling.temperature == 0 and n > 1:
            watcher.advise(f"{name}: {n} samples at temperature 0 are all the same on most servers")
        if settings.seed is None and n > 1:
            watcher.advise(f"{name}: without seeds, a server that caches replies may return the same reply {n} times")
        if preset is not None and question_set.questions:
            for sentence in preset.contradictions(_profile(settings, options, question_set, info)):
                watcher.advise(f"{name}: {sentence}")


def _profile(
    settings: RunSettings, options: RunOptions, question_set: QuestionSet, info: ServerInfo
) -> presets.RunProfile:
    """Return the settings of one benchmark as the `RunProfile` that a preset's rules, from a model's card, check."""
    name, context = question_set.name, min(info.contexts) if info.contexts else None
    sampling = settings.benchmarks[name].sampling
    if context is not None and settings.may_lower(name):
        fitted = fitted_max_tokens(name, question_set.selection, sampling.max_tokens, context, fit=True)
        sampling = sampling.replace(max_tokens=fitted)
    return presets.RunProfile(
        sampling=sampling,
        system_prompt=question_set.system_prompt,
        templated=settings.spelling.api.templated,
        context=context,
        # Fields added by the user may switch thinking on or off, under any name used by the chat template.
        thinking=options.thinking or ("by hand" if options.extra_body else None),
    )
