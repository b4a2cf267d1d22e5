"""Continues half-written answers: when that is exact, how the request is written, and how both parts are joined.

Sampling has no memory except the tokens: the text after n tokens has the same distribution whether they were written a
moment or a day ago. So a continuation is exact if the model gets the same token ids that it wrote and the rest of the
request is unchanged. Only the seed differs, because the old seed would repeat the random numbers that chose the first
part. If the server has not reported the ids, or if anything else is doubtful, the sample is requested from scratch. No
I/O except through the tokenizer that the caller passes in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import msgspec

from harness.client.apis.api import API
from harness.client.apis.completions import COMPLETIONS
from harness.client.facts.tokens import THINK_END
from harness.client.protocol.reply import Reply, SoFar
from harness.client.request_fields import RequestTemplate
from harness.core.codec import sample_seed
from harness.core.literals import SalvageMode
from harness.core.records import Question, Seam, Timing, Usage
from harness.core.reply_notes import ending
from harness.generation.network.partial_replies import Partial
from harness.generation.settings import Salvage
from harness.presets.sampling import ContinuationRule, sampling_fields

WORTH_TOKENS = 16
"""Smallest written part, in tokens, that makes the requests of a continuation worthwhile."""


_PASSED_ON = frozenset(
    {
        *(name for name, field in sampling_fields().items() if field.continued == "same"),
        *("typical_p", "top_n_sigma", "logit_bias", "ignore_eos"),
        *("cache_prompt", "priority", "skip_special_tokens"),
    }
)
"""Fields of an extra body that have the same meaning in a continuation."""

_OF_THE_CHAT = frozenset({"separate_reasoning", "stream_reasoning", "include_reasoning", "reasoning_format"})
"""Fields of an extra body that split a chat reply into reasoning and answer; a continuation is sent without them."""


_OBJECTIONS: Mapping[ContinuationRule, str] = {
    "counts": "the field {} counts the tokens already generated",
    "servers differ": "servers differ in how {} treats the text already generated",
    "at the seam": "a {} sequence may begin in the text already generated and end in the new text",
}
"""Value of `continued` in a sampling field's declaration → why that field prevents the continuation of a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """A request that continues `part`, after the token ids of its prompt and text. seam: the point where it starts."""

    part: Partial
    api: API
    body: bytes
    seam: Seam


class WrittenAnew(Exception):
    """The written part of a sample cannot be continued: it is dropped, and the whole sample is requested again.

    The message states the reason.
    """


def objection(template: RequestTemplate, mode: SalvageMode) -> str:
    """Why a half-written answer to these requests cannot be continued exactly; empty if it can."""
    if mode == "off":
        return "continuation is turned off"
    spelling, sampling = template.spelling, template.sampling
    if not spelling.api.states_ids:
        return f"api={spelling.api_name} reports no token ids"
    if not spelling.stream:
        return "replies are not streamed, so no partial reply is ever stored"
    if foreign := sorted(spelling.extra_body.keys() - _PASSED_ON - _OF_THE_CHAT):
        return f"the field {foreign[0]} may have a different meaning in a continuation"
    for name, field in sampling_fields().items():
        if (value := sampling.get(name)) and value != field.neutral and field.continued in _OBJECTIONS:
            return _OBJECTIONS[field.continued].format(name)
    return ""


def continuation(
    part: Partial,
    question: Question,
    template: RequestTemplate,
    salvage: Salvage,
    tokens_of: Callable[[str], list[int]],
    *,
    seed: int | None,
) -> Continuation:
    """Return the request that continues `part`. Blocking, since it may ask the server's tokenizer.

    template: template of the whole request. tokens_of: the server's tokenizer. seed: seed of the sample's first
    request. Raises `WrittenAnew` if the part cannot be continued, and `ServerError` if the tokenizer does not answer.
    """
    if (why := objection(template, salvage.mode)) or part.tokens < WORTH_TOKENS:
        raise WrittenAnew(why or f"only {part.tokens} tokens")
    if part.engine != salvage.engine:
        raise WrittenAnew(f"a different engine started it ({part.engine or 'unknown'})")
    if not part.ids or not part.prompt_ids:
        raise WrittenAnew("its token ids are unknown")
    if is_open(part):
        part = _with_reasoning_closed(part, tokens_of)
    seam = Seam(tokens=len(part.ids), text=len(part.text or ""), reasoning=len(part.reasoning or ""), exact=True)
    n_left = None if template.max_tokens is None else template.max_tokens - seam.tokens
    if n_left is not None and n_left < 1:
        raise WrittenAnew("the text already generated has used up `max_tokens`")
    by_ids = _by_token_ids(template, salvage)
    # The old seed would repeat the random draws of the written part.
    next_seed = None if seed is None else sample_seed(seed, f"{question.question_id}\0from {seam.tokens}", seam.text)
    body = by_ids.body_after_tokens([*part.prompt_ids, *part.ids], next_seed, n_left)
    return Continuation(part=part, api=by_ids.spelling.api, body=body, seam=seam)


def _by_token_ids(template: RequestTemplate, salvage: Salvage) -> RequestTemplate:
    """The template of the same requests with the prompt as token ids, which only the completions API accepts."""
    spelling = template.spelling
    body = {name: value for name, value in spelling.extra_body.items() if name not in _OF_THE_CHAT}
    spelling = replace(spelling.for_api(COMPLETIONS), token_ids=salvage.states_ids(COMPLETIONS.name), extra_body=body)
    return replace(template, spelling=spelling)


def _with_reasoning_closed(part: Partial, tokens_of: Callable[[str], list[int]]) -> Partial:
    """Return `part`, with an empty text instead of None if its token ids contain the token that ends the reasoning.

    With a text, even an empty one, the reasoning counts as closed (`is_open` is false). part: a reply that broke off
    before any text of its answer. Raises `WrittenAnew` if the model ends its reasoning with more than one token.
    """
    tag = tokens_of(THINK_END)
    if len(tag) != 1:
        raise WrittenAnew(f"{THINK_END}, which ends the reasoning, is not a single token in this model's vocabulary")
    return msgspec.structs.replace(part, text="") if tag[0] in part.ids else part


# ---- what the parts add up to


def is_open(part: Partial) -> bool:
    """Whether the beginning ends inside its reasoning. Closed reasoning is followed by a text, which may be empty."""
    return part.reasoning is not None and part.text is None


def join(part: Partial, more: str | None) -> tuple[str | None, str | None]:
    """(text, reasoning) after `more`, which arrived as plain text: open reasoning ends at its closing tag."""
    if not is_open(part):
        return (part.text if more is None else (part.text or "") + more), part.reasoning
    head, tag, tail = (more or "").partition(THINK_END)
    return (tail if tag else part.text), (part.reasoning or "") + head


def joined_reply(onward: Continuation, reply: Reply) -> Reply:
    """The written part and the reply to its continuation, as one reply. Raises `WrittenAnew` if in doubt.

    A server that counted a different number of prompt tokens than were sent has answered something else. An answer that
    ends by itself inside its reasoning may have used an unknown closing tag.
    """
    part, stated, n_prompt = onward.part, reply.usage, len(onward.part.prompt_ids)
    n_sent = n_prompt + len(part.ids)
    if stated.prompt_tokens not in (None, n_sent):
        raise WrittenAnew(f"{n_sent} prompt tokens were sent, but the server counted {stated.prompt_tokens}")
    text, reasoning = join(part, reply.text)
    if is_open(part) and THINK_END not in (reply.text or "") and ending(reply.finish_reason) != "cut":
        raise WrittenAnew(f"the reply ends in the middle of its reasoning, without {THINK_END}")
    new = stated.completion_tokens
    n_tokens = None if new is None else onward.seam.tokens + new
    usage = Usage(prompt_tokens=n_prompt, completion_tokens=n_tokens)
    return join_replies([reply], text=text, reasoning=reasoning, usage=usage)


def written_so_far(onward: Continuation | None, request: str, engine: str, now: SoFar) -> Partial:
    """Return the part of a sample written so far, including by earlier requests.

    onward: the continuation whose reply is arriving; None if it is the reply to a whole request. request: digest of the
    sample's first request. now: what has arrived of the current reply.
    """
    n_tokens, ids = len(now.ids) if now.ids else now.n_events, now.ids or ()
    if onward is None:
        return Partial(
            request=request,
            engine=engine,
            server_model=now.server_model,
            reasoning=now.reasoning,
            text=now.text if now.reasoning is None else now.text or None,  # A chat stream begins with an empty text.
            tokens=n_tokens,
            ids=ids,
            prompt_ids=now.prompt_ids or (),
        )
    part = onward.part
    text, reasoning = join(part, now.text)
    return msgspec.structs.replace(
        part,
        server_model=now.server_model or part.server_model,
        text=text,
        reasoning=reasoning,
        tokens=onward.seam.tokens + n_tokens,
        ids=[*part.ids, *ids] if ids else (),
        seams=(*part.seams, onward.seam),
        failures=0.0,
    )


def join_replies(replies: Sequence[Reply], **own: Any) -> Reply:
    """The replies to the requests of one sample (steps with a tool, or continuations), in their order, as one.

    own: fields that the caller has joined. Every other field of a reply, its usage and its timing has a rule in
    `_RULES`; a field without a rule makes every join fail.
    """
    reply: Reply = msgspec.structs.replace(_by_rules(replies), **own)
    return reply


def _by_rules(parts: Sequence[Any]) -> Any:
    """The replies, usages or timings as one, each field by its rule."""
    names = parts[0].__struct_fields__
    return type(parts[0])(**{name: _RULES[name]([getattr(part, name) for part in parts]) for name in names})


def _sum(counts: Sequence[Any]) -> Any:
    """The sum of the parts' reported counts. If any is missing: unset if any is unset, otherwise None."""
    unstated = [count for count in counts if not isinstance(count, int)]
    return sum(counts) if not unstated else msgspec.UNSET if msgspec.UNSET in unstated else None


def _join_timings(timings: Sequence[Timing]) -> Timing:
    """The time from the first request to the last byte. Gaps between tokens are known only for a single request."""
    last, span = timings[-1], timings[-1].started - timings[0].started
    ends = {"total": span + last.total, "last_token": span + (last.last_token or last.total)}
    return msgspec.structs.replace(_by_rules(timings), **ends) if len(timings) > 1 else last


_RULES: dict[str, Callable[[Sequence[Any]], Any]] = {
    **dict.fromkeys(("text", "reasoning", "refusal", "finish_reason", "calls", "carry", "server_model", "fingerprint",
                     "request_id", "provider", "stated_total", "echo", "last_token", "total"), itemgetter(-1)),
    **dict.fromkeys(Usage.__struct_fields__, _sum),
    **dict.fromkeys(("usage", "stated"), _by_rules),
    **dict.fromkeys(("started", "queued", "first_token", "clock", "late", "lag"), itemgetter(0)),
    **dict.fromkeys(("gap_p50", "gap_p99", "stamps"), lambda each: each[0] if len(each) == 1 else None),
    "gaps": lambda each: each[0] if len(each) == 1 else msgspec.UNSET,
    "timing": _join_timings,
    "events": sum,
    "notes": lambda notes: tuple(dict.fromkeys(note for each in notes for note in each)),
}  # fmt: skip
