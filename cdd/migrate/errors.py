"""What keeps a migration from going on, beside the errors of the system."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reading(name: str, part: str = "") -> Iterator[None]:
    """What libraries raise meanwhile becomes UnreadableError, which says of what, and of which part of it.
    What says it already, what the system says, and a package that is missing stay as they are."""
    try:
        yield
    except Exception as error:
        path = name.partition("::")[0]
        is_told = isinstance(error, ValueError | TypeError) and path in str(error)
        is_systems = isinstance(error, MemoryError | ImportError) or getattr(error, "errno", None) is not None
        if is_told or is_systems:
            raise
        place = f"{name}, {part}," if part else name
        raise UnreadableError(f"{place} cannot be read: {type(error).__name__}: {error}") from error


class SourceChangedError(ValueError):
    """The source is not what it was when its migration began."""


class UnreadableError(ValueError):
    """The source is damaged, or not what its name, its first bytes or like= say. Its cause is what the
    format's library raised."""


class MissingChunksError(ValueError):
    """Chunks of the source are not there; their rows would read as the fill value.

    chunks   their names, at most a thousand of them
    """

    def __init__(self, text: str, chunks: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.chunks = chunks


class NotTheSameError(ValueError):
    """What was read back differs from the source."""


class WorkerDiedError(RuntimeError):
    """A process that read or migrated for workers= was killed. What it had written stays."""
