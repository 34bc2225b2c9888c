"""What keeps a migration from going on, beside the errors of the system and of the formats' own libraries."""


class SourceChangedError(ValueError):
    """The source is not what it was when its migration began."""


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
