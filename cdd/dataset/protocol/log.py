"""The log of versions: records under their numbers, packs of old ones, and the search for the newest.

A record is put only if none is there, which makes a commit atomic. Two orders matter, and the model of the
protocol in the tests has a mutant for each: a record is looked up first and its pack afterwards, and the pack
wins; and where the record after the newest is not there, its pack is looked for afterwards.
"""

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from cdd import _cdd
from cdd.dataset.protocol.directory import Directory
from cdd.dataset.protocol.errors import VersionNotFoundError
from cdd.dataset.protocol.manifest import canonical
from cdd.store.reader import Reader
from cdd.store.writer import Writer

PACK = 1024  # records of a pack
HIDDEN = (".values", ".ends")  # how names of tables end that hold the texts of category columns
FIRST: dict[str, Any] = {
    "version": 0,
    "id": "",
    "time": 0,
    "rows": {},
    "manifest": "",
    "ops": [],
    "op": "",
    "message": "",
}


@dataclass(frozen=True)
class Version:
    """One version of a dataset; it may stand wherever a version's number is asked for.

    number    1, 2, ...
    time      of the commit, datetime64[ns] in UTC, later than that of the version before
    rows      of each table by its name; "" is the dataset's own
    message   as it was given to the commit
    op        what was done: "append", "modify", ...
    """

    number: int
    time: np.datetime64
    rows: dict[str, int]
    message: str
    op: str

    def __index__(self) -> int:
        return self.number

    def __int__(self) -> int:
        return self.number


def version_of(record: dict[str, Any]) -> Version:
    return Version(
        record["version"],
        np.datetime64(record["time"], "ns"),
        {name: rows for name, rows in record["rows"].items() if not name.endswith(HIDDEN)},
        record["message"],
        record["op"],
    )


def record_path(version: int) -> str:
    return f"meta/log/{version:020d}.json"


def pack_of(version: int) -> int:
    return (version - 1) // PACK


def pack_path(pack: int) -> str:
    return f"meta/log/packs/{pack:010d}.cdd"


def encode_record(record: dict[str, Any]) -> bytes:
    return canonical({**record, "check": _cdd.content_hash(canonical(record)).hex()})


def parse_record(data: bytes, version: int, where: str) -> dict[str, Any]:
    try:
        record = json.loads(data)
        check = record.pop("check")
        if _cdd.content_hash(canonical(record)).hex() != check:
            raise _cdd.ChecksumError(f"{where}: the check of version {version} does not hold")
        if record["version"] != version:
            raise _cdd.FormatError(f"{where}: it holds version {record['version']}, not {version}")
        for key in FIRST:
            if type(record[key]) is not type(FIRST[key]):
                raise _cdd.FormatError(f"{where}: {key} of version {version} is {record[key]!r}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _cdd.FormatError(f"{where} is no record of version {version}: {error!r}") from None
    checked: dict[str, Any] = record
    return checked


def _last(number: int, is_there: Callable[[int], bool]) -> int:
    """The last of a run of numbers that are there, of which `number` is one; some 2 log2 look-ups."""
    step = 1
    while is_there(number + step):
        number += step
        step *= 2
    while step > 1:
        step //= 2
        if is_there(number + step):
            number += step
    return number


class Log:
    """The log in a directory. Any number of threads and processes may use it at once."""

    def __init__(self, directory: Directory) -> None:
        self.directory = directory
        self._pack: tuple[int, list[bytes]] | None = None  # the last one that was read

    # ------------------------------------------------------------ finding

    def _is_there(self, version: int) -> bool:
        return self.directory.size(record_path(version)) is not None

    def _is_packed(self, pack: int) -> bool:
        return self.directory.size(pack_path(pack)) is not None

    def hint(self) -> int:
        """A version that is there: by meta/head, which may be wrong, else 0."""
        try:
            version = int(self.directory.read("meta/head").decode("ascii"))
        except (FileNotFoundError, ValueError):
            return 0
        is_known = version > 0 and (self._is_there(version) or self._is_packed(pack_of(version)))
        return version if is_known else 0

    def head(self, known: int = 0) -> int:
        """The newest version's number; `known` is one that is there. A known one that is a million versions
        old costs some 40 look-ups."""
        found = known
        while True:
            if not self._is_there(found + 1):
                if not self._is_packed(pack_of(found + 1)):
                    return found
                found = self._end_of_packs(pack_of(found + 1))
                continue
            found = _last(found + 1, self._is_there)

    def _end_of_packs(self, pack: int) -> int:
        """The last version that is packed; `pack` is there."""
        return (_last(pack, self._is_packed) + 1) * PACK

    # ------------------------------------------------------------ reading

    def record(self, version: int) -> dict[str, Any]:
        """The record of a version, checked. Raises VersionNotFoundError."""
        if version == 0:
            return FIRST
        path = record_path(version)
        try:
            data: bytes | None = self.directory.read(path)
        except FileNotFoundError:
            data = None
        pack = pack_of(version)
        where = f"{self.directory.name}/{path}"
        if self._is_packed(pack):  # it wins: the record may have come after its number was packed
            where = f"{self.directory.name}/{pack_path(pack)}"
            data = self._packed(pack)[(version - 1) % PACK]
        if data is None:
            raise VersionNotFoundError(f"{self.directory.name} has no version {version}")
        return parse_record(data, version, where)

    def _packed(self, pack: int) -> list[bytes]:
        if self._pack is None or self._pack[0] != pack:
            self._pack = pack, read_pack(self.directory, pack)
        return self._pack[1]

    def records(self, first: int, last: int, parent: str | None = None) -> Iterator[dict[str, Any]]:
        """Records of versions first to last, each the child of the one before."""
        for version in range(first, last + 1):
            record = self.record(version)
            if parent is not None and record.get("parent") != parent:
                raise _cdd.FormatError(
                    f"{self.directory.name}: version {version} was built on {record.get('parent')!r}, but "
                    f"version {version - 1} is {parent!r}"
                )
            parent = record["id"]
            yield record

    def at_time(self, time: int, head: int) -> int:
        """The last version that is not later than `time` in ns; 0 where there is none."""
        low, high = 0, head + 1
        while high - low > 1:
            middle = (low + high) // 2
            if self.record(middle)["time"] <= time:
                low = middle
            else:
                high = middle
        return low

    # ------------------------------------------------------------ writing

    def put(self, record: dict[str, Any]) -> bool:
        """Whether the record is there under its number, durably, and counts: False for somebody else's."""
        version = record["version"]
        if not self.directory.put_if_absent(record_path(version), encode_record(record)):
            if self.record(version)["id"] != record["id"]:
                return False
            self.sync()  # it is this one, and an answer was lost
        pack = pack_of(version)
        if not self._is_packed(pack):
            return True
        # The number was packed and cleaned up before: the record came too late, and nobody reads it.
        return bool(self.record(version)["id"] == record["id"])

    def sync(self) -> None:
        self.directory.sync("meta/log")

    def put_hint(self, version: int) -> None:
        self.directory.put_hint("meta/head", str(version).encode("ascii"))

    def pack(self, head: int) -> int:
        """Makes packs of whole runs of records, and deletes what is in them. Returns how many it made."""
        made = 0
        pack = self._next_pack(head)
        while (pack + 1) * PACK <= head:
            if not self._is_packed(pack):
                records = [
                    encode_record(self.record(version))
                    for version in range(pack * PACK + 1, (pack + 1) * PACK + 1)
                ]
                made += self.directory.put_if_absent(pack_path(pack), pack_bytes(records))
            self.directory.sync("meta/log/packs")
            for version in range(pack * PACK + 1, (pack + 1) * PACK + 1):
                self.directory.delete(record_path(version))
            pack += 1
        return made

    def _next_pack(self, head: int) -> int:
        """The first pack that is missing, or whose records are not all deleted."""
        low, high = 0, pack_of(head + 1) + 1
        while low < high:  # the first that is missing
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._is_packed(middle) else (low, middle)
        return low - 1 if low > 0 and self._is_there(low * PACK) else low


def pack_bytes(records: list[bytes]) -> bytes:
    """A store of the records' bytes, whose user_meta holds where each ends."""
    ends = np.cumsum([len(record) for record in records], dtype=np.uint32)
    memory = _cdd.Memory()
    with Writer(
        memory, user_meta=ends.tobytes(), dtype=np.uint8, row_shape=(), codec="zstd", chunk_rows=1 << 20
    ) as writer:
        writer.append(np.frombuffer(b"".join(records), np.uint8))
    return bytes(memory)


def read_pack(directory: Directory, pack: int) -> list[bytes]:
    path = pack_path(pack)
    with Reader(directory.read(path)) as reader:
        meta = reader.user_meta
        data = reader.read().tobytes()
    try:
        ends = (0, *struct.unpack(f"<{PACK}I", meta))
    except struct.error:
        ends = ()
    if not ends or ends[-1] != len(data) or list(ends) != sorted(ends):
        raise _cdd.FormatError(f"{directory.name}/{path} does not hold {PACK} records")
    return [data[a:b] for a, b in pairwise(ends)]
