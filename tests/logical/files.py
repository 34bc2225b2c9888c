"""A logical array in a JSON file, to begin with."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from cdd import logical
from cdd.logical.manifest import ATTRIBUTE

BOOKS = np.round(np.random.default_rng(0).normal(100, 1, (2000, 50, 3)), 1).astype(np.float32)


def of_file(path: Path, rows: int = 1000, **options: Any) -> logical.Array:
    with logical.transaction(path, create=True) as t:
        a = t.create(path.stem, shape=(0, 50, 3), dtype="f4", **options)
        a.append(BOOKS[: rows // 2])
        a.append(BOOKS[rows // 2 : rows], codec="cdd", options={"profile": "dense"})
    return logical.open(path)


def with_member(path: Path, member: str, **more: Any) -> None:
    value = {
        "version": 1, "min_reader": 1, "shape": [100, 50, 3], "dtype": "<f4", "grid": [1, 1, 1],
        "chunks": [100, 50, 3],
        "members": [{"name": "m", "kind": "cdd", "path": member, "shape": [100, 50, 3]}],
        "regions": [{"lo": [0, 0, 0], "hi": [100, 50, 3], "member": 0}], **more,
    }  # fmt: skip
    path.write_text(json.dumps({ATTRIBUTE: value}))
