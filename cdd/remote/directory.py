"""A dataset in an object store: the third Directory."""

from cdd.remote.wire import Wire


class ObjectDirectory:
    def __init__(self, wire: Wire) -> None:
        self.wire = wire
