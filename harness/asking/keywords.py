"""The keyword arguments of `harness.run`, for type checkers and editors: the fields of `RunOptions`, loosely typed.

A test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, TypedDict

from harness.client.address.providers import LengthField, Thinking
from harness.client.interface import TransportName
from harness.core.records import Api
from harness.generation.continuing import Mode

FilePath = str | PathLike[str]
Texts = str | Sequence[str]


class RunKeywords(TypedDict, total=False):
    """See `harness.asking.options.RunOptions`; None leaves an option as it is by default (seed: sends none).

    Wide: it repeats the fields of `RunOptions` for type checkers.
    """

    model: str | None
    base_url: Texts
    provider: str | None
    server: str | None
    serve: str | Mapping[str, Any] | None
    concurrency: int | None
    api_key_env: str | None
    api_key_file: FilePath | None
    header: Mapping[str, str] | Texts
    ca_file: FilePath | None
    hash_weights: bool
    samples: int | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    min_p: float | None
    max_tokens: int | None
    repetition_penalty: float | None
    presence_penalty: float | None
    frequency_penalty: float | None
    stop: Texts | None
    preset: str | None
    seed: int | None
    prompt: str | None
    system_prompt: str | None
    limit: int | None
    ids: Texts | None
    filter: Texts
    shard: str | None
    out: FilePath | None
    data: FilePath | None
    question_key: str | None
    answer_key: str | None
    id_key: str | None
    choices_key: Texts
    split: str | None
    data_config: str | None
    api: Api
    endpoints_file: FilePath | None
    extra_body: Mapping[str, Any]
    chat_template_kwargs: Mapping[str, Any]
    thinking: Thinking | None
    thinking_tokens: int | None
    prefill: str | None
    drop: Texts
    max_tokens_field: LengthField | None
    stream: bool
    transport: TransportName
    first_token_timeout: float | None
    idle_timeout: float | None
    attempts: int | None
    disk_reserve: float
    budget_tokens: int | None
    budget_usd: float | None
    target_error: float | None
    price_in: float | None
    price_out: float | None
    prices: FilePath | None
    rpm: float | None
    tpm: float | None
    batch: bool
    batch_file: FilePath | None
    salvage: Mode
    lengths_from: FilePath | None
    continue_from: FilePath | None
    fit_context: bool
    accept_missing: bool
    accept_server_change: bool
    canary: bool
    fingerprint: bool | None
    probe: bool
    break_lock: bool
    metrics_port: int | None
    metrics_host: str
