"""What each setting of a run is called in tables and messages, and who decides it if the run's record does not say so.

A setting's path leads from a benchmark's record to a value: `identity`, `plan` and `settings` hold different fields, so
their names are left out: `sampling.max_tokens`, `concurrency`. The tables are closed: every field that a run writes
stands in `SETTINGS`, or below a field of `OPEN`, whose inner names are a user's, a server's or the API's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

CHECKSUM = "computed: a checksum"
"""Who decides a digest: nobody, it follows from what it was made of."""

SERVER = "server"
"""Who decides a value that the server states."""

DATA = "data"
"""Who decides a value that the file of questions holds."""

OPTIONS = "options"
"""Who decides a value that the user gave."""


class SettingName(NamedTuple):
    """words: the setting's name for people. decided_by: who always decides it; empty if the record says who did.
    moves_scores: whether another value may change the replies or their grades.
    """

    words: str
    decided_by: str = ""
    moves_scores: bool = True


SETTINGS: Mapping[str, SettingName] = {
    # plan
    "samples": SettingName("samples a question"),
    "questions": SettingName("questions (limit, ids, filter)"),
    "question_ids": SettingName("chosen questions"),
    "allocated": SettingName("samples of each question, as allocated", OPTIONS),
    # identity
    "model": SettingName("model"),
    "api": SettingName("API"),
    "fitted_max_tokens": SettingName("max_tokens, lowered to fit the context", SERVER),
    "max_tokens_before_fit": SettingName("max_tokens before it was lowered to fit the context"),
    "seed": SettingName("run seed"),
    "prompt": SettingName("prompt"),
    "prompt_digest": SettingName("digest of the prompt", CHECKSUM),
    "system_prompt": SettingName("system prompt"),
    "dataset_digest": SettingName("digest of the questions", CHECKSUM),
    "prefill": SettingName("beginning of each reply, given to the model"),
    "shard.part": SettingName("part of the questions", OPTIONS),
    "shard.selection": SettingName("digest of the questions of all parts", CHECKSUM),
    "sampling": SettingName("sampling"),
    "chat_template_kwargs": SettingName("arguments of the chat template"),
    "extra_body": SettingName("fields added to the request"),
    "neutral": SettingName("sampling values sent so that the server uses none of its own"),
    "shard": SettingName("part of the questions"),
    # settings of the session
    "endpoints": SettingName("endpoints"),
    "api_key_env": SettingName("environment variable with the key", OPTIONS, moves_scores=False),
    "concurrency": SettingName("requests in flight, at most"),
    "transport": SettingName("client that sends requests"),
    "stream": SettingName("replies come as a stream"),
    "stream_usage": SettingName("tokens counted by the server, in the stream"),
    "max_tokens_field": SettingName("field of a request that bounds its tokens"),
    "seed_field": SettingName("field of a request with the seed"),
    "order": SettingName("order of the requests"),
    "fit_context": SettingName("max_tokens is lowered to fit the context"),
    "accept_missing": SettingName("samples that cannot succeed count as done"),
    "accept_server_change": SettingName("another server may continue the run"),
    "canary": SettingName("stops if the first replies are all bad"),
    "fingerprint": SettingName("greedy replies are stored to know the server by"),
    "budget_tokens": SettingName("budget of a command, in tokens", moves_scores=False),
    "budget_usd": SettingName("budget of a command, in USD", moves_scores=False),
    "prices": SettingName("prices", moves_scores=False),
    "prices.prompt": SettingName("price of a million prompt tokens, in USD", moves_scores=False),
    "prices.completion": SettingName("price of a million completion tokens, in USD", moves_scores=False),
    "requests_per_minute": SettingName("requests a minute, at most"),
    "salvage": SettingName("half-written answers are continued"),
    "batch": SettingName("requests are sent in batches by"),
    "deadlines.connect": SettingName("seconds to connect, at most"),
    "deadlines.first_token": SettingName("seconds to the first token, at most"),
    "deadlines.idle": SettingName("seconds between tokens, at most"),
    "attempts": SettingName("attempts a request, at most"),
    "prefill_marks": SettingName("marks of a prefilled message"),
    "never_succeeds": SettingName("samples that cannot succeed", SERVER),
    "filled_by_server": SettingName("left out, filled by the server", SERVER),
    # settings of the questions
    "card": SettingName("card of the benchmark", OPTIONS),
    "data": SettingName("file of the questions", OPTIONS),
    "without_card": SettingName("questions given in place of a card", OPTIONS, moves_scores=False),
    "publish_questions": SettingName("questions may be published", "card", moves_scores=False),
    "asked_with.limit": SettingName("questions, only the first", OPTIONS),
    "asked_with.filter": SettingName("questions, only those with", OPTIONS),
    "asked_with.question_key": SettingName("column of the question", OPTIONS),
    "asked_with.answer_key": SettingName("column of the reference answer", OPTIONS),
    "asked_with.id_key": SettingName("column of the id", OPTIONS),
    "asked_with.choices_key": SettingName("columns of the options", OPTIONS),
    "asked_with.split": SettingName("split of the data", OPTIONS),
    "asked_with.data_config": SettingName("configuration of the data", OPTIONS),
    "selected": SettingName("questions of all parts", OPTIONS),
    "questions_digest": SettingName("digest of the stored questions", CHECKSUM),
    "questions_made.recipe": SettingName("digest of data, card, prompt and selection", CHECKSUM),
    "questions_made.file": SettingName("SHA-256 of questions.jsonl in the run folder", CHECKSUM),
    "questions_made.n_all": SettingName("questions in the data", DATA),
    "questions_made.rows_digest": SettingName("digest of the rows", CHECKSUM),
    "questions_made.dataset_digest": SettingName("digest of the questions, as first stored", CHECKSUM),
    "questions_made.origin": SettingName("name of the data", DATA),
    "questions_made.notes": SettingName("notes on the data", DATA),
    # outputs of another tool
    "outputs.digest": SettingName("digest of the outputs", CHECKSUM),
    # who decided; `decided_by` reads them, and a table has no row for them
    "sampling_from": SettingName("who decided the sampling"),
    "chosen_by": SettingName("who decided the other settings"),
    "spelt_by": SettingName("who decided the wording of requests"),
}
"""Path of a setting → its name."""

OPEN: Mapping[str, SettingName] = {
    "sampling": SettingName(""),
    "neutral": SettingName("", "harness: keeps the server's own default out"),
    "chat_template_kwargs": SettingName("chat template:"),
    "extra_body": SettingName("field added to the request:"),
    "prefill_marks": SettingName("mark of a prefilled message:", SERVER),
    "never_succeeds": SettingName("samples that cannot succeed: question", SERVER),
    "outputs.read": SettingName("outputs read with", OPTIONS),
}
"""Path of a field whose inner names are not the harness's → the words before an inner name, which stays as it is."""

FACTS: Mapping[str, str] = {
    "python": "Python",
    "system": "operating system",
    "server": "name of the server",
    "server_model": "model, as the server names it",
    "commands": "commands of the server",
    "source": "weights were loaded from",
    "xllamacpp": "version of xllamacpp",
    "bytes": "size in bytes",
    "model_path": "path of the weights",
    "chat_template": "chat template",
    "owned_by": "owner, as the server names it",
    "canonical_slug": "name at the provider",
    "root": "model that it was made of",
    "files.weights": "digest of the names and sizes of the weights",
    "files.weights_sample": "digest of parts of the weights",
    "files.weights_sha256": "digest of the weights",
}
"""Fact of a server or machine → its name for people, if its own name is not a word."""

OPEN_FACTS: Mapping[str, str] = {
    "sampling_defaults": "sampling default:",
    "flags": "flag:",
    "files": "digest of",
}
"""Beginning of a fact's name → the words before the rest."""


def in_words(path: str) -> str:
    """The name of a setting for people; a path that no table holds, as of a newer run, stays as it is."""
    named = SETTINGS.get(path)
    if named is not None:
        return named.words
    opened, inner = _open_name(path)
    return f"{opened.words} {inner}".lstrip() if opened is not None else path


def fact_in_words(name: str) -> str:
    """The name of a fact about a server or a machine for people: `flags.dtype` is `flag: dtype`."""
    group, dot, rest = name.partition(".")
    if name in FACTS:
        return FACTS[name]
    return f"{OPEN_FACTS[group]} {rest}" if dot and group in OPEN_FACTS else name.replace("_", " ")


def always_decided_by(path: str) -> str:
    """Who decides a setting in every run; empty if the run's record says who did."""
    named = SETTINGS.get(path) or _open_name(path)[0]
    return "" if named is None else named.decided_by


def may_move_scores(path: str) -> bool:
    """Whether another value of the setting may change a score; True for a path that no table holds."""
    named = SETTINGS.get(path)
    return named is None or named.moves_scores


def _open_name(path: str) -> tuple[SettingName | None, str]:
    """(the field of `OPEN` that holds the path, the inner name); (None, the path) if none does."""
    for field, name in OPEN.items():
        if path.startswith(f"{field}."):
            return name, path[len(field) + 1 :]
    return None, path
