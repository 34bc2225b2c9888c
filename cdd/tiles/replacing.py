"""What mode "w" may remove: an array, or a pyramid of arrays, and not a file that is none of theirs."""

import os
import re
from pathlib import Path

from cdd._cdd import FormatError
from cdd.tiles.pyramid import read_group

# Keys of chunks and shards: "c/0/1", "c.0.1", and those of zarr v2, "0/1" and "0.1".
_KEY = re.compile(r"(c[/.])?\d+([/.]\d+)*|c")
_OWN = re.compile(r"zarr\.json|\.zarr\.json\..*\.tmp|\.cdd-journal")


def check_replaceable(path: str) -> None:
    """Raises FileExistsError for a group that is no pyramid, and for a folder that holds more than what an
    array or a pyramid has. What is no array at all, the core refuses."""
    if not Path(path, "zarr.json").is_file():
        return
    try:
        group = read_group(path)
    except FormatError as error:
        raise _refusal(path, "which is a zarr group and no pyramid of images") from error
    for folder, _, names in os.walk(path):
        inside = os.path.relpath(folder, path).replace(os.sep, "/")
        key = "" if inside == "." else f"{inside}/"
        for name in names:
            if not _belongs(key + name, group.scales if group is not None else None):
                raise _refusal(path, f"which holds {key + name!r}, no file of {_what(group is None)}")


def _what(is_array: bool) -> str:
    return "an array" if is_array else "its arrays"


def _belongs(key: str, scales: list[str] | None) -> bool:
    if _OWN.fullmatch(key):
        return True
    if scales is None:
        return _KEY.fullmatch(key) is not None
    for scale in scales:
        if key.startswith(f"{scale}/"):
            return _belongs(key.removeprefix(f"{scale}/"), None)
    return False


def _refusal(path: str, why: str) -> FileExistsError:
    return FileExistsError(17, f"cannot replace what is there, {why}: remove it first", path)
