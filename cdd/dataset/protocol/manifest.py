"""A manifest and its pages: a State as bytes, and back.

What a manifest says is not trusted: each field is looked at, and what is wrong is a FormatError that names
the file and the field. Long lists of extents stand in pages, .cdd files of rows of 8 int64; those of all
columns that one commit writes share a file.
"""

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cdd import _cdd
from cdd.dataset.protocol import extents as ex
from cdd.dataset.protocol.directory import Directory
from cdd.dataset.protocol.state import ORDERS, ColumnState, Pages, State, TableState, check_name, path_of
from cdd.dtypes import Array, code_of, named
from cdd.manifests import Field, parse
from cdd.store.reader import Reader
from cdd.store.writer import Writer

_MOST = 1 << 62
_MOST_BYTES = 1 << 30

INLINE = 128  # extents of a column that stand in the manifest itself; more are in pages
_VERSION = 1
_ID = struct.Struct("<qq")


def manifest_path(write_id: str) -> str:
    return f"meta/manifests/{write_id}.json"


def page_path(name: str) -> str:
    return f"meta/pages/{name}.cdd"


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


# ------------------------------------------------------------ writing


def write_manifest(directory: Directory, state: State, write_id: str) -> list[str]:
    """Writes the state's manifest and new pages, durably. Returns their paths. The state then knows its
    pages."""
    new: list[Array] = []
    page = f"{write_id}-0"
    for table in state.tables.values():
        for key, column in table.columns.items():
            pages, inline = _paged(column, page, new)
            table.columns[key] = replace(column, pages=pages, inline=inline, load=page_loader(directory))
    tables = {
        name: {
            "clock": table.clock,
            "order": table.order,
            "hidden": table.hidden,
            "attrs": table.attrs,
            "columns": [[key, _column_json(column)] for key, column in table.columns.items()],
        }
        for name, table in state.tables.items()
    }
    paths = []
    if new:
        directory.put(page_path(page), _page_bytes(np.concatenate(new)))
        paths.append(page_path(page))
    body = {
        "format": "cdd-dataset-manifest",
        "version": _VERSION,
        "tables": tables,
        "attrs": state.attrs,
        "tags": state.tags,
        "floor": state.floor,
    }
    if state.gone:
        body["gone"] = state.gone
    body["check"] = _cdd.content_hash(canonical(body)).hex()
    directory.put(manifest_path(write_id), json.dumps(body, separators=(",", ":")).encode())
    return [*paths, manifest_path(write_id)]


def _column_json(column: ColumnState) -> dict[str, Any]:
    made: dict[str, Any] = {
        "dtype": str(column.dtype),
        "shape": list(column.row_shape),
        "options": column.options,
        "next": column.next,
        "extents": [_extent_json(extent) for extent in column.inline],
    }
    if column.pages:
        made["pages"] = [list(p) for p in column.pages]
    if column.attrs:
        made["attrs"] = column.attrs
    if column.elsewhere:
        made["elsewhere"] = {str(number): path for number, path in column.elsewhere.items()}
    if column.category:
        made["category"] = column.category
    if column.folder:
        made["folder"] = column.folder
    return made


def _paged(column: ColumnState, page: str, new: list[Array]) -> tuple[Pages, Array]:
    """Pages that stay and a new one, and the extents after them. Sizes of pages at least halve from one to
    the next, so there are few, and an extent is written anew few times."""
    if column.stored is None:  # nobody looked, so nothing changed
        return column.pages, column.inline
    extents = column.stored
    if len(extents) <= INLINE:
        return [], extents
    kept: Pages = []
    done = 0
    for file, first, count in column.pages:
        if done + count > len(extents) or column.load is None:
            break
        if not np.array_equal(column.load([(file, first, count)]), extents[done : done + count]):
            break
        kept.append((file, first, count))
        done += count
    rest = len(extents) - done
    if rest > INLINE:
        move = rest - INLINE // 2
        while kept and kept[-1][2] < 2 * move:
            count = kept.pop()[2]
            done -= count
            move += count
        kept.append((page, sum(map(len, new)), move))
        new.append(extents[done : done + move])
        done += move
    return kept, extents[done:]


def _page_bytes(extents: Array) -> bytes:
    memory = _cdd.Memory()
    with Writer(memory, dtype=np.int64, row_shape=(ex.WIDTH,)) as writer:
        writer.append(extents)
    return bytes(memory)


def _extent_json(extent: Array) -> list[Any]:
    number, first, rows = (int(n) for n in extent[:3])
    made = [number, first, None if rows == ex.OPEN else rows, ex.id_of(extent).hex()]
    if extent[ex.KNOWN]:
        made += [int(extent[ex.FIRST_ITEM]), int(extent[ex.LAST_ITEM])]
    return made


# ------------------------------------------------------------ reading


def parse_checked(data: bytes, where: str, name: str) -> dict[str, Field]:
    """The fields of a JSON object that holds its own check, of this format."""
    body = parse(data, where, _MOST_BYTES, _cdd.FormatError)
    if not isinstance(body.value, dict):
        body.fail("an object is wanted")
    check = body.value.pop("check", None)
    try:
        own = _cdd.content_hash(canonical(body.value)).hex()
    except (ValueError, RecursionError):
        own = ""
    if check != own:
        raise _cdd.ChecksumError(f"{where}: its check is {own}, not the {check!r} that it holds")
    fields = {key: body.at(key, value) for key, value in body.value.items()}
    need(fields, body, "format").choice((name,))
    if need(fields, body, "version").integer(1, 1 << 31) > _VERSION:
        raise _cdd.UnsupportedError(
            f"{where} has version {body.value['version']}, of a newer cdd; this one knows {_VERSION}"
        )
    return fields


def need(fields: dict[str, Field], parent: Field, name: str) -> Field:
    if name not in fields:
        parent.fail(f"an object with {name!r} is wanted")
    return fields[name]


def read_manifest(directory: Directory, write_id: str) -> State:
    """The state of a manifest; rows, number, id and time are those of a record."""
    path = manifest_path(write_id)
    where = f"{directory.name}/{path}"
    try:
        data = directory.read(path)
    except FileNotFoundError:
        raise _cdd.FormatError(f"{where} is missing, which a version needs") from None
    body = parse_checked(data, where, "cdd-dataset-manifest")
    top = Field({name: field.value for name, field in body.items()}, "", _cdd.FormatError, where)
    fields = top.object(("format", "version", "tables", "attrs", "tags", "floor"), ("gone",))
    gone = _mapping(fields["gone"]) if "gone" in fields else {}
    load = page_loader(directory)
    return State(
        manifest=write_id,
        tables={
            _name_of(entry, name, "table"): _table_of(entry, name, load)
            for name, entry in _mapping(fields["tables"]).items()
        },
        attrs=_dict(fields["attrs"]),
        tags={tag: entry.integer(0, _MOST) for tag, entry in _mapping(fields["tags"]).items()},
        floor=fields["floor"].integer(0, _MOST),
        gone={folder: entry.integer(1, _MOST) for folder, entry in gone.items()},
    )


def _mapping(field: Field) -> dict[str, Field]:
    if not isinstance(field.value, dict):
        field.fail("an object is wanted")
    return {key: field.at(key, value) for key, value in field.value.items()}


def _dict(field: Field) -> dict[str, Any]:
    _mapping(field)
    found: dict[str, Any] = field.value
    return found


def _name_of(field: Field, name: str, what: str) -> str:
    try:
        return check_name(name, what) if name or what != "table" else name
    except ValueError as error:
        field.fail(str(error))


def _table_of(entry: Field, table: str, load: Callable[[Pages], Array]) -> TableState:
    fields = entry.object(("clock", "order", "hidden", "attrs", "columns"))
    columns = {}
    for item in fields["columns"].items(1 << 20):
        name, column = item.items(2, 2)
        key = _name_of(name, name.text(), "column")
        columns[key] = _in_order(_column_of(column, load), path_of(table, key), entry.what)
    clock = fields["clock"]
    if clock.value is not None and clock.text() not in columns:
        clock.fail("the name of a column, or null, is wanted")
    return TableState(
        clock=clock.value,
        order=fields["order"].choice(ORDERS),
        columns=columns,
        attrs=_dict(fields["attrs"]),
        hidden=fields["hidden"].flag(),
    )


def _column_of(entry: Field, load: Callable[[Pages], Array]) -> ColumnState:
    required = ("dtype", "shape", "options", "next", "extents")
    fields = entry.object(required, ("pages", "attrs", "elsewhere", "category", "folder"))
    try:
        dtype = named(fields["dtype"].text())
        code_of(dtype)
    except (TypeError, ValueError, ImportError) as error:
        fields["dtype"].fail(str(error))
    pages = []
    for item in fields["pages"].items(1 << 20) if "pages" in fields else ():
        name, first, count = item.items(3, 3)
        if "/" in _name_of(name, name.text(), "page"):
            name.fail("the name of a page is wanted")
        pages.append((name.text(), first.integer(0, _MOST), count.integer(0, _MOST)))
    elsewhere = {}
    for number, place in _mapping(fields["elsewhere"]).items() if "elsewhere" in fields else ():
        if not number.isdecimal():
            place.fail("a number as the name is wanted")
        elsewhere[int(number)] = place.text()
    inline = _extents_of(fields["extents"])
    return ColumnState(
        dtype=dtype,
        row_shape=tuple(dim.integer(1, 1 << 31) for dim in fields["shape"].items(7)),
        options=_dict(fields["options"]),
        next=fields["next"].integer(1, _MOST),
        attrs=_dict(fields["attrs"]) if "attrs" in fields else {},
        elsewhere=elsewhere,
        folder=_name_of(fields["folder"], fields["folder"].text(), "column") if "folder" in fields else None,
        category=fields["category"].choice(("codes",)) if "category" in fields else None,
        pages=pages,
        stored=None if pages else inline,
        inline=inline,
        load=load,
    )


def _in_order(column: ColumnState, name: str, where: str) -> ColumnState:
    """The column, whose rows of each superchunk are in the order of the file: windows are read so. Those in
    pages are looked at when they are read."""

    def check(extents: Array) -> None:
        number = ex.backward(extents)
        if number is not None:
            raise _cdd.FormatError(
                f"{where}: column {name!r} has rows of superchunk {number} twice, or not in the order of the "
                "file"
            )

    load, pages, inline = column.load, column.pages, column.inline
    if not pages or load is None:
        check(inline)
        return column

    def load_checked(wanted: Pages) -> Array:
        found = load(wanted)
        if wanted == pages:
            check(np.concatenate((found, inline)))
        return found

    column.load = load_checked
    return column


def _extents_of(entry: Field) -> Array:
    entry.length(0, 1 << 31)
    rows = []
    for i, values in enumerate(entry.value):
        try:
            number, first, count, file_id, *known = values
            items = (*known, 1) if known else (0, 0, 0)
            own = _ID.unpack(bytes.fromhex(file_id))
            rows.append((number, first, ex.OPEN if count is None else count, *own, *items))
            if len(rows[-1]) != ex.WIDTH or not all(type(n) is int for n in rows[-1]):
                raise TypeError
        except (TypeError, ValueError, struct.error):
            entry.at(i, values).fail("a number, a row, rows or null, an id, and maybe two items are wanted")
    try:
        made = np.array(rows, np.int64).reshape(-1, ex.WIDTH)
    except OverflowError:
        entry.fail("numbers of extents are below 2**63")
    wrong = (made[:, :2] < 0).any(axis=1) | (made[:, 2] < ex.OPEN) | (made[:, :3] > 1 << 62).any(axis=1)
    wrong[:-1] |= made[:-1, 2] == ex.OPEN  # only the last may be open
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        entry.at(first, entry.value[first]).fail("an extent is wanted, and only the last may be open")
    return made


def page_loader(directory: Directory) -> Callable[[Pages], Array]:
    """A function that reads pages, each of which must have the rows that are asked for."""

    files: dict[str, Array] = {}  # whole ones: several columns share them

    def load(pages: Pages) -> Array:
        parts = []
        for name, first, count in pages:
            if name not in files:
                files[name] = _read_page(directory, name)
            if first + count > len(files[name]):
                where = f"{directory.name}/{page_path(name)}"
                raise _cdd.FormatError(f"{where} has {len(files[name])} rows, not {first + count}")
            parts.append(files[name][first : first + count])
        return np.concatenate(parts) if parts else ex.none()

    return load


def _read_page(directory: Directory, name: str) -> Array:
    where = f"{directory.name}/{page_path(name)}"
    try:
        data = directory.read(page_path(name))
    except FileNotFoundError:
        raise _cdd.FormatError(f"{where} is missing, which a manifest needs") from None
    with Reader(data) as reader:
        if reader.shape[1:] != (ex.WIDTH,) or reader.dtype != np.int64:
            raise _cdd.FormatError(f"{where} holds {reader.shape} {reader.dtype}, not rows of 8 int64")
        return reader.read()
