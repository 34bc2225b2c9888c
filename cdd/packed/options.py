"""How CSV text is read: the keywords of cdd.csv, checked, and as the core takes them."""

import csv
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict

from cdd.arguments import flag, shown, size


class CsvOptions(TypedDict, total=False):
    """The keywords that all functions of cdd.csv share; cdd.csv's text explains them."""

    dialect: type[csv.Dialect] | csv.Dialect | str | None
    delimiter: str
    quote: str | None
    strict: bool
    comment: str | None
    skip: int
    ragged: Literal["error", "pad", "skip"]
    blank: Literal["skip", "field", "error"]
    encoding: Literal["utf8", "bytes"]
    columns: Sequence[int | str] | None
    max_row_bytes: int
    max_columns: int


@dataclass(frozen=True)
class Options:
    """Checked."""

    delimiter: int = ord(",")
    quote: int = ord('"')
    strict: bool = True
    utf8: bool = True
    comment: int = -1
    ragged: str = "error"
    blank: str = "skip"
    skip: int = 0
    columns: tuple[int, ...] = ()
    max_row_bytes: int = 1 << 30
    max_columns: int = 1 << 16
    names: tuple[int | str, ...] = ()  # columns as they were asked for, until numbers are known
    module: Any = None  # a dialect that the csv module has to read

    def core(self) -> tuple[Any, ...]:
        return (
            *(self.delimiter, self.quote, self.strict, self.utf8, self.comment, self.ragged, self.blank),
            *(self.skip, self.columns, self.max_row_bytes, self.max_columns),
        )

    def numbered(self, header: Sequence[str]) -> "Options":
        """With columns as numbers, where they were given by names of this header."""
        numbers = []
        for column in self.names:
            if not isinstance(column, str):
                number = column + len(header) if column < 0 else column
                if not 0 <= number < len(header):
                    raise IndexError(f"column {column} is asked for, rows have {len(header)}")
            elif header.count(column) != 1:
                raise KeyError(
                    f"{header.count(column)} columns are called {column!r}, there are {listed(header)}"
                )
            else:
                number = header.index(column)
            numbers.append(number)
        return replace(self, columns=tuple(numbers), names=())


def listed(names: Sequence[Any]) -> str:
    """Names of columns, for errors."""
    return ", ".join(map(str, names)) if names else "none: the text has no row"


def _character(name: str, value: Any) -> int:
    if not isinstance(value, str) or len(value) != 1 or not value.isascii():
        raise ValueError(f"{name} is one ASCII character, not {shown(value)}")
    return ord(value)


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"{name} is one of {', '.join(map(repr, allowed))}, not {shown(value)}")
    return str(value)


def _of_dialect(dialect: Any) -> dict[str, Any]:
    """What a dialect says, or the dialect itself where only the csv module reads it."""
    given = csv.get_dialect(dialect) if isinstance(dialect, str) else dialect
    try:
        checked = csv.reader([], given).dialect
    except (TypeError, csv.Error) as error:
        raise ValueError(f"dialect is one of the csv module's, not {shown(dialect)}: {error}") from None
    if checked.escapechar is not None or checked.skipinitialspace:
        return {"module": given}  # the csv module writes it anew, with commas and quotes
    none = checked.quoting == csv.QUOTE_NONE or checked.quotechar is None
    return {"delimiter": checked.delimiter, "quote": None if none else checked.quotechar}


_PLAIN = Options()


def options_of(given: CsvOptions, function: Callable[..., Any] | None = None) -> Options:
    """Raises ValueError and TypeError that name the keyword; `function` has keywords of its own."""
    if not given:
        return _PLAIN  # which small texts would take longer to make than to pack
    unknown = set(given) - set(CsvOptions.__annotations__)
    if unknown:
        own = [] if function is None else inspect.signature(function).parameters.values()
        known = [p.name for p in own if p.kind == p.KEYWORD_ONLY] + sorted(CsvOptions.__annotations__)
        raise TypeError(f"unknown keyword {sorted(unknown)[0]!r}: there are {', '.join(known)}")
    made = _of_dialect(given["dialect"]) if given.get("dialect") is not None else {}
    quote = given.get("quote", made.get("quote", '"'))
    comment = given.get("comment")
    columns = given.get("columns")
    if columns is not None and (isinstance(columns, str) or len(columns) == 0):
        raise ValueError(f"columns is a list of names and numbers, not {shown(columns)}")
    return Options(
        delimiter=_character("delimiter", given.get("delimiter", made.get("delimiter", ","))),
        quote=-1 if quote is None else _character("quote", quote),
        strict=flag("strict", given.get("strict", True)),
        utf8=_one_of("encoding", given.get("encoding", "utf8"), ("utf8", "bytes")) == "utf8",
        comment=-1 if comment is None else _character("comment", comment),
        ragged=_one_of("ragged", given.get("ragged", "error"), ("error", "pad", "skip")),
        blank=_one_of("blank", given.get("blank", "skip"), ("skip", "field", "error")),
        skip=size("skip", given.get("skip", 0), 0, 1 << 62),
        max_row_bytes=size("max_row_bytes", given.get("max_row_bytes", 1 << 30), 1, 1 << 31),
        max_columns=size("max_columns", given.get("max_columns", 1 << 16), 1, 1 << 24),
        names=tuple(columns) if columns is not None else (),
        module=made.get("module"),
    )
