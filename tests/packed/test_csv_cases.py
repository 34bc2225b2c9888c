"""What the tests of CPython's csv module and of csv-spectrum look at, asked of cdd: rows that are written out
here, and those of csv.reader."""

import csv
import io

import pytest

import cdd
import cdd.csv

# (text, options, rows), options as the csv module has them
CASES: list[tuple[str, dict[str, object], list[tuple[str, ...]]]] = [
    # Simple rows, empty fields, no line end.
    ("", {}, []),
    ("abc", {}, [("abc",)]),
    ("1,2,3,4,5", {}, [("1", "2", "3", "4", "5")]),
    ("1,2\n3,4\n", {}, [("1", "2"), ("3", "4")]),
    (",", {}, [("", "")]),
    ("a,", {}, [("a", "")]),
    (",a", {}, [("", "a")]),
    (",,,\n", {}, [("", "", "", "")]),
    ("\n", {}, []),
    ("\n\n\n", {}, []),
    ("a\n\nb\n", {}, [("a",), ("b",)]),
    (" a , b \n", {}, [(" a ", " b ")]),
    # Line ends: each of the three, mixed, and as text within quotes.
    ("a,b\rc,d\r", {}, [("a", "b"), ("c", "d")]),
    ("a,b\r\nc,d\r\n", {}, [("a", "b"), ("c", "d")]),
    ("a,b\rc,d\ne,f\r\ng,h", {}, [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h")]),
    ("a\n\rb", {}, [("a",), ("b",)]),
    ('"1\n2",3\n', {}, [("1\n2", "3")]),
    ('"1\r2",3\r', {}, [("1\r2", "3")]),
    ('"1\r\n2",3\r\n', {}, [("1\r\n2", "3")]),
    ('a,"b\n\n\nc"\n', {}, [("a", "b\n\n\nc")]),
    # Quotes: empty, alone, doubled, of everything, with delimiters within.
    ('""', {}, [("",)]),
    ('"",""\n', {}, [("", "")]),
    ('""""\n', {}, [('"',)]),
    ('""""""\n', {}, [('""',)]),
    ('"a""b"\n', {}, [('a"b',)]),
    ('"""a"""\n', {}, [('"a"',)]),
    ('"a,b",c\n', {}, [("a,b", "c")]),
    ('1,"2,3",4,"5"\n', {}, [("1", "2,3", "4", "5")]),
    ('"a","b"\n"c","d"', {}, [("a", "b"), ("c", "d")]),
    ('a,"She said ""hi"", and left.",c\n', {}, [("a", 'She said "hi", and left.', "c")]),
    ('"\'",a\n', {}, [("'", "a")]),
    # Other characters.
    ("a;b;'c;d'\n", {"delimiter": ";", "quotechar": "'"}, [("a", "b", "c;d")]),
    ("a\tb\t\n", {"delimiter": "\t"}, [("a", "b", "")]),
    ("a:b:c,d\n", {"delimiter": ":"}, [("a", "b", "c,d")]),
    ("'it''s',x\n", {"quotechar": "'"}, [("it's", "x")]),
    ('1,"2"\n', {"quoting": csv.QUOTE_NONE}, [("1", '"2"')]),
    ('1,",3,",5\n', {"quoting": csv.QUOTE_NONE}, [("1", '"', "3", '"', "5")]),
    ('1,",3,",5\n', {}, [("1", ",3,", "5")]),
    # Dialects that the csv module itself reads.
    ("a, b, c\n", {"skipinitialspace": True}, [("a", "b", "c")]),
    ('a, "b, c"\n', {"skipinitialspace": True}, [("a", "b, c")]),
    ("a,b\\,c\n", {"escapechar": "\\"}, [("a", "b,c")]),
    ('"a\\"b",c\n', {"escapechar": "\\", "doublequote": False}, [('a"b', "c")]),
    # Characters beyond ASCII.
    ("\u00fcber,\u65e5\u672c\n", {}, [("\u00fcber", "\u65e5\u672c")]),
    ("a,\U0001f600\n", {}, [("a", "\U0001f600")]),
    ("\u2028a,b\x85c\n", {}, [("\u2028a", "b\x85c")]),  # no line ends
    ("a\x00b,\x00\n", {}, [("a\x00b", "\x00")]),
    ("a\x0bb\x0cc,\x1c\x1d\n", {}, [("a\x0bb\x0cc", "\x1c\x1d")]),
    # Long ones: fields over the csv module's buffer, many fields.
    ("x" * 50_000 + "," + "y" * 50_000 + "\n", {}, [("x" * 50_000, "y" * 50_000)]),
    ('"' + 'a""' * 20_000 + '"\n', {}, [('a"' * 20_000,)]),
    (",".join(map(str, range(5000))) + "\n", {}, [tuple(map(str, range(5000)))]),
]

# Not of csv.reader's strict mode: (text, its rows, the row and field of the error)
OUT_OF_PLACE = [
    ('"ab"c\n', [("abc",)], (0, 0)),
    ('ab"c"\n', [('ab"c"',)], (0, 0)),
    ('a,"b"c"d"\n', [("a", 'bc"d"')], (0, 1)),
    ('x\n"a\n', [("x",), ("a\n",)], (1, 0)),
    ('a,b"\n', [("a", 'b"')], (0, 1)),
    ('"a" ,b\n', [("a ", "b")], (0, 0)),
    (' "a",b\n', [(' "a"', "b")], (0, 0)),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_cases(number: int) -> None:
    text, options, expected = CASES[number]

    class Dialect(csv.excel):
        pass

    for name, value in options.items():
        setattr(Dialect, name, value)
    of_module = [tuple(row) for row in csv.reader(io.StringIO(text, newline=""), Dialect) if row]
    assert of_module == expected
    for version in (1, 2):
        found = cdd.csv.pack(text.encode(), header=False, dialect=Dialect, version=version)
        assert list(found) == expected
    columns = cdd.csv.read(text.encode(), "text", header=False, dialect=Dialect)
    assert [list(columns[name]) for name in columns.names] == [list(c) for c in zip(*expected, strict=True)]


@pytest.mark.parametrize(("text", "lenient", "place"), OUT_OF_PLACE)
def test_quotes_out_of_place(text: str, lenient: list[tuple[str, ...]], place: tuple[int, int]) -> None:
    assert [tuple(row) for row in csv.reader(io.StringIO(text, newline=""))] == lenient
    assert list(cdd.csv.pack(text.encode(), header=False, strict=False)) == lenient
    with pytest.raises(cdd.FormatError) as caught:
        cdd.csv.pack(text.encode(), header=False)
    assert (caught.value.row, caught.value.field) == place
    with pytest.raises(cdd.FormatError):
        cdd.csv.read(text.encode(), header=False)
