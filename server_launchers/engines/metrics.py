"""The names of each quantity on an engine's metrics page. Values only.

    quantity                              on the page
    tokens                                generated tokens
    drafts, drafted, accepted             steps with a draft; tokens that drafts proposed; of these, the accepted
    verified                              steps of requests with speculative decoding, in an engine without `drafts`
    hits, queries; misses                 prompt tokens in the prefix cache, and of all; or of those not in it
    preempted                             requests preempted because memory ran out
    first_token_s, first_token_n          sum and number of the times to first token
    gap_s, gap_n                          sum and number of the times between tokens (comparable within one engine only)
    running, waiting, kv_cache            gauges: requests, requests, and the share of the cache in use

Deliberately omitted: gauges of the last interval, such as `sglang:spec_accept_length`, and llama.cpp's speed gauges,
which each reader resets. The engine is identified by the prefix of the names on a page; other claims of a server are
not used. Sources: v1/metrics/loggers.py and v1/spec_decode/metrics.py of vLLM (0.7.3 to 0.33),
observability/metrics_collector.py of SGLang (0.4.0 to 0.5.23), tools/server of llama.cpp (2024 to October 2026), the
documentation of TGI (2.x and 3.x).
"""

from __future__ import annotations

from collections.abc import Mapping

VLLM = {
    "tokens": "generation_tokens",
    "drafts": "spec_decode_num_drafts",
    "drafted": "spec_decode_num_draft_tokens",
    "accepted": "spec_decode_num_accepted_tokens",
    "hits": "prefix_cache_hits gpu_prefix_cache_hits",
    "queries": "prefix_cache_queries gpu_prefix_cache_queries",
    "preempted": "num_preemptions",
    "running": "num_requests_running",
    "waiting": "num_requests_waiting",
    "kv_cache": "kv_cache_usage_perc gpu_cache_usage_perc",
    "first_token_s": "time_to_first_token_seconds_sum",
    "first_token_n": "time_to_first_token_seconds_count",
    "gap_s": "inter_token_latency_seconds_sum time_per_output_token_seconds_sum",
    "gap_n": "inter_token_latency_seconds_count time_per_output_token_seconds_count",
}
SGLANG = {
    **{quantity: VLLM[quantity] for quantity in ("tokens", "first_token_s", "first_token_n", "gap_s", "gap_n")},
    "verified": "spec_verify_calls",
    "hits": "cached_tokens",
    "queries": "prompt_tokens",
    "preempted": "num_retracted_requests",
    "running": "num_running_reqs",
    "waiting": "num_queue_reqs",
    "kv_cache": "token_usage",
}
LLAMA_CPP = {
    **{quantity: VLLM[quantity] for quantity in ("drafts", "drafted", "accepted")},
    "tokens": "tokens_predicted",
    "hits": "prompt_tokens_cached",
    "misses": "prompt_tokens",
    "running": "requests_processing",
    "waiting": "requests_deferred",
    "kv_cache": "kv_cache_usage_ratio",
}
TGI = {"tokens": "request_generated_tokens_sum", "waiting": "queue_size"}

ENGINES: Mapping[str, Mapping[str, str]] = {"vllm": VLLM, "sglang": SGLANG, "llamacpp": LLAMA_CPP, "tgi": TGI}
"""The prefix of an engine's names → quantity → its names without prefix and `_total`, newest first; the first one on a
page is used.
"""

APPEARING = {"sglang": ("hits",)}
"""Counters that are missing from a page until they first change."""

GAUGES = frozenset({"running", "waiting", "kv_cache"})
"""The quantities that are not counters."""
