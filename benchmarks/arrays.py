"""The arrays that benchmarks measure: recorded books and series, and a generated book."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from generated import book

ROOT = Path(__file__).resolve().parent.parent


def recordings(kind: str = "lob") -> Path | None:
    """The folder of recorded books ("lob") or series, if it is there (CDD_DATA names another)."""
    folder = Path(os.environ.get("CDD_DATA") or ROOT.parent / "shared" / "data") / kind
    return folder if folder.is_dir() else None


def load_array(path: Path, min_rows: int = 0) -> np.ndarray:
    """The array in a .npz (its book, or its only array) or .npy file; a short one is repeated to min_rows."""
    loaded = np.load(path)
    array = loaded if isinstance(loaded, np.ndarray) else loaded["ob" if "ob" in loaded else "a"]
    if len(array) < min_rows:
        array = np.concatenate([array] * -(-min_rows // len(array)))[:min_rows]
    return np.ascontiguousarray(array)


def arrays(kind: str, min_rows: int = 0, only: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Name and rows of each recorded array of this kind; of books, a generated one too."""
    folder = recordings(kind)
    for path in sorted(folder.glob("*.npz")) if folder else []:
        if only in path.stem:
            yield path.stem, load_array(path, min_rows)
    if kind == "lob" and only in "generated":
        yield "generated", book(max(min_rows, 100_000))
