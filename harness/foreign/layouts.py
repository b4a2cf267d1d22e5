"""Files and folders whose names identify the tool, and their rows, which `formats` reads.

format                   files
nemo_skills, sgl_eval    a folder with `output-rs0.jsonl`, `output-rs1.jsonl` …, one for each sample of all questions
opencompass              `predictions/<model>/<set>.json`, a mapping by number
inspect                  a log `.eval`
sglang                   `tmp_output_*.txt`

Files of suites that grade themselves are read by `verdicts`.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.benchmarks.sources import tables
from harness.benchmarks.sources.tables import Row
from harness.core.errors import UsageError
from harness.core.files import open_named
from harness.core.literals import OutputsFormat as Format
from harness.core.number_text import count_noun
from harness.core.sanitize import quoted, visible
from harness.foreign import row_values, verdicts

_RS = re.compile(r"output-rs(\d{1,6})\.jsonl(-async)?")
"""The name of a file of NeMo-Skills; an unfinished file ends in -async, and its rows are in order of completion."""

_PARTED = re.compile(r"(.+)_\d{1,6}\.json")
"""The name of one part of a set's predictions, which OpenCompass may split."""

_BY_NUMBER = re.compile(rb'\s*\{\s*"\d{1,9}"\s*:\s*\{')
"""The beginning of an OpenCompass file."""


_STATE = re.compile(r"^={40} (\d+) ={40}\n", re.MULTILINE)
"""The line before a state of SGLang's dump, with its number."""

MAX_MEMBER_BYTES = 256 * 1024 * 1024
"""Longest sample of an `.eval` log, after decompression."""


def format_of(path: Path) -> Format | None:
    """The format, recognized by a file's or folder's name or contents; None if only the rows can show it.

    Files of sgl_eval count as those of nemo_skills: both have the same names and the same columns.
    """
    if path.suffix == ".eval":
        return "inspect"
    if path.name.startswith("tmp_output_") and path.suffix == ".txt":
        return "sglang"
    if is_numbered(path):
        return "nemo_skills"
    return "opencompass" if is_by_number(path) else verdicts.form_of(path)  # by contents; the name shows nothing


def rows(path: Path, format: Format | None, *, half_done: bool = False) -> Iterator[Row]:
    """The rows at `path`. format: None if only the rows can show it. half_done: leave out an unfinished last line.

    Raises `UsageError`.
    """
    read = _READERS.get(format or "columns")
    if path.is_dir() and read is not _numbered_rows:
        raise UsageError(f"{visible(str(path))} is a folder; expected an output file")
    return read(path) if read else tables.stream(path, responses=True, half_done=half_done)


def _numbered_rows(path: Path) -> Iterator[Row]:
    """The rows of a folder of `output-rs*.jsonl` or of a single file; `sample_index` is the number of the file."""
    files = numbered_files(path) if path.is_dir() else [(_sample_number(path), path)]
    for number, file in files:
        positions = set()
        for where, value, *_ in tables.stream(file, responses=True):
            # A resumed generation may have rewritten a row of its unfinished file.
            position = value.get("_async_position", where)
            if position not in positions:
                positions.add(position)
                yield Row(where, {**value, "sample_index": number})


def _predictions(path: Path) -> Iterator[Row]:
    """The rows of a file of predictions of OpenCompass, with their key as `number`. Raises `UsageError`."""
    shown = visible(str(path))
    value = tables.parse_json(row_values.decode_file(path), shown)
    rows = value if isinstance(value, dict) else {}
    if not rows:
        raise UsageError(f"{shown} is not an OpenCompass file: expected an object that maps each index to a prediction")
    for number, row in rows.items():
        yield Row(f"{shown}:{visible(number, 20)}", {**row_values.mapping_or_empty(row), "number": number})


def _states(path: Path) -> Iterator[Row]:
    """The states in a dump of SGLang's reasoning benchmark: a text for each request. Raises `UsageError`."""
    shown = visible(str(path))
    # State numbers and texts alternate, after the text before the first state.
    _, *parts = _STATE.split(row_values.decode_file(path))
    if not parts:
        raise UsageError(f"{shown} is not a state dump of SGLang's benchmark")
    for number, state in zip(parts[::2], parts[1::2], strict=True):
        yield Row(f"{shown}:{number}", {"state": state})


def _logged(path: Path) -> Iterator[Row]:
    """The samples of an `.eval` log of Inspect: a zip archive with a JSON file for each sample and epoch. Raises
    `UsageError`.
    """
    shown = visible(str(path))
    try:
        with open_named(path) as raw, zipfile.ZipFile(raw) as archive:
            names = [n for n in archive.namelist() if n.startswith("samples/") and n.endswith(".json")]
            if not names:
                raise UsageError(f"{shown} contains no samples; the log may be incomplete")
            # An archive may contain a name twice, and `getinfo` returns the last member for both.
            for name in sorted(dict.fromkeys(names), key=_by_epoch):
                info = archive.getinfo(name)
                if info.file_size > MAX_MEMBER_BYTES:
                    raise UsageError(f"{shown}: {visible(name)} has {info.file_size} bytes; limit {MAX_MEMBER_BYTES}")
                where = f"{shown}:{visible(name)}"
                with archive.open(info) as file:
                    # The size in the archive's directory is only a claim, so the read is also limited.
                    data = file.read(MAX_MEMBER_BYTES + 1)
                yield Row(where, row_values.mapping_or_empty(tables.parse_json(data.decode("utf-8"), where)))
    except NotImplementedError as error:
        raise UsageError(f"{shown} is compressed in a format this Python cannot read: {quoted(str(error))}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, UnicodeDecodeError) as error:
        remedy = "`inspect log convert FILE --to eval --output-dir FOLDER` converts a .json log"
        raise UsageError(f"{shown} is damaged or not an Inspect log: {quoted(str(error))}; {remedy}") from error
    except OSError as error:
        raise UsageError(f"cannot read {shown}: {error.strerror or error}") from error


def _by_epoch(name: str) -> tuple[str, int]:
    """(question, epoch) in the name of a sample's file, for sorting: epoch 10 comes after epoch 9."""
    question, _, epoch = name.removesuffix(".json").rpartition("_epoch_")
    # A longer number is not an epoch, and `int` rejects more than 4,300 digits.
    return question, int(epoch) if epoch.isdecimal() and len(epoch) < 10 else 0


def is_by_number(path: Path) -> bool:
    """Whether a file begins like those of OpenCompass (a mapping of numbers to objects); no other format does."""
    if path.suffix != ".json" or not path.is_file():
        return False
    try:
        with open_named(path) as file:
            return _BY_NUMBER.match(file.read(1024)) is not None
    except OSError:
        return False  # the reader of the file will report it


def is_numbered(path: Path) -> bool:
    """Whether `path` is an `output-rs*.jsonl` file of NeMo-Skills or a folder with such files."""
    files = path.iterdir() if path.is_dir() else [path]
    return any(_sample_number(file) is not None for file in files)


def missing_parts(path: Path) -> list[str]:
    """Sentences on what may be missing from the outputs at `path`: other parts in the same folder, and unfinished
    files.
    """
    parted = _PARTED.fullmatch(path.name)
    parts = (
        []
        if parted is None
        else [p.name for p in path.parent.glob("*.json") if _PARTED.sub(r"\1", p.name) == parted[1] and is_by_number(p)]
    )
    sentences = []
    if len(parts) > 1:
        listed = ", ".join(visible(name, 60) for name in sorted(parts)[:20])
        sentences.append(f"the data set has {len(parts)} parts ({listed}), but only {visible(path.name, 60)} is read")
    files = files_of(path)
    unfinished = [visible(file.name, 60) for file in files if file.name.endswith("-async")]
    if unfinished:
        sentences.append(f"NeMo-Skills has not finished {', '.join(unfinished)}: samples are missing")
    if path.is_dir() and not is_numbered(path):
        ended = {file.parent for file in files}
        if n := sum(each.is_dir() and each not in ended for each in path.iterdir()):
            sentences.append(
                f"skipped {count_noun(n, 'folder')} in the job that {'has' if n == 1 else 'have'} no result.json"
            )
    return sentences


def files_of(path: Path) -> list[Path]:
    """The files with the outputs at `path`, a file or a folder. Raises `UsageError` for any other folder."""
    if not path.is_dir():
        return [path]
    return [file for _, file in numbered_files(path)] if is_numbered(path) else verdicts.trials(path)


def numbered_files(folder: Path) -> list[tuple[int | None, Path]]:
    """(number, file) of each `output-rs*.jsonl` in a folder, by number; if a number has two files, the finished one.

    Raises `UsageError` if there is none.
    """
    files: dict[int | None, Path] = {}
    for path in sorted(folder.iterdir()):  # `.jsonl` sorts before `.jsonl-async`
        if (number := _sample_number(path)) is not None:
            files.setdefault(number, path)
    if not files:
        raise UsageError(f"{visible(str(folder))} contains no NeMo-Skills output (output-rs0.jsonl …)")
    return sorted(files.items(), key=lambda item: item[0] or 0)


def _sample_number(path: Path) -> int | None:
    """The number in the name of an `output-rs*.jsonl`; None for any other file."""
    match = _RS.fullmatch(path.name)
    return int(match[1]) if match else None


_READERS: dict[Format, Callable[[Path], Iterator[Row]]] = {
    "nemo_skills": _numbered_rows,
    "sgl_eval": _numbered_rows,
    "opencompass": _predictions,
    "inspect": _logged,
    "sglang": _states,
}
"""Format → the reader of its files, unless they are tables."""
