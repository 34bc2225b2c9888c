"""A source of CSV text that is no file: it can be read once, and not sought."""

import io
from typing import Any


class Pipe(io.RawIOBase):
    """Bytes that can be read once."""

    def __init__(self, text: bytes) -> None:
        self._rest = io.BytesIO(text)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._rest.readinto(buffer)
