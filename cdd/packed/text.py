"""A column of texts: where each ends, and their bytes one after the other, as Arrow has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import typing_extensions


def _said(error: UnicodeDecodeError, i: int) -> UnicodeDecodeError:
    reason = f"{error.reason}: text {i} is no UTF-8, bytes({i}) gives it as it is"
    return UnicodeDecodeError(error.encoding, error.object, error.start, error.end, reason)


class Text(Sequence[str]):
    """A sequence of str, decoded when they are asked for.

    ends    uint64 or uint32 array: text i is data[ends[i - 1]:ends[i]]
    data    uint8 array: UTF-8, unless the text was read with encoding="bytes"

    Asking for a text that is no UTF-8 as str is UnicodeDecodeError; bytes(i) and numpy("S") give it as it is.
    """

    def __init__(self, ends: npt.NDArray[Any], data: typing_extensions.Buffer) -> None:
        self.ends = ends
        self._bytes = memoryview(data).cast("B")
        self.data: npt.NDArray[np.uint8] = np.frombuffer(self._bytes, np.uint8)

    def __len__(self) -> int:
        return len(self.ends)

    def _bounds(self, i: int) -> tuple[int, int]:
        n = len(self.ends)
        at = i + n if i < 0 else i
        if not 0 <= at < n:
            raise IndexError(f"text {i} of {n}")
        return int(self.ends[at - 1]) if at else self._begin(), int(self.ends[at])

    def _begin(self) -> int:
        return 0

    @overload
    def __getitem__(self, key: int) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> list[str]: ...
    def __getitem__(self, key: int | slice) -> str | list[str]:
        if isinstance(key, slice):
            return [self[i] for i in range(*key.indices(len(self)))]
        begin, end = self._bounds(key)
        try:
            return str(self._bytes[begin:end], "utf-8")
        except UnicodeDecodeError as error:
            raise _said(error, key) from None

    def bytes(self, i: int) -> bytes:
        """Text i as it is."""
        begin, end = self._bounds(i)
        return bytes(self._bytes[begin:end])

    def bytes_between(self, begin: int, end: int) -> memoryview:
        """data[begin:end] as a buffer."""
        return self._bytes[begin:end]

    def __iter__(self) -> Iterator[str]:
        whole, begin = bytes(self._bytes), 0
        if whole.isascii():
            text = whole.decode("ascii")
            for end in self.ends.tolist():
                yield text[begin:end]
                begin = end
        else:
            for i, end in enumerate(self.ends.tolist()):
                try:
                    text = whole[begin:end].decode()
                except UnicodeDecodeError as error:
                    raise _said(error, i) from None
                yield text
                begin = end

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Text):
            return np.array_equal(self.ends, other.ends) and np.array_equal(self.data, other.data)
        if isinstance(other, Sequence) and not isinstance(other, str):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        some = ", ".join(repr(self.bytes(i).decode(errors="backslashreplace")) for i in range(len(self))[:3])
        return f"<cdd.packed.Text of {len(self):,}: {some}{', ...' if len(self) > 3 else ''}>"

    def numpy(self, dtype: npt.DTypeLike = object) -> npt.NDArray[Any]:
        """The texts as an array: of object (str), "S" or "U" (fixed width), "T" (NumPy 2's strings), or any
        other dtype that NumPy makes of text. Raises ValueError where a text is none of that dtype."""
        if dtype is object or np.dtype(dtype) == object:
            made: npt.NDArray[Any] = np.empty(len(self), object)
            made[:] = list(self)
            return made
        asked = np.dtype(dtype)
        if asked.kind == "S":
            return np.array([self.bytes(i) for i in range(len(self))], asked)
        if asked.kind in "UT":
            return np.array(list(self), asked)
        if asked.kind == "b":
            raise ValueError("text is no bool: compare it, or read the file with types")
        return np.array(list(self), "U").astype(asked)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("the texts of a column become an array by a copy")
        return self.numpy(object if dtype is None else dtype)
