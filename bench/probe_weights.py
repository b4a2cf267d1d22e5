"""Runs `harness probe --reference` against the embedded server, with its own weights and with coarser copies of them.

    python bench/probe_weights.py [--reference FILE]

The copies are made by the quantisation of ggml, the library that also serves them: the weights of the file's Q4_1
tensors are stored again in 8, 5 and 4 bits. The reference is the copy in 8 bits. A last copy has the 8-bit weights and
another base of its rotary embedding. --reference: a saved reference of the same weights, made by transformers; copies
in bfloat16, float16, 8 and 5 bits are then compared with it instead.
"""

from __future__ import annotations

import argparse
import ctypes
import struct
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import xllamacpp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.asking.options import ProbeOptions
from harness.verbs.probe.probe import probe
from server_launchers.embedded import weights
from server_launchers.keeping import supervisor
from server_launchers.spec import ServerSpec

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""GGUF's number of a type → bytes of a value of it (ggml, docs/gguf.md). Type 8 is a string and 9 an array, which have
no fixed size.
"""

BLOCK = 32
"""Number of weights in a block of the quantised types below."""

BLOCK_BYTES = {2: 18, 3: 20, 6: 22, 8: 34}
Q4_0, Q4_1, Q5_0, Q8_0 = BLOCK_BYTES
F16, BF16 = 1, 30
"""ggml's numbers of the types (ggml.h)."""

ROPE_BASE = b"llama.rope.freq_base"


@cache
def ggml() -> ctypes.CDLL:
    """The ggml library inside the package that serves the files."""
    (path,) = Path(xllamacpp.__file__).parent.glob("xllamacpp*.so")
    library = ctypes.CDLL(str(path))
    pointer, wide = ctypes.c_void_p, ctypes.c_int64
    library.dequantize_row_q4_1.argtypes = [pointer, pointer, wide]
    library.dequantize_row_q4_1.restype = None
    library.ggml_quantize_chunk.argtypes = [ctypes.c_int, pointer, pointer, wide, wide, wide, pointer]
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    return library


@dataclass(frozen=True)
class Tensor:
    """A tensor of a GGUF file: its entry in the header (without type and offset), ggml's number of its type, its shape,
    and its offset in the data.
    """

    entry: bytes
    kind: int
    shape: tuple[int, ...]
    offset: int


class File:
    """The parts of a GGUF file. head: the bytes before the entries of tensors. rope: position of the rotary base in
    `head`.
    """

    def __init__(self, content: bytes) -> None:
        self.content, self._at = content, 4
        _version, n_tensors, n_values = self._take("<IQQ")
        self.alignment, self.rope = 32, 0
        for _ in range(n_values):
            key = self._string()
            (kind,) = self._take("<I")
            begin = self._at
            value = self._value(kind)
            self.alignment = value if key == b"general.alignment" else self.alignment
            self.rope = begin if key == ROPE_BASE else self.rope
        self.head = content[: self._at]
        self.tensors = []
        for _ in range(n_tensors):
            begun = self._at
            self._string()
            (n_dims,) = self._take("<I")
            shape = self._take(f"<{n_dims}Q")
            entry = content[begun : self._at]
            kind, offset = self._take("<IQ")
            self.tensors.append(Tensor(entry, kind, shape, offset))
        self.data = self._aligned(self._at)

    def quantised(self, kind: int, rope: float | None = None) -> bytes:
        """The same file with its Q4_1 tensors in another type. rope: another base of the rotary embedding."""
        head = bytearray(self.head)
        if rope is not None:
            struct.pack_into("<f", head, self.rope, rope)
        data = bytearray()
        for tensor in self.tensors:
            written_kind, size = self._tensor(tensor, kind)
            head += tensor.entry + struct.pack("<IQ", written_kind, len(data))
            data += size + bytes(self._aligned(len(size)) - len(size))
        return bytes(head) + bytes(self._aligned(len(head)) - len(head)) + bytes(data)

    def _tensor(self, tensor: Tensor, kind: int) -> tuple[int, bytes]:
        n = int(np.prod(tensor.shape))
        begun = self.data + tensor.offset
        if tensor.kind != Q4_1:
            after = min((later.offset for later in self.tensors if later.offset > tensor.offset), default=None)
            return tensor.kind, self.content[begun : None if after is None else self.data + after]
        stored = np.frombuffer(self.content, np.uint8, n // BLOCK * BLOCK_BYTES[Q4_1], begun)
        values = np.empty(n, np.float32)
        ggml().dequantize_row_q4_1(stored.ctypes.data, values.ctypes.data, n)
        if kind == F16:
            return kind, values.astype(np.float16).tobytes()
        if kind == BF16:  # the upper half, rounded to even
            bits = values.view(np.uint32)
            return kind, ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16).tobytes()
        quantised = np.empty(n // BLOCK * BLOCK_BYTES[kind], np.uint8)
        row = tensor.shape[0]
        written = ggml().ggml_quantize_chunk(kind, values.ctypes.data, quantised.ctypes.data, 0, n // row, row, None)
        assert written == quantised.nbytes
        return kind, quantised.tobytes()

    def _aligned(self, n: int) -> int:
        return -(-n // self.alignment) * self.alignment

    def _take(self, form: str) -> tuple[Any, ...]:
        numbers = struct.unpack_from(form, self.content, self._at)
        self._at += struct.calcsize(form)
        return numbers

    def _string(self) -> bytes:
        (n,) = self._take("<Q")
        self._at += n
        return self.content[self._at - n : self._at]

    def _value(self, kind: int) -> Any:
        if kind == 8:
            return self._string()
        if kind == 9:
            inner, n = self._take("<IQ")
            for _ in range(n):
                self._value(inner)
            return None
        self._at += SIZES[kind]
        return int.from_bytes(self.content[self._at - SIZES[kind] : self._at], "little")


def main() -> None:
    """Print the findings for each copy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", type=Path, help="a kept reference of these weights")
    reference_file = parser.parse_args().reference
    file = File(Path(weights.fetch("smollm2-135m")).read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        copies = {"q8": file.quantised(Q8_0), "q5": file.quantised(Q5_0), "q4": file.quantised(Q4_0)}
        copies["rope"] = file.quantised(Q8_0, rope=10_000.0)
        if reference_file is not None:
            copies |= {"bf16": file.quantised(BF16), "f16": file.quantised(F16)}
        places = {name: Path(folder) / f"{name}.gguf" for name in copies}
        for name, content in copies.items():
            places[name].write_bytes(content)
        if reference_file is not None:
            for copy in ("bf16", "f16", "q8", "q5"):
                with supervisor.launch(spec(copy, places[copy], 4)) as server:
                    show_findings(f"{copy} beside {reference_file.stem}", server, str(reference_file))
            return
        # The same copy again has other slots, so other batches.
        specs = [("q8", "q8 again", 2), ("q5", "q5", 4), ("q4", "q4", 4), ("rope", "q8, wrong rotary base", 4)]
        with supervisor.launch(spec("q8", places["q8"], 4)) as reference:
            for copy, label, slots in specs:
                with supervisor.launch(spec(f"{copy}-{slots}", places[copy], slots)) as server:
                    show_findings(label, server, reference.base_urls[0])


def show_findings(label: str, server: supervisor.RunningServer, reference: str) -> None:
    """Probe the server against that reference and print the findings."""
    report = probe(ProbeOptions(base_url=server.base_urls[0], reference=reference, checks=["reference"]))
    for finding in report.findings:
        print(f"{label}: {finding.check}: {finding.outcome}: {finding.came}", flush=True)


def spec(name: str, path: Path, slots: int) -> ServerSpec:
    """The settings of a server of that copy."""
    return ServerSpec(engine="llama_cpp", model=str(path), served_name="smollm2", max_sequences=slots, name=name)


if __name__ == "__main__":
    main()
