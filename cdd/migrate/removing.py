"""Removing sources that are migrated, so that whoever is stopped meanwhile can go on.

A folder gets another name before it is removed: half of one would be another source. Of a migration of one
target a note beside that says what is removed, and what its files were when they were verified: half of them
would be another source, too. Of many targets the journal says it.
"""

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cdd import _cdd
from cdd.migrate.errors import SourceChangedError
from cdd.migrate.many import Job, Journal
from cdd.migrate.running import Done
from cdd.migrate.source import digest, stamp
from cdd.migrate.zarr_arrays import raised


def _gone(path: Path) -> Path:
    """The name of a folder that is being removed."""
    return path.with_name(f".{path.name}.migrated")


def finish(path: Path) -> None:
    """Removes what is left of a folder whose removal was stopped."""
    if _gone(path).is_dir():
        shutil.rmtree(_gone(path))


def remove(path: Path) -> None:
    """Removes a file or folder; of a link the link."""
    finish(path)
    if path.is_dir() and not path.is_symlink():
        path.rename(_gone(path))
        shutil.rmtree(_gone(path))
    else:
        path.unlink(missing_ok=True)


class Removal:
    """Removes a file or folder when all that it holds is migrated."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._left = Counter(path for job in jobs for path in job.roots)

    def done(self, job: Job) -> None:
        for path in job.roots:
            self._left[path] -= 1
            if self._left[path] == 0:
                remove(path)


# ------------------------------------------------------------ one target


def _state(path: Path) -> str:
    """Another one for a file or folder that changed."""
    if not path.is_dir():
        return digest([stamp(path)])
    files = [Path(at, name) for at, _, names in os.walk(path, onerror=raised) for name in names]
    return digest([(str(file), stamp(file)) for file in sorted(files)])


def _note(target: Path) -> Path:
    return target.with_name(f".{target.name}.removing")


def remove_all(source: Path, target: Path, paths: Iterable[Path], done: Done) -> None:
    """Removes the files and folders that were migrated into one target."""
    states = {str(path.absolute()): _state(path) for path in paths}
    text = {"source": str(source.absolute()), "paths": states, "done": vars(done)}
    _cdd.publish(os.fspath(_note(target)), json.dumps(text).encode(), True)
    for path in states:
        remove(Path(path))
    _note(target).unlink()


def go_on(source: Path, target: Path, is_wanted: bool) -> Done | None:
    """Ends a removal that was stopped, and says what was migrated; None where there is none."""
    try:
        text: dict[str, Any] = json.loads(_note(target).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise ValueError(f"{_note(target)} is not what a migration leaves: {error}") from None
    if text["source"] != str(source.absolute()):
        return None
    if not is_wanted:
        raise SourceChangedError(
            f"{source}: an earlier call verified all of it, and was stopped while it removed it; "
            "delete_source=True goes on with that"
        )
    for name, state in text["paths"].items():
        path = Path(name)
        finish(path)
        if path.exists() and _state(path) != state:
            raise SourceChangedError(
                f"{path} changed since it was verified, and stays: an earlier call was stopped while it "
                f"removed {source}. Remove {_note(target)} and {target} to migrate what is there now"
            )
        remove(path)
    _note(target).unlink()
    return Done(**text["done"])


# ------------------------------------------------------------ many targets


def removed_before(source: Path, journal: Journal, jobs: Sequence[Job]) -> list[Done]:
    """What earlier calls migrated of a source, and removed. Folders that were half removed go."""
    there = {job.name for job in jobs}
    found = []
    for path, entry in journal.below(source):
        finish(path)
        if entry["source"] not in there and not path.exists():
            found.append(Done(entry["rows"], entry["raw_bytes"], entry["stored_bytes"], "", 0))
    return found
