"""What a reader and a writer have in common: a store that is open, and its end."""

from types import TracebackType
from typing import Any, ClassVar, Self

from cdd import _cdd
from cdd.attrs import decoded


class Opened:
    """An open store. `with` closes it; closing it again does nothing."""

    _kind: ClassVar[str]
    _core: _cdd.Reader | _cdd.Writer
    _path: str | None

    @property
    def user_meta(self) -> bytes:
        """The user's bytes, as they were given when the store was created."""
        return self._core.user_meta

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes the store was created with, as JSON gives them back (a tuple becomes a list). A dict
        of its own each time: changing it changes no store."""
        return decoded(self._core.user_meta)

    @property
    def id(self) -> str:
        """32 hex digits that each new store gets at random; a copy of its file has the same."""
        return self._core.id

    @property
    def path(self) -> str | None:
        """The file's path as it was given; None in memory."""
        return self._path

    @property
    def closed(self) -> bool:
        """Whether close() was called; also of a writer in a forked process, where it is not to be used."""
        return self._core.closed

    @property
    def _name(self) -> str:
        return "<memory>" if self._path is None else repr(self._path)

    def close(self) -> None:
        """Lets go of the store."""
        self._core.close()

    def __enter__(self) -> Self:
        if self.closed:
            raise ValueError(f"the {self._kind} of {self._name} is closed")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
