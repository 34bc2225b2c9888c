"""What columns and tables know of the dataset that they are of. It holds them and they do not hold it, so its
files are closed with the last reference to it and to them, without the garbage collector."""

import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdd import _cdd
from cdd.dataset.protocol.errors import DatasetError
from cdd.dataset.protocol.session import Session
from cdd.dataset.protocol.state import ColumnState, State


@dataclass
class Shown:
    """Which rows a dataset shows: what a copy of it must find again."""

    number: int | None = None  # of the version
    is_live: bool = True  # and what was flushed since
    rows: dict[str, int] = field(default_factory=dict)  # of each table


class Home:
    """Of one dataset."""

    def __init__(
        self,
        dataset: Any,
        session: Session,
        files: _cdd.Superchunks,
        dataset_id: str,
        allow: tuple[Path, ...],
    ) -> None:
        self.session = session
        self.files = files
        self.id = dataset_id
        self.state = State()  # that is shown
        self.shown = Shown()
        self.reopen: Callable[[Home], Any] | None = None
        self._allow = allow
        self._of = weakref.ref(dataset)

    @property
    def dataset(self) -> Any:
        """The dataset; one that shows the same rows where nobody has that any more."""
        found = self._of()
        if found is None:
            assert self.reopen is not None
            found = self.reopen(self)
        return found

    def allowed(self, name: str, state: ColumnState) -> dict[int, str]:
        """Paths of superchunks that lie elsewhere, where that is below a folder that is allowed."""
        return {
            number: allowed_path(name, place, self._allow, number)
            for number, place in state.elsewhere.items()
        }


def allowed_path(
    name: str, place: str | os.PathLike[str], allow: tuple[Path, ...], number: int | None = None
) -> str:
    """The path, with links resolved, of a file of a column that lies elsewhere: superchunk `number`, or one
    that is to be attached. Raises DatasetError where that is below none of the folders that are allowed."""
    path = Path(place).resolve()
    if not any(path.is_relative_to(folder) for folder in allow):
        what = "" if number is None else f"superchunk {number}, "
        raise DatasetError(
            f"column {name!r}: {what}{os.fspath(place)!r} lies below none of the folders that allow= names"
        )
    return str(path)
