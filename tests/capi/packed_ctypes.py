"""Packed rows through ctypes, as any runtime with a foreign function interface has them: CSV packed into
memory of the caller's and read in place. Run with the path of libcdd; the standard library alone."""

import ctypes
import sys

U8, U32, U64, SIZE, TEXT = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p


class CddError(ctypes.Structure):
    _fields_ = [
        ("struct_size", U32), ("status", ctypes.c_int32), ("os_errno", ctypes.c_int32), ("kind", U32),
        ("number", U64), ("field", U64), ("offset", U64), ("text", ctypes.c_char * 480),
    ]  # fmt: skip


class Packed(ctypes.Structure):
    _fields_ = [
        ("struct_size", U32), ("version", U32), ("bytes", TEXT), ("size", U64), ("rows", U64),
        ("fields", U32), ("reserved", U32),
    ]  # fmt: skip


class Field(ctypes.Structure):
    _fields_ = [("text", TEXT), ("bytes", SIZE)]


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    for function in (library.cdd_csv_pack, library.cdd_packed_row, library.cdd_packed_field):
        function.restype = ctypes.c_int32
    error = CddError(struct_size=ctypes.sizeof(CddError))
    view = Packed(struct_size=ctypes.sizeof(Packed))
    rows = [(f"{i}", f"name {i}" * (i % 4), f"{i * 7}\u00e9") for i in range(5000)]
    text = "".join(f'{a},"{b}",{c}\r\n' for a, b, c in rows).encode()

    # How much is needed, then the caller's own memory: of a bytearray, with bytes after it that stay.
    used = U64()
    status = library.cdd_csv_pack(
        text, SIZE(len(text)), None, None, SIZE(0), ctypes.byref(used), None, ctypes.byref(error)
    )
    assert status == 0, error.text
    memory = bytearray(b"\xa5" * (used.value + 64))
    out = (ctypes.c_char * len(memory)).from_buffer(memory)
    status = library.cdd_csv_pack(
        text, SIZE(len(text)), None, out, SIZE(used.value), ctypes.byref(used), ctypes.byref(view),
        ctypes.byref(error),
    )  # fmt: skip
    assert status == 0, error.text
    assert memory[used.value :] == b"\xa5" * 64
    assert (view.rows, view.fields, view.size) == (5000, 3, used.value)

    # Read in place: pointers lie in the bytearray.
    start = ctypes.addressof(out)
    row = (Field * 3)()
    for number, expected in enumerate(rows):
        assert library.cdd_packed_row(ctypes.byref(view), U64(number), row, SIZE(3), ctypes.byref(error)) == 0
        found = []
        for field in row:
            assert start <= field.text <= start + used.value - field.bytes
            at = field.text - start
            found.append(memory[at : at + field.bytes].decode())
        assert tuple(found) == expected, (number, found)
    one = Field()
    assert library.cdd_packed_field(ctypes.byref(view), U64(4321), U32(2), ctypes.byref(one), None) == 0
    assert ctypes.string_at(one.text, one.bytes).decode() == rows[4321][2]

    bad = b'a,b\n1,"2\n'
    status = library.cdd_csv_pack(
        bad, SIZE(len(bad)), None, out, SIZE(len(memory)), ctypes.byref(used), None, ctypes.byref(error)
    )
    assert (status, error.number, error.field, error.offset) == (5, 1, 1, 6), error.text
    print(f"{len(rows)} rows packed and read in place")


main()
