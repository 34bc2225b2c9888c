"""Packed rows: text rows laid out so that every runtime reads them in place, without parsing.

    p = cdd.packed.open("trades.pkr", header=True)   # a path, bytes, any buffer; both versions of the format
    p[0], p[-1], p[10:20], len(p)                    # tuples of str; a slice is a view
    for row in p: ...                                # tuples; p.rows(columns=[0, 3]) of some columns
    p.field(7, 2), p.row(7)[2]                       # one field, nothing else is decoded
    p.column("price").numpy(float)                   # a column
    with cdd.packed.open("v2.packed", "w", columns=["a", "b"]) as w: w.append(rows)   # version 2, a stream
    cdd.packed.pack([("a", "b"), ("1", "2")])        # rows -> Packed, exact bytes in bytes(p)

CSV text is packed by cdd.csv.pack. docs/formats/packed.md has the bytes.
"""

from cdd.packed.columns import Column, Columns
from cdd.packed.opening import open, pack
from cdd.packed.rows import Packed, Row
from cdd.packed.text import Text
from cdd.packed.writer import Writer

__all__ = ["Column", "Columns", "Packed", "Row", "Text", "Writer", "open", "pack"]
