"""What can be wrong with a logical array. A member that is damaged raises its own errors."""

from cdd import _cdd, manifests


class LogicalError(_cdd.CddError):
    """Something is wrong with a logical array; the errors below say what."""


class ManifestError(LogicalError, manifests.ManifestError):
    """The manifest says what no writer says. The text names the place in the JSON."""


class OverlapError(ManifestError):
    """Two regions hold the same elements."""


class CoverageError(ManifestError):
    """Elements lie in no region, and there is no fill value for them."""


class AlignmentError(LogicalError, ValueError):
    """A region's bounds are not on the grid."""


class CrossRegionError(LogicalError, ValueError):
    """A value was written to several regions at once, without split=True."""


class MemberError(LogicalError):
    """A member is not there, may not be opened, or is not what the manifest says. `member` is its name."""

    def __init__(self, text: str, member: str = "") -> None:
        super().__init__(text)
        self.member = member

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (str(self), self.member)


class ReadOnlyMemberError(MemberError):
    """A write into a member that this package only reads."""


class ForkError(LogicalError, RuntimeError):
    """icechunk does not work in a forked process: there every read would hang."""


class ConflictError(LogicalError):
    """Somebody else's commit came first, and both changed the same. `paths` are those of the repository."""

    def __init__(self, text: str, paths: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.paths = paths

    def __reduce__(self) -> tuple[type, tuple[str, tuple[str, ...]]]:
        return type(self), (str(self), self.paths)
