"""Rows of CSV text are those of Python's csv module, whichever way they are read."""

import csv
import io
import itertools
import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdd
import cdd.csv
import cdd.packed

LONGEST = int(os.environ.get("CDD_CSV_LONGEST", "5"))  # 8: half a minute on a quiet core


def module_rows(text: str, **options: object) -> list[tuple[str, ...]]:
    return [tuple(row) for row in csv.reader(io.StringIO(text, newline=""), **options) if row]


def rows(text: str, **options: object) -> list[tuple[str, ...]]:
    return list(cdd.csv.pack(text.encode(), header=False, **options))


def padded(found: list[tuple[str, ...]]) -> list[tuple[str, ...]] | None:
    """As ragged="pad" has them; None where a row is longer than the first."""
    width = len(found[0]) if found else 0
    if any(len(row) > width for row in found):
        return None
    return [row + ("",) * (width - len(row)) for row in found]


def assert_same(text: str) -> None:
    expected = padded(module_rows(text))
    for how in ({}, {"comment": "\1"}):  # the kernels; the machine
        if expected is None:
            with pytest.raises(cdd.FormatError):
                rows(text, strict=False, ragged="pad", **how)
        else:
            assert rows(text, strict=False, ragged="pad", **how) == expected
    # Strict: an error for every one of the module, and no other row.
    try:
        module_rows(text, strict=True)
    except csv.Error:
        with pytest.raises(cdd.FormatError):
            rows(text)
        return
    try:
        found = rows(text)
    except cdd.FormatError:
        return
    assert found == module_rows(text)


@pytest.mark.parametrize("first", ["", *'a,"\r\n'])
def test_every_short_text(first: str) -> None:
    for length in range(LONGEST if first else 1):
        for letters in itertools.product('a,"\r\n', repeat=length):
            assert_same(first + "".join(letters))


def test_short_texts_over_a_step_of_the_kernels() -> None:
    for length in range(4):
        for letters in itertools.product('a,"\r\n', repeat=length):
            for shift in (61, 62, 63, 64, 127):
                assert_same("b" * shift + "".join(letters))
                assert_same("b" * (shift - 1) + "," + "".join(letters) + "\nc,d")


def test_short_texts_over_a_block() -> None:
    """Parts that several threads pack begin at 256 kB."""
    cdd.set_threads(2)
    try:
        for letters in itertools.product('a,"\r\n', repeat=2):
            middle = "".join(letters)
            text = "b,\n" * ((4 << 18) // 3)
            for at in ((1 << 18) - 2, (2 << 18) - 1, 3 << 18):
                changed = text[:at] + middle + text[at + 2 :]
                try:
                    expected = module_rows(changed, strict=True)
                except csv.Error:
                    expected = []
                if len({len(row) for row in expected}) != 1:
                    with pytest.raises(cdd.FormatError):
                        cdd.csv.pack(changed.encode())
                    continue
                try:
                    found = rows(changed)
                except cdd.FormatError as error:
                    assert "quote" in str(error)  # one within a field, which the module takes
                    continue
                assert found == expected
    finally:
        cdd.set_threads(0)


fields = st.text(st.sampled_from("ab\u00e9\U0001f600 ,;\"'\r\n\0"), max_size=40)


@given(st.lists(st.lists(fields, min_size=2, max_size=2), max_size=30), st.sampled_from(["\n", "\r\n", "\r"]))
def test_what_the_module_writes(table: list[list[str]], end: str) -> None:
    made = io.StringIO(newline="")
    csv.writer(made, quoting=csv.QUOTE_ALL, lineterminator=end).writerows(table)
    assert rows(made.getvalue()) == [tuple(row) for row in table]
    made = io.StringIO(newline="")
    csv.writer(made, quoting=csv.QUOTE_ALL, delimiter=";", quotechar="'").writerows(table)
    assert rows(made.getvalue(), delimiter=";", quote="'") == [tuple(row) for row in table]


@given(st.text(st.sampled_from('ab,"\r\n'), max_size=300))
def test_any_text(text: str) -> None:
    assert_same(text)


def test_known_difficult_files() -> None:
    """What other readers got wrong: each line says how."""
    # A line end in quotes, taken for a row's.
    assert rows('a,b\n1,"x\ny"\n2,z\n') == [("a", "b"), ("1", "x\ny"), ("2", "z")]
    # JSON and doubled quotes.
    assert rows('key,val\n1,"{""t"": ""p"", ""c"": [1.0]}"\n')[1] == ("1", '{"t": "p", "c": [1.0]}')
    # Empty fields, quoted and not.
    assert rows('a,b,c\n1,"",""\n2,,\n') == [("a", "b", "c"), ("1", "", ""), ("2", "", "")]
    # A comma in quotes; spaces are text.
    assert rows('John, Doe,"120 any st.","Anytown, WW"\n')[0] == (
        "John",
        " Doe",
        "120 any st.",
        "Anytown, WW",
    )
    # CRLF in quotes on an edge of blocks lost a byte.
    for shift in range(60, 70):
        text = "x" * shift + ',"a\r\nb"\r\n' + "y" * 5 + ',"c"\r\n'
        assert rows(text) == [("x" * shift, "a\r\nb"), ("y" * 5, "c")]
    # A NUL is text.
    assert rows("a\0b,c\n") == [("a\0b", "c")]
    # A quoted line end in the first row of a large file, whose other rows have none.
    big = '"a\nb",c\n' + "1,2\n" * 300_000
    assert len(cdd.csv.pack(big.encode(), header=False)) == 300_001


def test_sniffed_dialects() -> None:
    text = "'a';'b'\n'x;y';'2'\n'z';'3'\n"
    dialect = csv.Sniffer().sniff(text)
    assert rows(text, dialect=dialect) == [("a", "b"), ("x;y", "2"), ("z", "3")]

    class Escaped(csv.Dialect):
        delimiter, quotechar, escapechar, doublequote = ",", '"', "\\", False
        lineterminator, quoting, skipinitialspace = "\n", csv.QUOTE_MINIMAL, True

    assert rows('a, "b\\"c"\nd\\,e, f\n', dialect=Escaped) == [("a", 'b"c'), ("d,e", "f")]
    assert rows('a\t"b\n', dialect="excel-tab", quote=None) == [("a", '"b')]


def test_columns_by_name_and_number() -> None:
    text = b"ts,price,size\n1,2.5,3\n4,5.5,6\n"
    assert list(cdd.csv.pack(text, columns=["size", "ts"])) == [("3", "1"), ("6", "4")]
    assert cdd.csv.pack(text, columns=[-1]).names == ("size",)
    with pytest.raises(KeyError, match=r"'qty'.*ts, price, size"):
        cdd.csv.pack(text, columns=["qty"])
    with pytest.raises(IndexError, match="column 3"):
        cdd.csv.pack(text, columns=[3])


@pytest.mark.parametrize(
    ("text", "options", "place"),
    [
        (b'a,b\n1,x"y\n', {}, (1, 1, 7)),
        (b'a,b\n1,"x"y\n', {}, (1, 1, 9)),
        (b'a,b\n1,"xy\n', {}, (1, 1, 6)),
        (b"a,b\n1\n", {}, (1, 1, 4)),
        (b"a,b\n1,2,3\n", {}, (1, 2, 4)),
        (b"a,b\n1,2,3\n", {"ragged": "pad"}, (1, 2, 4)),
        (b"a,b\n1,\xff\n", {}, (1, 1, 6)),
        (b"a\n\nb\n", {"blank": "error"}, (1, 0, 2)),
        (b"a,b\n1," + b"x" * 70_000, {}, (1, 1, 6)),
        (b'a,b\n1,"' + b"x" * 70_000 + b'"', {"comment": "#"}, (1, 1, 6)),
        (b'a,b,c\n1,"2,3\n', {"strict": False}, (1, 2, 6)),
        (b"a,b\n# 1,2\n\n1\n", {"comment": "#"}, (1, 1, 11)),
    ],
)
def test_bad_text_says_where(text: bytes, options: dict[str, object], place: tuple[int, int, int]) -> None:
    with pytest.raises(cdd.FormatError) as caught:
        cdd.csv.pack(text, **options)
    assert (caught.value.row, caught.value.field, caught.value.offset) == place
    # The same behind a megabyte of good rows, where several threads meet it.
    good = b"good" + b",rows" * text[: text.index(b"\n")].count(b",") + b"\n"
    good *= 2_000_000 // len(good)
    count = good.count(b"\n")
    with pytest.raises(cdd.FormatError) as caught:
        cdd.csv.pack(good + text[text.index(b"\n") + 1 :], **options)
    offset = len(good) - text.index(b"\n") - 1 + place[2]
    there = count - 1 + place[0], place[1], offset
    assert (caught.value.row, caught.value.field, caught.value.offset) == there


def test_text_that_is_not_utf8() -> None:
    with pytest.raises(cdd.UnsupportedError, match="UTF-16"):
        cdd.csv.pack("a,b\n".encode("utf-16"))
    p = cdd.csv.pack(b"a,b\n\xff,2\n", encoding="bytes")
    assert p.bytes(0, 0) == b"\xff"
    with pytest.raises(cdd.FormatError, match="bytes"):
        p.field(0, 0)
    assert rows("\ufeffa,b\n") == [("a", "b")]
    assert rows("a\ufeff,b\n") == [("a\ufeff", "b")]


def test_limits() -> None:
    with pytest.raises(cdd.LimitError, match="max_columns"):
        cdd.csv.pack(b"," * 70_000)
    assert cdd.csv.pack(b"," * 70_000, max_columns=80_000, header=False).columns == 70_001


def test_ragged_rows_that_are_left_out() -> None:
    assert rows("a,b\n1\n2,3\n4,5,6\n", ragged="skip") == [("a", "b"), ("2", "3")]


def test_wrong_options() -> None:
    for options in (
        {"delimiter": ";;"},
        {"delimiter": "\n"},
        {"quote": ","},
        {"ragged": "maybe"},
        {"comment": ","},
    ):
        with pytest.raises(ValueError, match=next(iter(options))):
            cdd.csv.pack(b"a", **options)
    with pytest.raises(TypeError, match="unknown keyword 'sep'"):
        cdd.csv.pack(b"a", sep=";")


def test_sources(tmp_path) -> None:
    import gzip

    text = b"a,b\n1,2\n"
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text))
    for source in (
        path,
        str(path),
        tmp_path / "t.csv.gz",
        io.BytesIO(text),
        bytearray(text),
        memoryview(text),
    ):
        assert list(cdd.csv.pack(source)) == [("1", "2")]
    with path.open("rb") as file:
        assert cdd.csv.count(file) == 1
    with path.open() as file, pytest.raises(TypeError, match="'rb'"):
        cdd.csv.pack(file)
    (tmp_path / "empty.csv").write_bytes(b"")
    assert len(cdd.csv.pack(tmp_path / "empty.csv")) == 0
    with pytest.raises(FileNotFoundError):
        cdd.csv.pack(tmp_path / "none.csv")


def test_out_and_threads() -> None:
    picked = random.Random(5)
    text = b"".join(b'%d,"a ""b"" %d\n",%d\n' % (i, i, picked.randrange(10**9)) for i in range(60_000))
    cdd.set_threads(1)
    try:
        expected = bytes(cdd.csv.pack(text))
        out = bytearray(len(expected) + 10)
        for threads in range(2, 9):
            cdd.set_threads(threads)
            assert bytes(cdd.csv.pack(text, out=out)) == expected
    finally:
        cdd.set_threads(0)
    with pytest.raises(ValueError, match="are needed"):
        cdd.csv.pack(text, out=bytearray(100))
