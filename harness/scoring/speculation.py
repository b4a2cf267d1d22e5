"""Acceptance of speculative decoding by the replies' own counts, with an interval, and two runs beside each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from harness.scoring.engine_figures import EngineFigures
from harness.scoring.stats import Array, between, t_factor


class Speculation(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens a step over the replies that count both.

    length: tokens by steps. error: one standard error, with questions as clusters: other questions of this kind; low,
    high: 95 %. None for a single question. It holds within a run; between runs of one server more differs (`repeat`).
    """

    length: float
    error: float | None
    low: float | None
    high: float | None
    steps: int
    n_questions: int


def speculation(tokens: Array, steps: Array, questions: Sequence[str]) -> Speculation | None:
    """The ratio of sums over questions, and its error as `stats.between` has it. None without any step.

    tokens, steps: of each reply, NaN if unstated. questions: the id of each.
    """
    stated = ~np.isnan(tokens) & ~np.isnan(steps) & (steps > 0)
    if not stated.any():
        return None
    _, index = np.unique(np.asarray(questions, dtype=object)[stated].astype(str), return_inverse=True)
    of_tokens, of_steps = (np.bincount(index, each[stated]) for each in (tokens, steps))
    n, total = len(of_steps), float(of_steps.sum())
    length, error, reach = float(of_tokens.sum()) / total, None, None
    if n > 1:
        spread = between(of_tokens / of_steps, weights=of_steps.astype(float))
        error = math.sqrt(float(spread.variance))
        reach = t_factor(spread.freedom) * error
    return Speculation(
        length=length, error=error, low=None if reach is None else length - reach,
        high=None if reach is None else length + reach, steps=round(total), n_questions=n,
    )  # fmt: skip


Side = tuple[EngineFigures | msgspec.UnsetType, Speculation | msgspec.UnsetType]
"""The engine's figures of a score, and the steps that its replies count."""


def beside(before: Side, after: Side) -> list[str]:
    """Sentences on the acceptance length and the tokens a second of a run beside its baseline's: their ratio, with its
    95 % interval where replies have counts, as though both asked other questions; empty where none is known.
    """
    (old, old_steps), (new, new_steps) = before, after
    if not old or not new:
        return []
    if old.concurrency != new.concurrency:
        load = f"up to {new.concurrency} requests in flight, baseline {old.concurrency}"
        return [f"the engines' figures are not compared, since the load differs ({load})"]
    sentences = []
    if old_steps and new_steps and old_steps.error is not None and new_steps.error is not None:
        ratio = new_steps.length / old_steps.length
        error = math.hypot(new_steps.error / new_steps.length, old_steps.error / old_steps.length)
        reach = t_factor(min(old_steps.n_questions, new_steps.n_questions) - 1) * error
        ends = f"{ratio * math.exp(-reach):.3f} to {ratio * math.exp(reach):.3f} for other questions"
        lengths = f"{new_steps.length:.3f}, baseline {old_steps.length:.3f}"
        sentences.append(f"acceptance length {lengths}: ratio {ratio:.3f} ({ends}; runs of one server differ by more)")
    pairs = [("tokens/s at full load", old.client_tokens_per_s, new.client_tokens_per_s)]
    if not sentences and old.own and new.own:
        pairs.append(("acceptance length", old.acceptance_length, new.acceptance_length))
    elif not sentences and old.acceptance_length and new.acceptance_length:
        sentences.append("acceptance by the pages is not compared: others used a server, or a part is missing")
    for name, first, second in pairs:
        if first and second is not None:
            values = f"{name} {second:.4g}, baseline {first:.4g}"
            sentences.append(f"{values}: ratio {second / first:.3f}; its spread within a run is unknown")
    return sentences
