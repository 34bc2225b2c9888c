"""A reader of a store that lies in an object store."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cdd import _cdd
from cdd.dtypes import Array, DType
from cdd.remote.far import FarObject
from cdd.remote.wire import may_be_pickled, wire_of
from cdd.store.reader import Reader, Snapshot


class RemoteReader(Reader):
    """The rows of a store in an object store: a cdd.Reader that fetches what it reads. cdd.remote.open makes
    one.

    An object never changes under a reader: one that was replaced since raises FormatError when it is read.
    So refresh() has nothing to show. Reading also raises OSError where requests fail for good, and
    RuntimeError in a process that was forked off after something was fetched.
    """

    def __init__(
        self, far: FarObject, url: str | None, how: Mapping[str, Any], options: dict[str, Any]
    ) -> None:
        self._far = far
        self._url = url
        self._how = dict(how)
        self._show(options, None)

    def _show(self, options: dict[str, Any], as_of: Snapshot | None) -> None:
        self._options = options
        self._path = None
        self._source = b""
        given = options if as_of is None else {**options, "as_of": as_of}
        self._core = _cdd.Reader(self._far.fetched(), given)
        self._dtype: DType | None = None
        self._row_shape: tuple[int, ...] = ()
        self._learn_layout()

    @property
    def url(self) -> str:
        """Where the object lies."""
        return self._far.name

    @property
    def _name(self) -> str:
        return repr(self._far.name)

    @property
    def requests(self) -> int:
        """Requests that were answered so far, by all readers of the same connection."""
        return self._far.wire.requests

    @property
    def fetched_bytes(self) -> int:
        """Bytes that these answers brought."""
        return self._far.wire.fetched_bytes

    @property
    def replaced(self) -> bool:
        """Whether there is another object at the URL by now, or none. One request."""
        return self._far.is_replaced()

    def refresh(self) -> bool:
        """False: objects do not grow. cdd.remote.open() reads one that was published anew."""
        return False

    def close(self) -> None:
        """Lets go of the object; reads under way in other threads still end well. Again: nothing."""
        super().close()
        self._far.wire.close()

    def plan(self, starts: npt.ArrayLike, rows: int) -> tuple[Array, Array]:
        """The bytes that read_windows(starts, rows) fetches: (offsets, sizes) of the chunks, each once and in
        order, before near ones are joined into requests."""
        numbers, rows = self._window_numbers(starts, rows)
        found = np.frombuffer(self._core.plan(numbers, rows), np.uint64).reshape(-1, 2)
        return found[:, 0].copy(), found[:, 1].copy()

    def __reduce__(self) -> tuple[Any, ...]:
        if self.closed:
            raise ValueError(f"the reader of {self._name} is closed")
        store_options = self._how.get("store_options", {})
        if self._url is None:
            raise TypeError(
                f"the reader of {self._name} was opened by a store that is open, which may hold credentials: "
                "one that is opened by a URL can be pickled"
            )
        if not may_be_pickled(self._url, store_options):
            raise TypeError(
                f"the reader of {self._name} was opened with options that may be credentials: they are not "
                "pickled. Let them come from the environment, or open it anew in each process"
            )
        return _reopen, (self._url, self._how, self._options, self._core.snapshot())


def _reopen(url: str, how: dict[str, Any], options: dict[str, Any], as_of: Snapshot) -> RemoteReader:
    reader = RemoteReader.__new__(RemoteReader)
    reader._far, reader._url = far_object(url, None, **how)
    reader._how = how
    reader._show(options, as_of)
    return reader


def far_object(
    target: Any,
    key: str | None,
    *,
    cache_dir: str | None,
    gap: int | None,
    whole_below: int,
    connections: int,
    store_options: dict[str, Any],
) -> tuple[FarObject, str | None]:
    """The object, and the URL it was named by."""
    folder = None if cache_dir is None else Path(cache_dir)
    wire, name, url = wire_of(target, key, connections, store_options)
    return FarObject(wire, name, gap=gap, cache_dir=folder, whole_below=whole_below, alone=True), url
