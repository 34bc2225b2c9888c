"""CSV text: parsed at gigabytes a second into packed rows and arrays.

    p = cdd.csv.pack("trades.csv")     # cdd.packed.Packed: rows as tuples of str, p.names, p.column("price")
    c = cdd.csv.read("trades.csv")     # typed columns: c["price"] is a NumPy array, c.types
    for c in cdd.csv.batches("huge.csv", rows=1_000_000): ...   # columns of some rows after the other
    cdd.csv.store("trades.csv", "trades", clock="ts")                 # into a dataset, a column each
    cdd.csv.store("book.csv", "book.cdd", shape=(50, 3))              # 150 columns into one (n, 50, 3) store
    cdd.csv.write(c, "out.csv")        # back
    cdd.csv.count("trades.csv")        # rows

A source is a path (.gz and .zst are decompressed), "-" for standard input, bytes or any buffer, or a file
object that gives bytes. Keywords of all functions:

dialect      one of the csv module's, as csv.Sniffer().sniff(sample) gives it; what it says, other keywords
             may say otherwise
delimiter    one ASCII character: ","
quote        one ASCII character or None: '"'. Doubled inside quotes it is one of the text
strict       True: a quote out of place (one that opens within a field, text after a closing one, one that is
             never closed) is FormatError with .row, .field, .offset. False: read as csv.reader does
comment      rows that begin with this character are passed over: None
skip         lines to pass over first, whatever is in them: 0
ragged       rows that have not as many fields as the first: "error", "pad" (short ones get empty fields,
             longer ones are errors) or "skip" (they are left out)
blank        blank lines: "skip", "field" (a row of one empty field) or "error"
encoding     "utf8": text that is not UTF-8 is an error. "bytes": it is taken as it is, and .bytes(i) of a
             column gives it; datasets do not take it
columns      names and numbers of the columns that are wanted, in this order: all
max_row_bytes, max_columns   limits before memory is taken: 2**30, 65,536. Lines within quotes count alone

Rows are those of csv.reader: LF, CRLF and a lone CR end them outside quotes and are text within. A byte order
mark at the start is passed over; UTF-16 is UnsupportedError where it begins with one, and not known without.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any, Unpack

from cdd import FormatError, _cdd
from cdd.arguments import flag, shown, size
from cdd.packed.columns import Columns
from cdd.packed.exporting import parts, write_to
from cdd.packed.options import CsvOptions, Options, options_of
from cdd.packed.places import total_bytes
from cdd.packed.reading import Reading, batches_of, check_row_bytes, columns_of, first_row, pack_stream
from cdd.packed.rows import Packed
from cdd.packed.sources import Source, named_batches, of_source, whole
from cdd.packed.storing import StoreReport
from cdd.packed.targets import Storing
from cdd.progress import Progress

__all__ = ["batches", "count", "pack", "read", "store", "write"]


def pack(
    source: Source,
    *,
    header: bool = True,
    version: int | str = 1,
    out: Any = None,
    **options: Unpack[CsvOptions],
) -> Packed:
    """The text as packed rows (cdd.packed.Packed), in new memory or in `out`, a writable buffer.

    header   row 0 has the names of the columns; in version 1 it is in the bytes in any case, but no row then
    version  1, 2, or "auto": 1 where it holds the text, else 2. Version 2 takes fields of any length, is
             compressed, and with `out`, a path or a file object of bytes, is written as a stream: the text
             may be larger than memory. A file of that name is replaced when all is written

    Raises FormatError for bad text, with .row (row 0 is the first of the text), .field and .offset;
    ValueError for wrong options and for an `out` that is too small.
    """
    if version == 2:
        with of_source(source):
            return pack_stream(source, out, options_of(options, pack), flag("header", header))
    if version not in (1, "auto"):
        raise ValueError(f'version is 1, 2 or "auto", not {shown(version)}')
    with of_source(source):
        text, chosen = _text(source, options, pack)
        try:
            pages, _, _, used, _ = _cdd.csv_pack(text, chosen.core(), out)
        except FormatError:
            if version == 1:
                raise
            return pack_stream(text, out, chosen, flag("header", header))
    buffer = memoryview(out).cast("B")[:used] if pages is None else pages
    return Packed(buffer, "header", flag("header", header))


def write(
    rows: Any,
    target: Any,
    *,
    header: bool = True,
    names: Any = None,
    delimiter: str = ",",
    quote: str | None = '"',
) -> int:
    """Writes CSV text and returns its bytes, before compression.

    rows     cdd.packed.Packed, cdd.packed.Columns, rows of str, a table with __arrow_c_stream__, a dict of
             columns, an array or a cdd.Reader (whose rows become one line each)
    target   a path, "-" for standard output, or a file object that takes bytes. A file of that name is
             replaced when all is written; of .gz the text is compressed
    header   whether the names of the columns come first, where there are names
    names    others, one for each column

    Quotes stand where a field needs them, lines end with LF, floats are the shortest text that reads back the
    same. Nulls are empty: what is masked, None, and NaT. Columns of a dataset that are texts are written as
    such, and one of several items a row becomes as many, called "book.0.1".

    Raises TypeError for dtypes that have no text here (complex) and for what has no rows, ValueError for
    rows, columns or names that are not as many as the others.
    """
    dialect = options_of({"delimiter": delimiter, "quote": quote})
    return write_to(target, parts(rows, (dialect.delimiter, dialect.quote), flag("header", header), names))


def read(source: Source, types: Any = None, *, header: bool = True, **options: Unpack[CsvOptions]) -> Columns:
    """The text as typed columns.

    types    types by name or number, a sequence of them, or one for all columns: "bool" (true and false in
             any case), "int64", "uint64", "float64", "datetime64[ns]" (ISO 8601), "epoch[s]" to "epoch[ns]"
             (numbers of that unit since 1970, as datetime64[ns]), "text". What is not given is found over all
             rows, the first of bool, int64, uint64, float64, datetime64[ns] and text that every field is of.
             007, +1, nan and numbers of more than 19 digits are text then, and so is a whole number that
             float64 does not hold exactly.
    header   whether the first row has the names; without one they are "0", "1", ...

    An empty field is null in every column but text. Raises FormatError with .row, .field, .offset for a field
    that is not of the type given.
    """
    with of_source(source):
        text, chosen = _text(source, options, read)
        return columns_of(text, types, chosen, flag("header", header))


def batches(
    source: Source,
    types: Any = None,
    *,
    rows: int = 1_000_000,
    header: bool = True,
    **options: Unpack[CsvOptions],
) -> Iterator[Columns]:
    """Columns of about `rows` rows after the other, for text larger than memory. One batch is in memory, and
    as much of the text.

    Types that are not given are found over all rows where the source can be read twice (a path, a buffer, a
    file object that seeks); of a pipe they are those of the first batch, and a later field that is not of its
    type raises FormatError.
    """
    chosen = options_of(options, batches)
    made = batches_of(source, types, chosen, flag("header", header), size("rows", rows, 1, 1 << 40))
    return named_batches(made, source)


def store(
    source: Source,
    target: str | os.PathLike[str],
    types: Any = None,
    *,
    shape: tuple[int, ...] | None = None,
    dtype: Any = None,
    clock: str | None = None,
    null: Any = None,
    lossy: bool = False,
    sort: bool = False,
    order: str = "nondecreasing",
    overwrite: bool = False,
    resume: bool = False,
    progress: Progress | None = None,
    header: bool = True,
    **options: Unpack[CsvOptions],
) -> StoreReport:
    """Stores CSV text: into a dataset, a column for each column; or, where `target` ends with .cdd, all
    columns as one array of (n, *shape) in one store.

    shape      of a row. Into a dataset it makes one column "book" of the columns that are not the clock
    dtype      of a store or of the book: float32 for books, float64 without a shape
    clock      the column of times, which orders the rows of a dataset: by name
    null       what stands for empty fields of numbers and times, one value or {name: value}; None: they are
               ValueError
    lossy      True: decimals that dtype does not hold are rounded and counted; False: they are ValueError
    sort       True: rows are sorted by the clock first (all are in memory then); with resume those that are
               new, of which none may be before those that are there
    order      of the clock: "nondecreasing", "strict" (no time twice) or "any". Rows that are not in
               order are ValueError
    overwrite  replaces a target; resume goes on after the rows that it has
    progress   progress(bytes read, bytes of the source or 0), now and then

    A first pass over the source finds types, nulls, order and precision, and a new target is made beside its
    place, which it takes when it is whole: an error leaves no half of a target, and the old one where one is
    overwritten. A pipe has one pass: an error in it leaves a new target with the rows before it.

    Texts of at most 65,536 values become a category column, others are put beside the dataset as packed rows
    (report.beside). Names that a dataset does not take are changed and kept in its attributes. Memory: one
    window of the source and what a writer keeps.
    """
    with of_source(source):
        reading = Reading(source, types, options_of(options, store), flag("header", header))
    try:
        if overwrite and resume:
            raise ValueError("overwrite and resume are both set: give one")
        job = Storing(reading, os.fspath(target), shape, dtype, clock, null, lossy, sort, order)
        job.progress, job.total, job.open_dataset = progress, total_bytes(source), _open_dataset
        job.check_replaceable = _check_replaceable
        with of_source(source):
            return job.run("w" if overwrite else "a" if resume else "x")
    finally:
        reading.close()


def _open_dataset(*arguments: Any, **options: Any) -> Any:
    from cdd import dataset

    return dataset.open(*arguments, **options)


def _check_replaceable(path: str) -> None:
    from cdd.dataset.protocol import directory, identity

    identity.check_clear(directory.directory_of(path))


def count(source: Source, *, header: bool = True, **options: Unpack[CsvOptions]) -> int:
    """How many rows there are, without the names. Faster than packing, with the same errors for quotes."""
    with of_source(source):
        text, chosen = _text(source, options, count)
        rows = _cdd.csv_count(text, chosen.core())
    return max(rows - flag("header", header), 0)


def _text(source: Source, given: CsvOptions, function: Callable[..., Any]) -> tuple[Any, Options]:
    options = options_of(given, function)
    text = whole(source, options.module)
    check_row_bytes(text, options.max_row_bytes)
    return text, options.numbered(first_row(text, options)) if options.names else options
