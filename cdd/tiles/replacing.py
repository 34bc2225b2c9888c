"""What mode "w" may remove: an array, or a pyramid of arrays, and nothing that is none of theirs."""

import json
import os
import re
from pathlib import Path
from typing import Any

from cdd._cdd import FormatError
from cdd.tiles.metadata import Metadata
from cdd.tiles.pyramid import read_group

_OWN = re.compile(r"zarr\.json|\.cdd-journal")
# Of a file that a killed writer was about to put there.
_TEMPORARY = re.compile(r"\.(.+)\.(?:[0-9a-f]{16}\.tmp|growing|copying)")


def check_replaceable(path: str) -> None:
    """Raises FileExistsError for a group that is no pyramid, and for a folder that holds more than what an
    array or a pyramid has: other files, links, folders. What is no array at all, the core refuses."""
    if not Path(path, "zarr.json").is_file():
        return
    try:
        group = read_group(path)
    except FormatError as error:
        raise _refusal(path, "which is a zarr group and no pyramid of images") from error
    if group is None:
        _check_array(path, path)
        return
    arrays = {Path(path, scale) for scale in group.scales}
    above = {parent for array in arrays for parent in array.parents}
    for folder, folders, names in os.walk(path):
        for found in [Path(folder, name) for name in folders]:
            if found in arrays and not found.is_symlink():
                _check_array(path, str(found))
                folders.remove(found.name)
            elif found not in above:
                raise _stray(path, found)
        for found in [Path(folder, name) for name in names]:
            if found.parent != Path(path) or not _OWN.fullmatch(_final(found.name)):
                raise _stray(path, found)


def _check_array(path: str, array: str) -> None:
    keys, above = _keys_of(array)
    for folder, folders, names in os.walk(array):
        inside = os.path.relpath(folder, array).replace(os.sep, "/")
        lead = "" if inside == "." else f"{inside}/"
        for name in folders:
            if not above.fullmatch(lead + name) or Path(folder, name).is_symlink():
                raise _stray(path, Path(folder, name))
        for name in names:
            final = _final(name)
            own = keys.fullmatch(lead + final) or (not lead and _OWN.fullmatch(final))
            if not own or Path(folder, name).is_symlink():
                raise _stray(path, Path(folder, name))


def _final(name: str) -> str:
    while found := _TEMPORARY.fullmatch(name):  # what is about to be put there may be temporary itself
        name = found[1]
    return name


def remove_unfinished(path: str, scales: list[Metadata]) -> None:
    """Removes what a killed writer was about to put in place of metadata, and of shards of the rows that it
    may have been in. The caller's writer has the array or pyramid, and puts nothing there now."""
    for k, metadata in enumerate(scales):
        array = Path(path, str(k)) if len(scales) > 1 else Path(path)
        row = metadata.shape[0] // metadata.shard[0]
        places = [Path(path), array, array / "c"]  # shards of one dimension stand in the last one
        for folder in (array / "c" / str(row), array / "c" / str(max(row - 1, 0))):
            places += [Path(inside) for inside, _, _ in os.walk(folder)]
        for left in [file for place in places for file in place.glob(".*.tmp")]:
            final = _final(left.name)
            if final != left.name and (final.isdecimal() or _OWN.fullmatch(final)):
                left.unlink(missing_ok=True)


def _keys_of(array: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What its chunks or shards are called, and the folders above them. Metadata that are no JSON, which the
    core would call damaged, have those of cdd's own arrays of any rank."""
    try:
        metadata: Any = json.loads(Path(array, "zarr.json").read_bytes())
        rank = len(metadata["shape"])
        encoding = metadata["chunk_key_encoding"]
        is_v2 = encoding["name"] == "v2"
        separator = encoding.get("configuration", {}).get("separator", "." if is_v2 else "/")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return re.compile(r"c(/\d+)*"), re.compile(r"c(/\d+)*")
    parts = ([] if is_v2 else ["c"]) + [r"\d+"] * (rank or is_v2)
    between = re.escape(separator)
    whole = between.join(parts)
    folders = ["/".join(parts[: k + 1]) for k in range(len(parts) - 1)] if separator == "/" else []
    return re.compile(whole), re.compile("|".join(f"(?:{one})" for one in folders) or r"(?!)")


def _stray(path: str, found: Path) -> FileExistsError:
    return _refusal(path, f"which holds {found.relative_to(path).as_posix()!r}, nothing of an array's")


def _refusal(path: str, why: str) -> FileExistsError:
    return FileExistsError(17, f"cannot replace what is there, {why}: remove it first", path)
