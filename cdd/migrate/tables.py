"""Tables: Parquet, Feather (Arrow files) and CSV. Each is a source of several columns.

A column of numbers, of times, or of lists of one length, which are rows. Nulls, texts and lists of different
lengths are refused, by the column's name: a store has no place for them.
"""

from abc import abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cdd.dtypes import Array, DType
from cdd.migrate.source import ColumnKind, Slab, Source, column_kind, digest, listed, need, stamp
from cdd.packed.columns import Columns
from cdd.packed.options import options_of
from cdd.packed.reading import batches_of

ALL = "*"


class _Table(Source):
    """What tables share. `inner` names the columns that are wanted, "a" or "a,b": of one dtype they are the
    rows of one array then; "*" are all; "" is each as a column of its own. The columns book.0.0 and so on are
    one before that where `join` names book."""

    def __init__(self, path: Path, inner: str, join: Mapping[str, tuple[int, ...]]) -> None:
        self.path = path
        self.inner = inner
        self.name = f"{path}::{inner}" if inner else str(path)
        self.files = (path,)
        self._parts_of = {
            name: [".".join((name, *map(str, place))) for place in np.ndindex(*shape)]
            for name, shape in join.items()
        }
        self._join = dict(join)
        self._raw: dict[str, ColumnKind] = {}

    def _are(self, raw: dict[str, ColumnKind]) -> None:
        """Settles what the columns are, of those that are wanted, as the file has them."""
        self._raw = raw
        kinds = {}
        for name in self._shown:
            parts = [raw[part] for part in self._parts_of.get(name, [name])]
            for part, kind in zip(self._parts_of.get(name, [name]), parts, strict=True):
                if (kind.dtype, kind.row_shape) != (
                    parts[0].dtype,
                    () if name in self._join else kind.row_shape,
                ):
                    raise ValueError(
                        f"{self.path}: column {part!r} is {kind.dtype} of rows {kind.row_shape}, join= makes "
                        f"one of numbers of one dtype, here {parts[0].dtype}"
                    )
            shape = self._join.get(name, parts[0].row_shape)
            kinds[name] = ColumnKind(parts[0].dtype, shape, {} if name in self._join else parts[0].attrs)
        if not kinds:
            raise ValueError(f"{self.name} has no columns")
        if not self.inner:
            self.columns = kinds
            return
        names = list(kinds)
        first = kinds[names[0]]
        for name in names:
            if (kinds[name].dtype, kinds[name].row_shape) != (first.dtype, first.row_shape):
                raise ValueError(
                    f"{self.name}: column {name!r} is {kinds[name].dtype} of rows {kinds[name].row_shape}, "
                    f"column {names[0]!r} is {first.dtype} of rows {first.row_shape}: one array has one dtype"
                )
        shape = first.row_shape if len(names) == 1 and self.inner != ALL else (len(names), *first.row_shape)
        key = names[0] if len(names) == 1 and self.inner != ALL else self.path.stem
        self.columns = {key: ColumnKind(first.dtype, shape, {} if len(names) == 1 else {"columns": names})}

    def _wanted(self, there: Sequence[str]) -> list[str]:
        """The file's columns that are needed. Settles which are shown."""
        shown_of = {name: self._owner_of(name) for name in there}
        shown = dict.fromkeys(shown_of.values())
        for parts in self._parts_of.values():
            lost = [part for part in parts if part not in shown_of]
            if lost:
                raise ValueError(
                    f"{self.path} has no column {lost[0]!r}: join= wants {parts[0]!r} to {parts[-1]!r}, it "
                    f"has {listed(there)}"
                )
        wanted = list(shown) if self.inner in ("", ALL) else self.inner.split(",")
        for name in wanted:
            if name not in shown:
                raise ValueError(f"{self.path} has no column {name!r}: it has {listed(shown)}")
        self._shown = wanted
        return [part for name in wanted for part in self._parts_of.get(name, [name])]

    def _owner_of(self, column: str) -> str:
        """The name of what join= makes of a column, or its own. ValueError for one that join= leaves over."""
        name, dot, rest = column.partition(".")
        if not dot or name not in self._join or not rest.replace(".", "").isdigit():
            return column
        if column not in self._parts_of[name]:
            raise ValueError(
                f"{self.path} has the column {column!r} beside those of join= {name!r}: {self._join[name]}"
            )
        return name

    def _joined(self, parts: dict[str, Array]) -> dict[str, Array]:
        """The columns of some rows, as one array where they are to be one."""
        parts = {name: self._of_parts(name, parts) for name in self._shown}
        if not self.inner or (len(parts) == 1 and self.inner != ALL):
            return parts
        (key,) = self.columns
        return {key: np.stack(list(parts.values()), axis=1)}

    def _of_parts(self, name: str, parts: dict[str, Array]) -> Array:
        names = self._parts_of.get(name)
        if names is None:
            return parts[name]
        rows = np.empty((len(parts[names[0]]), len(names)), parts[names[0]].dtype)
        for at, part in enumerate(names):
            rows[:, at] = parts[part]
        return rows.reshape(len(rows), *self._join[name])

    def fingerprint(self) -> str:
        kinds = [(key, str(kind.dtype), kind.row_shape) for key, kind in self.columns.items()]
        return digest([self.inner, self.rows, kinds, stamp(self.path)])

    @abstractmethod
    def batches(self, start: int, rows: int) -> Iterator[tuple[int, dict[str, Array]]]:
        """Rows from `start` or some before on, about `rows` at a time."""

    def slabs(self, start: int, slab_bytes: int) -> Generator[Slab, None, None]:
        step = max(1, slab_bytes // max(1, self.row_bytes))
        for at, parts in self.batches(start, step):
            count = len(next(iter(parts.values())))
            if at + count <= start:
                continue
            skip = max(0, start - at)
            joined = self._joined({name: rows[skip:] for name, rows in parts.items()})
            for begin in range(0, count - skip, step):
                yield at + skip + begin, {name: rows[begin : begin + step] for name, rows in joined.items()}


# ------------------------------------------------------------ Arrow


class _ArrowTable(_Table):
    """Columns that come as Arrow's."""

    def _have(self, schema: Any) -> None:
        twice = {name for name in schema.names if schema.names.count(name) > 1}
        if twice:
            raise ValueError(f"{self.path} has more than one column {min(twice)!r}")
        wanted = self._wanted(schema.names)
        self.wanted = wanted
        self._are({name: self._kind(schema.field(name)) for name in wanted})

    def _kind(self, field: Any) -> ColumnKind:
        where = f"{self.path}, column {field.name!r}"
        pa = need("pyarrow")
        kind, shape = field.type, []
        while pa.types.is_fixed_size_list(kind):
            shape.append(kind.list_size)
            kind = kind.value_type
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            raise TypeError(f"{where} holds lists of any length ({field.type}): lists of one length are rows")
        if pa.types.is_dictionary(kind) or not (
            pa.types.is_floating(kind)
            or pa.types.is_integer(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_timestamp(kind)
            or pa.types.is_duration(kind)
            or pa.types.is_date32(kind)
        ):
            raise TypeError(f"{where} holds {field.type}: a store holds numbers and times")
        attrs = {str(k, "utf-8", "replace"): v for k, v in (field.metadata or {}).items()}
        if pa.types.is_timestamp(kind) and kind.tz:
            attrs["timezone"] = kind.tz
        return column_kind(where, _dtype(pa, kind), (0, *shape), attrs)

    def _array(self, name: str, column: Any) -> Array:
        """The rows of a column of a record batch. Nothing is copied where Arrow's memory is NumPy's."""
        kind = self._raw[name]
        flat = column
        while hasattr(flat, "flatten") and flat.type.num_fields:
            if flat.null_count:
                raise ValueError(_nulls(self.path, name))
            flat = flat.flatten()
        if flat.null_count:
            raise ValueError(_nulls(self.path, name))
        items = flat.to_numpy(zero_copy_only=False)
        if items.dtype != kind.dtype:
            items = items.astype(kind.dtype)  # days
        rows: Array = items.reshape(len(column), *kind.row_shape)
        return rows

    def _parts(self, batch: Any) -> dict[str, Array]:
        return {name: self._array(name, batch.column(name)) for name in self.wanted}


def _nulls(path: Path, name: str) -> str:
    return f"{path}, column {name!r} has nulls: fill them, or drop their rows"


def _dtype(pa: Any, kind: Any) -> DType:
    if pa.types.is_date32(kind):
        return np.dtype("datetime64[D]")
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return np.dtype(f"{'datetime64' if pa.types.is_timestamp(kind) else 'timedelta64'}[{kind.unit}]")
    plain: DType = np.dtype(kind.to_pandas_dtype())
    return plain


class ParquetSource(_ArrowTable):
    """A Parquet file. Row groups are read one after the other, in batches: rows before the one that a
    migration goes on in are not read again, but for those of its row group."""

    def __init__(self, path: Path, inner: str, join: Mapping[str, tuple[int, ...]]) -> None:
        super().__init__(path, inner, join)
        self._file = need("pyarrow.parquet").ParquetFile(
            str(path), pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True
        )
        try:
            self._have(self._file.schema_arrow)
            self._refuse_nulls()
        except BaseException:
            self._file.close()
            raise
        self.rows = self._file.metadata.num_rows
        self.attrs = _metadata(self._file.schema_arrow)

    def batches(self, start: int, rows: int) -> Iterator[tuple[int, dict[str, Array]]]:
        about = self._file.metadata
        at = 0
        for group in range(about.num_row_groups):
            count = about.row_group(group).num_rows
            if at + count <= start:
                at += count
                continue
            for batch in self._file.iter_batches(rows, [group], self.wanted, use_threads=False):
                yield at, self._parts(batch)
                at += batch.num_rows

    def close(self) -> None:
        self._file.close()

    def _refuse_nulls(self) -> None:
        """Where the file's statistics tell of them; else they are found when they are read."""
        about = self._file.metadata
        for group in range(about.num_row_groups):
            for number in range(about.num_columns):
                column = about.row_group(group).column(number)
                told, path = column.statistics, column.path_in_schema
                name = path if path in self.wanted else path.split(".")[0]
                if name in self.wanted and told is not None and told.has_null_count and told.null_count:
                    raise ValueError(_nulls(self.path, name))


class FeatherSource(_ArrowTable):
    """A Feather file of version 2, which is an Arrow file. It is mapped."""

    def __init__(self, path: Path, inner: str, join: Mapping[str, tuple[int, ...]]) -> None:
        super().__init__(path, inner, join)
        pa = need("pyarrow")
        need("pyarrow.ipc")
        self._map = pa.memory_map(str(path))
        try:
            self._file = pa.ipc.open_file(self._map)
            self._have(self._file.schema)
        except BaseException:
            self._map.close()
            raise
        self.rows = need("pyarrow.dataset").dataset(str(path), format="feather").count_rows()
        self.attrs = _metadata(self._file.schema)

    def batches(self, start: int, rows: int) -> Iterator[tuple[int, dict[str, Array]]]:
        at = 0
        for number in range(self._file.num_record_batches):
            batch = self._file.get_batch(number)
            if at + batch.num_rows > start:
                yield at, self._parts(batch)
            at += batch.num_rows

    def close(self) -> None:
        self._map.close()


def _metadata(schema: Any) -> dict[str, str]:
    """Attributes of a table. What libraries keep there for themselves stays where it is."""
    found = {
        str(k, "utf-8", "replace"): str(v, "utf-8", "replace") for k, v in (schema.metadata or {}).items()
    }
    return {key: value for key, value in found.items() if key not in ("pandas", "ARROW:schema")}


# ------------------------------------------------------------ CSV


class CsvSource(_Table):
    """CSV text with a header, maybe compressed. Types are found over all rows when it is opened."""

    def __init__(self, path: Path, inner: str, join: Mapping[str, tuple[int, ...]]) -> None:
        super().__init__(path, inner, join)
        self.rows = 0
        self._ends: dict[str, tuple[Any, Any]] = {}
        kinds: dict[str, ColumnKind] = {}
        first = last = None
        self._types: Any = None
        for columns in self._columns(1 << 20):
            if first is None:
                first, self.wanted = columns, self._wanted(columns.keys())
            for name in self.wanted:
                if columns.column(name).nulls:
                    raise ValueError(
                        f"{path}, column {name!r} has empty fields among rows {self.rows:,} to "
                        f"{self.rows + len(columns):,}: cdd.csv.store has null= for them"
                    )
            self.rows += len(columns)
            last = columns
        if first is None or last is None:
            raise ValueError(f"{path} has no rows")
        self._types = first.types
        for name in self.wanted:
            if first.types[name] == "text":
                raise TypeError(
                    f"{path}, column {name!r} holds texts: cdd.csv.store puts them into a dataset"
                )
            values = first.column(name).values
            self._ends[name] = values[0], last.column(name).values[-1]
            kinds[name] = column_kind(f"{path}, column {name!r}", values.dtype, (0,), {})
        self._are(kinds)

    def ends(self, name: str) -> tuple[Any, Any]:
        return self._ends[name]

    def _columns(self, rows: int) -> Iterator[Columns]:
        return batches_of(self.path, self._types, options_of({}), True, rows)

    def batches(self, start: int, rows: int) -> Iterator[tuple[int, dict[str, Array]]]:
        at = 0
        for columns in self._columns(rows):
            if at + len(columns) > start:
                yield at, {name: columns.column(name).values for name in self.wanted}
            at += len(columns)
