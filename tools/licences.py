"""Lists the packages of an environment with their licence and their size on disk, the largest first.

python tools/licences.py          # of the interpreter that runs this
"""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path


def licence(distribution: importlib.metadata.Distribution) -> str:
    """The licence as the package states it: an expression, a short text, or its classifier."""
    stated = distribution.metadata.get("License-Expression") or distribution.metadata.get("License") or ""  # type: ignore[attr-defined]
    classified = [
        classifier.rpartition(" :: ")[2]
        for classifier in distribution.metadata.get_all("Classifier") or ()
        if classifier.startswith("License")
    ]
    first = stated.splitlines()[0].strip() if stated.strip() else ""
    return first if first and len(first) <= 60 else ", ".join(classified) or "not stated"


def size(distribution: importlib.metadata.Distribution) -> int:
    """Bytes of the package's files, compiled ones included."""
    paths = (Path(str(distribution.locate_file(file))) for file in distribution.files or ())
    return sum(path.stat().st_size for path in paths if path.is_file())


def main() -> int:
    packages = importlib.metadata.distributions()
    rows = sorted(((size(one), one.metadata["Name"], one.version, licence(one)) for one in packages), reverse=True)
    for n_bytes, name, version, stated in rows:
        sys.stdout.write(f"{n_bytes / 1e6:8.1f} MB  {name} {version}: {stated}\n")
    sys.stdout.write(f"{sum(row[0] for row in rows) / 1e6:8.1f} MB  in all\n")
    return 1 if any(row[3] == "not stated" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
