"""What info and verify tell programs: one JSON object a line, for each file."""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

from cdd.commands import dataset, logical, tiles
from cdd.store.reader import Reader

Look = Callable[[str, argparse.Namespace], bool]


def show(path: str, options: argparse.Namespace, codecs: Callable[[Reader], Any]) -> bool:
    """info --json."""
    if tiles.is_tiles(path):
        told = _of_tiles(path)
    elif dataset.is_dataset(path):
        told = _of_dataset(path, options)
    elif logical.is_logical(path):
        told = {"kind": "logical", "arrays": [_of_array(one) for one in logical._arrays(path, options)]}
    else:
        told = _of_store(path, codecs)
    print(json.dumps({"file": path, **told}, ensure_ascii=False))
    return not told.get("damaged_chunks")


def verify(path: str, options: argparse.Namespace, look: Look) -> bool:
    """verify --json: what `look` finds, and its text."""
    text = io.StringIO()
    with redirect_stdout(text):
        good = look(path, options)
    print(json.dumps({"file": path, "ok": good, "text": text.getvalue().splitlines()}, ensure_ascii=False))
    return good


def _array(array: Any) -> dict[str, Any]:
    return {"shape": list(array.shape), "dtype": str(array.dtype), "raw_bytes": array.nbytes}


def _of_store(path: str, codecs: Callable[[Reader], Any]) -> dict[str, Any]:
    with Reader(path, mmap=False) as reader:
        try:
            told: dict[str, Any] = {"kind": "store", **_array(reader)}
        except ValueError:  # nothing was appended yet
            told = {"kind": "store", "shape": None, "dtype": None, "raw_bytes": 0}
        found, unreadable = codecs(reader)
        names = "chunks", "stored_bytes", "raw_bytes"
        return told | {
            "rows": len(reader),
            "chunks": reader.nchunks,
            "stored_bytes": reader.stored_bytes,
            "user_meta_bytes": len(reader.user_meta),
            "attrs": reader.attrs,
            "id": reader.id,
            "codecs": {name: dict(zip(names, counts, strict=True)) for name, counts in found},
            "damaged_chunks": unreadable,
        }


def _of_dataset(path: str, options: argparse.Namespace) -> dict[str, Any]:
    with dataset.opened(path, allow=options.allow) as opened:
        tables = {}
        for name in opened.tables:
            table = opened[name] if name else opened
            columns = {
                key: _array(table[key])
                | {"stored_bytes": table[key].stored_bytes, "superchunks": table[key].superchunks}
                for key in table.columns
            }
            tables[name] = {"rows": len(table), "clock": table.clock, "columns": columns}
        version = opened.version.number
        return {"kind": "dataset", "id": opened.id, "version": version, "tags": opened.tags, "tables": tables}


def _of_tiles(path: str) -> dict[str, Any]:
    from cdd import tiles as doors

    scales = []
    with doors.open(path) as reader:
        count, attrs = reader.scales, reader.attrs
    for scale in range(count):
        with doors.open(path, scale=scale) as reader:
            stored = reader.stored()
            scales.append(
                _array(reader)
                | {"tile_shape": list(reader.tile_shape), "shard_shape": list(reader.shard_shape)}
                | {"codec": reader.codec, "stored_bytes": stored.bytes, "stored_tiles": stored.tiles}
            )
    return {"kind": "tiles", "attrs": attrs, "scales": scales}


def _of_array(array: Any) -> dict[str, Any]:
    with array:
        members = [member.kind for member in array.manifest.members]
        return {"name": array.name, **_array(array), "members": members, "regions": len(array.regions)}
