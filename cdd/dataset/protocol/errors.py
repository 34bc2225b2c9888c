"""What can be wrong with a dataset that is not damage of a file: that is cdd.FormatError and its kinds."""

from cdd._cdd import CddError


class DatasetError(CddError):
    """A dataset does not allow what was asked for."""


class ConflictError(DatasetError):
    """Somebody else changed the same since: nothing of this transaction was committed.

    version   the version that conflicts
    op        what it did
    """

    def __init__(self, text: str, version: int, op: str) -> None:
        super().__init__(text)
        self.version = version
        self.op = op

    def __reduce__(self) -> tuple[type, tuple[str, int, str]]:
        return type(self), (str(self.args[0]), self.version, self.op)


class VersionExpiredError(DatasetError):
    """A version before the first that is kept, and without a tag.

    version   the one that was asked for
    floor     the first that is kept
    """

    def __init__(self, text: str, version: int, floor: int) -> None:
        super().__init__(text)
        self.version = version
        self.floor = floor

    def __reduce__(self) -> tuple[type, tuple[str, int, int]]:
        return type(self), (str(self.args[0]), self.version, self.floor)


class VersionNotFoundError(DatasetError, KeyError):
    """There is no such version or tag."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class OrderError(DatasetError, ValueError):
    """Times that go back. Nothing was appended."""
