"""The recorded settings of a run's benchmark: by path, in words, and the differences between two runs.

Reports, comparisons and the viewer get the list of differences from `setting_differences`, so that they agree.

A setting's path leads from a benchmark's record to a value. `identity`, `plan` and `settings` have different fields, so
their names are omitted: `sampling.max_tokens`, `concurrency`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from harness.core.number_text import Prices
from harness.core.sanitize import visible
from harness.runs.manifest import (
    NEUTRAL,
    BenchmarkRecord,
    Difference,
    Provenance,
    changes_of,
    differences,
)

CHECKSUMS = frozenset(
    (
        "prompt_digest",
        "dataset_digest",
        "questions_digest",
        "questions_made.rows_digest",
        "questions_made.dataset_digest",
        "outputs.digest",
    )
)
"""Paths of digests, which are determined by their inputs."""

_WITHOUT_EFFECT = ("api_key_env", "budget_tokens", "budget_usd", "prices", "without_card", "publish_questions")
"""Settings (or their fields) whose values cannot change the replies or their grades."""


def describe_setting(path: str) -> str:
    """The name of a setting for people: its path or, for a sampling value, only the value's own name."""
    return path.removeprefix("sampling.").removeprefix("neutral.")


def may_move_scores(path: str) -> bool:
    """Whether a different value of the setting may change a score."""
    return path.partition(".")[0] not in _WITHOUT_EFFECT


# ---- values in words, and differences


MAX_SETTING_CHARS = 400
"""Longest setting (such as a system prompt) that is shown in full, in characters; a longer one is clipped."""

MAX_SETTING_DEPTH = 6
"""Number of levels of nested settings that have separate paths; deeper levels share one value."""

MAX_LISTED = 12
"""Maximum number of list items shown; the others are counted."""

SAMPLING_FROM = "sampling_from"
"""Part of a run's record that says where each sampling value comes from: options, a preset, the card, the default."""

_ORIGINS = frozenset({SAMPLING_FROM, "chosen_by", "spelt_by"})
"""Parts of a run's record that say where settings came from (two of them in earlier versions); they are not settings.
"""

FITTED = "fitted_max_tokens"
"""Field of an identity: the max_tokens that was sent, if it had to be lowered to fit the server's context."""

BEFORE_FIT = "max_tokens_before_fit"
"""Path of the original max_tokens in a run in which it had to be lowered to fit the server's context."""

_PARTS = {"base_url": "address"}
"""Key of a mapping value → its name for people, if the key is not a word."""

_DIGEST = re.compile("[0-9a-f]{64}")
"""A SHA-256 in hexadecimal; only the first 12 characters of such a value are shown."""

FREE_IN_A_CURVE = ("model", "seed")
"""Fields of an identity that may differ between the steps of a curve: the compared variable and the random seed."""

NAMED_BY = {"prompt_digest": "prompt"}
"""A digest in an identity → the field with the text behind it; if both differ, only the text is shown."""


def settings_by_path(record: BenchmarkRecord) -> dict[str, object]:
    """Plan, identity (as it was sent) and settings of one benchmark's samples by path, without their origins.

    If max_tokens was lowered to fit the server's context, its original value is at `BEFORE_FIT`.
    """
    settings = {name: value for name, value in record.settings.items() if name not in _ORIGINS}
    identity = flat(as_sent(record.identity))
    # `max_tokens` is the number that was sent, here as in a comparison of two runs.
    before = {BEFORE_FIT: flat(record.identity).get("sampling.max_tokens")} if record.identity.get(FITTED) else {}
    return {**describe_plan(record), **identity, **before, **flat(settings)}


def describe_plan(record: BenchmarkRecord) -> dict[str, object]:
    """The plan of one benchmark, with the chosen questions counted."""
    ids = record.plan.question_ids
    return {"samples": record.plan.samples, "questions": "all" if ids is None else f"{len(ids):,} chosen"}


def as_sent(identity: Mapping[str, object]) -> dict[str, object]:
    """The identity of a benchmark's samples, with the max_tokens actually sent (the fitted one if it was lowered)."""
    sent = dict(identity)
    fitted, sampling = sent.pop(FITTED, None), sent.get("sampling")
    if fitted is not None and isinstance(sampling, Mapping):
        sent["sampling"] = {**sampling, "max_tokens": fitted}
    return sent


def max_tokens_sent(record: BenchmarkRecord) -> int | None:
    """The max_tokens sent with a benchmark's requests; None if none was sent or if it is unknown."""
    sent = flat(as_sent(record.identity)).get("sampling.max_tokens")
    return sent if type(sent) is int else None


def recorded_prices(record: BenchmarkRecord) -> Prices | None:
    """The token prices in the record; None if there are none."""
    with contextlib.suppress(msgspec.ValidationError):
        return msgspec.convert(record.settings.get("prices"), Prices)
    return None


def setting_differences(
    first: BenchmarkRecord, second: BenchmarkRecord, servers: Iterable[Provenance] = ()
) -> list[Difference]:
    """The differences between two runs' settings of a benchmark: identity, selection, samples and session settings.

    A max_tokens that was lowered to fit the server's context is compared as it was sent. A sampling value that both
    servers received is not a difference, no matter who set it. Session settings are compared only if both runs recorded
    them, since earlier versions recorded fewer. Checksums among them are left out because they follow from other
    settings; so are settings that cannot change a score, such as prices, or the addresses if the harness started the
    servers of both runs (`servers`). Empty if one of the runs comes from another tool, because its settings are
    unknown.
    """
    if first.imported or second.imported:
        return []
    changed = differences(*_without_equal_sampling(as_sent(first.identity), as_sent(second.identity)))
    fields = {change.field for change in changed}
    changed = [change for change in changed if NAMED_BY.get(change.field) not in fields]
    ids = [None if record.plan.question_ids is None else set(record.plan.question_ids) for record in (first, second)]
    words = [describe_plan(record) for record in (first, second)]
    if ids[0] != ids[1]:
        changed.append(Difference("questions", words[0]["questions"], words[1]["questions"]))
    if first.plan.samples != second.plan.samples:
        changed.append(Difference("samples", words[0]["samples"], words[1]["samples"]))
    both = (first.settings.keys() & second.settings.keys()) - _ORIGINS
    mine, theirs = (
        {name: value for name, value in own.items() if name in both} for own in (first.settings, second.settings)
    )
    if "endpoints" in both:
        started = frozenset[str]().union(*map(_launched_urls, servers))
        endpoints = _without_addresses(mine["endpoints"], started), _without_addresses(theirs["endpoints"], started)
        # If somebody else started one of the servers, only the address distinguishes the two.
        if None not in endpoints:
            mine["endpoints"], theirs["endpoints"] = endpoints
    changed += [
        change
        for change in differences(mine, theirs)
        if not is_checksum(change.field) and may_move_scores(change.field)
    ]
    return [change for change in changed if is_set(change.old) or is_set(change.new)]


def differences_in_curve(step: BenchmarkRecord, reference: BenchmarkRecord) -> list[Difference]:
    """The differences that make two steps of a curve incomparable: in the settings that all samples of a run must
    share, and in the questions.
    """
    fields = {*step.identity, *reference.identity, NEUTRAL, "questions"}.difference(FREE_IN_A_CURVE)
    return [change for change in setting_differences(step, reference) if change.field.partition(".")[0] in fields]


def _launched_urls(servers: Provenance) -> frozenset[str]:
    """Base URLs of the servers that the harness started for the run, whose ports are arbitrary."""
    # Only servers that were started here have a launcher in their facts.
    own = {name for name, facts in servers.servers.items() if "launcher" in facts.host}
    return frozenset(url for session in servers.sessions for url, name in session.endpoints.items() if name in own)


def _without_addresses(endpoints: object, started: Collection[str]) -> list[dict[str, object]] | None:
    """The recorded endpoints without their addresses; None if one is not in `started` or not a mapping."""
    if not isinstance(endpoints, list) or not all(isinstance(endpoint, Mapping) for endpoint in endpoints):
        return None
    if not all(endpoint.get("base_url") in started for endpoint in endpoints):
        return None
    return [{name: value for name, value in endpoint.items() if name != "base_url"} for endpoint in endpoints]


def _without_equal_sampling(*identities: dict[str, object]) -> list[dict[str, object]]:
    """Two identities without the sampling values that both sent.

    A value was sent if the user set it or, as a neutral value, if the harness overrode the server's default.
    """
    parts = [{name: _tree(identity.get(name)) for name in ("sampling", NEUTRAL)} for identity in identities]
    mine, theirs = ({**part[NEUTRAL], **part["sampling"]} for part in parts)
    equal = {name for name in mine.keys() & theirs if not differences({name: mine[name]}, {name: theirs[name]})}
    rest = [
        {part: {name: values[name] for name in values if name not in equal} for part, values in own.items()}
        for own in parts
    ]
    return [identity | own | {NEUTRAL: own[NEUTRAL] or None} for identity, own in zip(identities, rest, strict=True)]


def _tree(value: object) -> Mapping[str, object]:
    """The value if it is a mapping, else an empty one, since a manifest may contain anything."""
    return value if isinstance(value, Mapping) else {}


def server_differences(first: Provenance, second: Provenance) -> list[Difference]:
    """The differences in facts about the model, such as its file, between the first and the second run's servers."""
    changed = changes_of(first, second.servers).model if first.servers else []
    return [change._replace(field=f"server's {change.field}", where="") for change in changed]


def describe_difference(change: Difference) -> str:
    """A line for people, inert: `run seed: 0 → 3`."""
    name = visible(describe_setting(change.field), MAX_SETTING_CHARS)
    return f"{name}: {value_text(change.old)} → {value_text(change.new)}"


def differs(path: str, changed: Sequence[Difference]) -> bool:
    """Whether one of these differences concerns the setting at `path`, a part of it, or a setting that contains it."""
    return any(f"{change.field}.".startswith(f"{path}.") or path.startswith(f"{change.field}.") for change in changed)


def is_checksum(path: str) -> bool:
    """Whether the setting is a digest, which is determined by its inputs."""
    return path in CHECKSUMS


def value_text(value: object) -> str:
    """The value of a setting as people write it, inert and limited in length: `yes`, `32,768`, `not set`, `a; b`."""
    return visible(_text(value), MAX_SETTING_CHARS)


def flat(tree: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """The tree of settings as one mapping, with the names joined by dots."""
    leaves: dict[str, object] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and value and prefix.count(".") < MAX_SETTING_DEPTH:
            leaves.update(flat(value, f"{prefix}{key}."))
        else:
            leaves[f"{prefix}{key}"] = value
    return leaves


def is_set(value: object) -> bool:
    """Whether the value is not None and not empty; 0 and False are set."""
    return value is not None and value != "" and value != [] and value != {}


def _text(value: object) -> str:
    """The value of a setting in words, not yet made inert: `not set`, `yes`, `32,768`."""
    match value:
        case None | "":
            return "not set"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}" if abs(value) < 10**15 else str(value)
        case float():
            return f"{value:,.7g}"  # servers report a 32-bit 0.8 as 0.800000011920929
        case str():
            kind, colon, hexadecimal = value.rpartition(":")
            return f"{kind}{colon}{hexadecimal[:12]}" if _DIGEST.fullmatch(hexadecimal) else value
        case Mapping():
            given = [(str(key), inner) for key, inner in value.items() if is_set(inner)]
            shown = [f"{_PARTS.get(key, key)} {_text(inner)}" for key, inner in given[:MAX_LISTED]]
            return ", ".join(shown) or "none"
        case list() | tuple():
            more = f" and {len(value) - MAX_LISTED} more" if len(value) > MAX_LISTED else ""
            return "; ".join(map(_text, value[:MAX_LISTED])) + more or "none"
    return str(value)
