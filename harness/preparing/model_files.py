"""Identifies a model's files on this machine by checksums: configuration, tokenizer, template, weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.core.about import hub_cache
from harness.core.codec import digest
from harness.core.files import checksum, open_named, read_named
from harness.core.limits import MAX_NAME_BYTES

TEXTS = (
    *("config.json", "generation_config.json", "tokenizer.json", "tokenizer.model", "tokenizer_config.json"),
    *("special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt"),
    *("chat_template.jinja", "chat_template.json", "model.safetensors.index.json"),
)
"""Names of the files that define a model besides its weights, as transformers saves them."""

WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")

MAX_TEXT_BYTES = 256 * 1024 * 1024
"""Largest size in bytes of a file that is read for its checksum; a larger file is identified by its size.

The largest tokenizers have 40 MB.
"""

MAX_SHARDS = 10_000
"""Largest number of weights files that are identified; further files are left out."""
HASHED_AT_ONCE = 4
"""Number of weights files that are read at the same time."""

PIECES, PIECE_BYTES = 16, 4096
"""Number and size in bytes of the evenly spaced pieces of each weights file that the checksum `weights_sample` covers.

A few pieces are enough to tell checkpoints apart, since training changes nearly all bytes.
"""


def fingerprints(source: str) -> dict[str, str]:
    """Name of each of the model's files → its checksum `sha256:…`; {} if the model is not on this machine.

    source: a folder, a file of weights, or a name on the hub (its snapshot in the local cache). Two more keys stand
    for all weights files together: `weights` covers their names and sizes; `weights_sample` their sizes and pieces of
    their contents, but not their names.
    """
    path = local(source)
    if path is None:
        return {}
    digests = {}
    if path.is_dir():
        digests = {name: _of_file(path / name) for name in TEXTS if (path / name).is_file()}
        # Sorted, since each file system lists a folder in an order of its own.
        shards = sorted(file for file in path.iterdir() if file.suffix in WEIGHTS and file.is_file())[:MAX_SHARDS]
    else:
        shards = [path]
    if shards:
        names, sizes = [path.name for path in shards], [path.stat().st_size for path in shards]
        digests["weights"] = _digest(zip(names, sizes, strict=True))
        with ThreadPoolExecutor(HASHED_AT_ONCE) as pool:
            digests["weights_sample"] = _digest(sorted(zip(sizes, pool.map(_sample, shards), strict=True)))
    return digests


def content(path: str) -> str | None:
    """The checksum `sha256:…` of a file, or of `generation_config.json` in a folder; None if there is no such file."""
    file = Path(path).expanduser()
    file = file / "generation_config.json" if file.is_dir() else file
    return _of_file(file) if file.is_file() else None


def local(source: str) -> Path | None:
    """The model's folder or file; None if it is not on this machine."""
    path = Path(source).expanduser()
    if path.exists():
        return path
    # The cache is searched as huggingface_hub does it, because that package need not be installed.
    cached = hub_cache() / f"models--{source.replace('/', '--')}"
    try:
        snapshot = cached / "snapshots" / read_named(cached / "refs/main", MAX_NAME_BYTES).decode().strip()
        return snapshot if snapshot.is_dir() else None
    # The cache may hold anything: bytes that are no text, or a NUL in a path.
    except (OSError, ValueError):
        return None


def _of_file(path: Path) -> str:
    """The checksum of a file as `sha256:…`; for a file above `MAX_TEXT_BYTES`, its size instead."""
    size = path.stat().st_size
    return f"{size} bytes" if size > MAX_TEXT_BYTES else f"sha256:{checksum(path)}"


def _sample(path: Path) -> str:
    """SHA-256 of `PIECES` evenly spaced pieces of a file, from its first bytes to its last."""
    last = max(0, path.stat().st_size - PIECE_BYTES)
    pieces = hashlib.sha256()
    with open_named(path) as file:
        for piece in range(PIECES):
            file.seek(last * piece // (PIECES - 1))
            pieces.update(file.read(PIECE_BYTES))
    return pieces.hexdigest()


def _digest(rows: Iterable[tuple[object, object]]) -> str:
    """The checksum `sha256:…` of a table, row by row."""
    return f"sha256:{digest([list(row) for row in rows])}"
