"""Which names on an engine's metrics page give which quantity. Values only.

    quantity                              on the page
    tokens                                generated tokens
    drafts, drafted, accepted             steps with a draft; tokens that drafts proposed; of these, the accepted
    verified                              steps of requests with speculative decoding, in an engine without `drafts`
    hits, queries; misses                 prompt tokens in the prefix cache, and of all; or of those not in it
    preempted                             requests put back for want of memory
    first_token_s, first_token_n          sum and number of the times to first token
    gap_s, gap_n                          sum and number of the times between tokens (comparable within one engine only)
    running, waiting, kv_cache            gauges: requests, requests, and the share of the cache in use

Left out on purpose: gauges of a last interval, such as `sglang:spec_accept_length`, and llama.cpp's gauges of speed,
which each reader resets. A page names an engine by the prefix of its names; what a server claims elsewhere is not used.
"""

from __future__ import annotations

import msgspec


class MetricNames(msgspec.Struct, frozen=True):
    """The names of one engine. prefix: of its names on a page, without `:`. names: quantity → its names without prefix
    and `_total`, the newest first: the first that a page has counts. appearing: counters that a page lacks until they
    first move. source: where the engine defines them.
    """

    prefix: str
    names: dict[str, tuple[str, ...]]
    source: str
    appearing: frozenset[str] = frozenset()


def _histogram(quantity: str, *names: str) -> dict[str, tuple[str, ...]]:
    """The sum and the number of the values of a histogram."""
    return {
        f"{quantity}_s": tuple(f"{name}_sum" for name in names),
        f"{quantity}_n": tuple(f"{name}_count" for name in names),
    }


FIRST_TOKEN = _histogram("first_token", "time_to_first_token_seconds")
GAP = _histogram("gap", "inter_token_latency_seconds", "time_per_output_token_seconds")

ENGINES = (
    MetricNames(
        "vllm",
        {
            "tokens": ("generation_tokens",),
            "drafts": ("spec_decode_num_drafts",),
            "drafted": ("spec_decode_num_draft_tokens",),
            "accepted": ("spec_decode_num_accepted_tokens",),
            "hits": ("prefix_cache_hits", "gpu_prefix_cache_hits"),
            "queries": ("prefix_cache_queries", "gpu_prefix_cache_queries"),
            "preempted": ("num_preemptions",),
            "running": ("num_requests_running",),
            "waiting": ("num_requests_waiting",),
            "kv_cache": ("kv_cache_usage_perc", "gpu_cache_usage_perc"),
            **FIRST_TOKEN,
            **GAP,
        },
        "vllm/v1/metrics/loggers.py and vllm/v1/spec_decode/metrics.py, 0.7.3 to 0.33",
    ),
    MetricNames(
        "sglang",
        {
            "tokens": ("generation_tokens",),
            "verified": ("spec_verify_calls",),
            "hits": ("cached_tokens",),
            "queries": ("prompt_tokens",),
            "preempted": ("num_retracted_requests",),
            "running": ("num_running_reqs",),
            "waiting": ("num_queue_reqs",),
            "kv_cache": ("token_usage",),
            **FIRST_TOKEN,
            **GAP,
        },
        "sglang/srt/observability/metrics_collector.py, 0.4.0 to 0.5.23",
        appearing=frozenset({"hits"}),
    ),
    MetricNames(
        "llamacpp",
        {
            "tokens": ("tokens_predicted",),
            "drafts": ("spec_decode_num_drafts",),
            "drafted": ("spec_decode_num_draft_tokens",),
            "accepted": ("spec_decode_num_accepted_tokens",),
            "hits": ("prompt_tokens_cached",),
            "misses": ("prompt_tokens",),
            "running": ("requests_processing",),
            "waiting": ("requests_deferred",),
            "kv_cache": ("kv_cache_usage_ratio",),
        },
        "tools/server, 2024 to October 2026",
    ),
    MetricNames(
        "tgi",
        {"tokens": ("request_generated_tokens_sum",), "waiting": ("queue_size",)},
        "the page on metrics of its documentation, 2.x and 3.x",
    ),
)
"""All engines whose pages are read."""

BY_PREFIX = {engine.prefix: engine for engine in ENGINES}

GAUGES = frozenset({"running", "waiting", "kv_cache"})
"""The quantities that do not count up."""
