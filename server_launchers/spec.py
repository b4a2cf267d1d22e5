"""What is to be served and how, in one vocabulary for all engines; each launcher turns it into its own flags."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Engine = Literal["llama_cpp", "vllm", "vllm_ascend", "sglang", "sglang_router", "transformers", "external", "command"]

DEFAULT_START_TIMEOUT_SECONDS = 600.0
DEFAULT_STOP_GRACE_SECONDS = 20.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class ServerSpec(BaseModel):
    """One server: an engine, a model, and how the model is spread and limited. None = the engine's own default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    engine: Engine
    model: str = ""
    """Model name on the hub, a folder, a GGUF file (llama_cpp), or a URL (external)."""
    served_name: str | None = None
    """Name that clients use; None takes the model as given (llama_cpp: the file's name)."""
    name: str | None = None
    """Name of this server in `status` and `stop`; None derives one from the model."""

    host: str = "127.0.0.1"
    port: int = Field(0, ge=0, le=65535)
    """0 picks a free one. Replica i of several listens on port + i."""
    api_key_env: str | None = None
    """Environment variable with the key that clients must send; the key itself reaches no argv and no file."""

    tp: int = Field(1, ge=1)
    pp: int = Field(1, ge=1)
    dp: int = Field(1, ge=1)
    dp_mode: Literal["client", "engine", "router"] = "client"
    """Who spreads requests over replicas: our client over N servers, the engine itself, or a router before N."""
    devices: tuple[str, ...] | None = None
    """Accelerators to use, as the engine's visible-devices variable names them; None asks the system."""
    nodes: int = Field(1, ge=1)
    node_rank: int = Field(0, ge=0)
    head_address: str | None = None
    """Address of node 0 as the other nodes reach it; needed where `nodes` > 1."""
    head_port: int = Field(29500, ge=1, le=65535)
    node_address: str | None = None
    """Address of this node, where the machine has several (Ascend: HCCL_IF_IP)."""
    interface: str | None = None
    """Network interface that nodes speak over (NCCL, GLOO, HCCL: `*_SOCKET_IFNAME`)."""

    device: Literal["cuda", "npu", "cpu"] | None = None
    """Kind of device, for engines that are told (sglang, transformers)."""
    context: int | None = Field(None, ge=1)
    """Tokens that one request may use, prompt and answer together."""
    memory_fraction: float | None = Field(None, gt=0, le=1)
    max_sequences: int | None = Field(None, ge=1)
    """Requests worked on at once (llama_cpp: its slots)."""
    max_batched_tokens: int | None = Field(None, ge=1)
    attention_backend: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    reasoning_parser: str | None = None
    """In either spelling; each launcher writes its engine's (deepseek_r1, deepseek-r1)."""
    seed: int | None = None
    eager: bool = False
    prefix_caching: bool | None = None
    chat_template: Path | None = None
    trust_remote_code: bool = False
    threads: int | None = Field(None, ge=1)
    """CPU threads (llama_cpp)."""

    environment: dict[str, str] = {}
    """Variables set for the engine; their values reach no file."""
    extra_flags: tuple[str, ...] = ()
    """Handed to the engine as they stand; for `command`, the whole command line."""
    engine_version: str | None = None
    """Write flags for this version instead of asking the installed engine."""
    python: Path | None = None
    """Interpreter of the environment that holds the engine."""
    uvx: str | None = None
    """Requirement that `uv` installs and runs, as `vllm==0.32.0`."""
    docker: str | None = None
    """Image that holds the engine."""
    router_python: Path | None = None
    """Interpreter of the environment that holds the router; None: this one, else the engine's."""

    health_path: str | None = None
    """Page that answers 200 once a `command` or `external` server can work."""
    start_timeout: float = Field(DEFAULT_START_TIMEOUT_SECONDS, gt=0)
    """Seconds without any progress in the log after which a start has failed."""
    stop_grace: float = Field(DEFAULT_STOP_GRACE_SECONDS, ge=0)
    """Seconds between TERM and KILL."""
    restarts: int = Field(0, ge=0)
    """How often a process that dies after the server was ready is started again."""

    @field_validator("name")
    @classmethod
    def _name_is_plain(cls, name: str | None) -> str | None:
        if name is not None and not _NAME.match(name):
            raise ValueError("a server's name is 1 to 80 letters, digits, dots, dashes and underscores")
        return name

    @field_validator("api_key_env")
    @classmethod
    def _variable_name(cls, name: str | None) -> str | None:
        if name is not None and not _VARIABLE.match(name):
            raise ValueError("give the name of an environment variable that holds the key, not the key")
        return name

    @field_validator("environment")
    @classmethod
    def _variables(cls, environment: dict[str, str]) -> dict[str, str]:
        for name, value in environment.items():
            if not _VARIABLE.match(name) or "\0" in value:
                raise ValueError(f"not an environment variable: {name!r}")
        return environment

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.engine == "command":
            if not self.extra_flags:
                raise ValueError("engine command needs the command line after `--`")
        elif not self.model:
            raise ValueError(f"engine {self.engine} needs a model")
        if sum(value is not None for value in (self.python, self.uvx, self.docker)) > 1:
            raise ValueError("python, uvx and docker are three ways to find the engine: give one")
        if self.node_rank >= self.nodes:
            raise ValueError(f"node_rank counts from 0: with {self.nodes} nodes it is at most {self.nodes - 1}")
        if self.nodes > 1 and self.head_address is None:
            raise ValueError("several nodes need head_address, the address of node 0 that the others can reach")
        return self

    @property
    def client_name(self) -> str:
        """The model name that a client asks for; empty where only the running server can tell."""
        if self.served_name:
            return self.served_name
        if self.engine == "external":
            return ""
        return Path(self.model).stem if self.engine == "llama_cpp" else self.model
