"""NumPy dtypes and the dtype codes of a cdd file; arrays as the buffers that the core takes.

A code is a uint16: the kind in the low byte, the unit of datetime64 and timedelta64 in the high byte (the
file format's table). The core sees buffers only, so items whose dtype has no buffer protocol (datetime64,
timedelta64, bfloat16) are passed as integers of their size, which is the same memory.
"""

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
DType = np.dtype[Any]

_BFLOAT16 = 11
_DATETIME, _TIMEDELTA = 16, 17
_KINDS = {
    1: "bool", 2: "int8", 3: "uint8", 4: "int16", 5: "uint16", 6: "int32", 7: "uint32", 8: "int64",
    9: "uint64", 10: "float16", 12: "float32", 13: "float64", 14: "complex64", 15: "complex128",
}  # fmt: skip
_UNITS = ("generic", "Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")

_CODES: dict[DType, int] = {np.dtype(name): code for code, name in _KINDS.items()}
_DTYPES: dict[int, DType] = {code: dtype for dtype, code in _CODES.items()}
_SUPPORTED = (
    "supported are bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64, complex64, "
    "complex128, datetime64 and timedelta64"
)


def code_of(dtype: DType) -> int:
    """The code of a dtype in either byte order. Raises TypeError for what a file cannot hold."""
    code = _CODES.get(dtype)
    if code is None:
        code = _code_of_other(dtype)
        _CODES[dtype] = code
    return code


def _code_of_other(dtype: DType) -> int:
    if dtype.kind in "mM":
        unit, count = np.datetime_data(dtype)
        if count != 1:
            one = f"{dtype.type.__name__}[{unit}]"
            raise TypeError(f"{dtype} counts {count} {unit} a step: convert it to a unit of one, as {one}")
        return (_DATETIME if dtype.kind == "M" else _TIMEDELTA) | _UNITS.index(unit) << 8
    if dtype.name == "bfloat16" and dtype.itemsize == 2:
        return _BFLOAT16
    native = dtype.newbyteorder("=")
    if native in _CODES:
        return _CODES[native]
    raise TypeError(f"dtype {dtype} cannot be stored: {_SUPPORTED}")


def dtype_of(code: int) -> DType:
    """The dtype of a code, in native byte order. bfloat16 needs ml_dtypes, else ImportError."""
    dtype = _DTYPES.get(code)
    if dtype is None:
        kind, unit = code & 0xFF, _UNITS[code >> 8]
        if kind == _BFLOAT16:
            dtype = _bfloat16()
        else:
            name = "datetime64" if kind == _DATETIME else "timedelta64"
            dtype = np.dtype(name if unit == "generic" else f"{name}[{unit}]")
        _DTYPES[code] = dtype
        _CODES[dtype] = code
    return dtype


def _bfloat16() -> DType:
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError("this store holds bfloat16, which NumPy has from the package ml_dtypes") from None
    dtype: DType = np.dtype(ml_dtypes.bfloat16)
    return dtype


def buffer_dtype(dtype: DType) -> DType:
    """The dtype under which the same items have a buffer."""
    if dtype.kind in "mM":
        return np.dtype(np.int64)
    if code_of(dtype) == _BFLOAT16:
        return np.dtype(np.uint16)
    return dtype


def named(dtype: npt.DTypeLike) -> DType:
    """np.dtype(), which also knows the name "bfloat16"."""
    return _bfloat16() if isinstance(dtype, str) and dtype == "bfloat16" else np.dtype(dtype)


def array_of(values: npt.ArrayLike) -> Array:
    """np.asarray(), which makes no other values of what is given: TypeError for a masked array, for a list of
    texts and other things, and for one of floats and of integers that floats do not hold; for a
    table of several dtypes, ValueError for nulls of one. A list of texts is an array of objects: NumPy's own
    texts lose NULs at their ends."""
    if isinstance(values, np.ndarray):
        if "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray):
            raise TypeError("a masked array cannot be stored, its mask would be lost: store both parts")
        return values
    array = np.asarray(values)
    _check_table(values, array)
    if array.dtype.kind == "U" and array.ndim and not hasattr(values, "dtype"):
        items = np.array(values, object)
        other = [item for item in items.ravel() if not isinstance(item, str)]
        if other:
            raise TypeError(f"texts are given together with {other[0]!r}")
        return items
    _check_integers(values, array)
    return array


def _check_integers(values: Any, array: Array) -> None:
    """Raises TypeError where NumPy rounded integers of a list, to have one dtype for all."""
    if array.dtype.kind != "f" or hasattr(values, "dtype") or not bool((np.abs(array) >= 2.0**53).any()):
        return
    for item in np.array(values, object).ravel():
        if isinstance(item, int | np.integer) and int(float(item)) != int(item):
            raise TypeError(f"{item} is given together with numbers that make it a float, which lacks it")


def _check_table(given: Any, array: Array) -> None:
    """Raises TypeError for a table of pandas, polars or pyarrow of which NumPy made an array of the widest
    dtype of all, ValueError for one with nulls, or a series of one, which NumPy made NaN."""
    series = _series_of(given)
    dtypes = {str(getattr(one, "dtype", getattr(one, "type", None))): None for one in series}
    if len(dtypes) > 1 or (array.dtype == object and hasattr(given, "columns")):
        raise TypeError(
            f"a table whose columns are not numbers of one dtype ({', '.join(dtypes) or 'objects'}) is no "
            "array: cdd.dataset.columns_of() gives its columns, for a dataset"
        )
    for number, one in enumerate(series):
        if (row := _null_in(one)) is not None:
            at = f"column {number} has a null" if len(series) > 1 else "there is a null"
            raise ValueError(
                f"{at} in row {row}, and arrays have none: fill it, or let "
                "cdd.dataset.columns_of(table, fill=) do that"
            )


def _series_of(given: Any) -> list[Any]:
    """The columns of a table of pandas, polars or pyarrow, a single one of such, or none."""
    for method in ("iter_columns", "itercolumns"):  # polars, pyarrow
        if hasattr(given, method):
            return list(getattr(given, method)())
    if hasattr(given, "iloc") and hasattr(given, "dtypes") and getattr(given, "ndim", 0) == 2:
        return [given.iloc[:, at] for at in range(given.shape[1])]
    return [given] if hasattr(given, "isna") or hasattr(given, "null_count") else []


def _null_in(series: Any) -> int | None:
    """The row of its first null. NaN and NaT of NumPy's dtypes are values."""
    if isinstance(getattr(series, "dtype", None), np.dtype):
        return None
    count = getattr(series, "null_count", None)
    if count is not None and not (count() if callable(count) else count):
        return None
    missing = series.isna() if hasattr(series, "isna") else series.is_null()
    found = np.flatnonzero(np.asarray(missing))
    return int(found[0]) if len(found) else None


def storable(rows: npt.ArrayLike) -> tuple[int, Array, int]:
    """The dtype code of `rows`; the rows as an array with a buffer, of any strides and byte order; how many
    bytes of each item are in reverse, 0 where the order is the machine's. Nothing is copied."""
    if type(rows) is not np.ndarray:
        if "numpy.ma" in sys.modules and isinstance(rows, np.ma.MaskedArray):
            raise TypeError("a masked array cannot be stored, its mask would be lost: store both parts")
        given, rows = rows, np.asarray(rows)
        _check_table(given, rows)
        _check_integers(given, rows)
    dtype = rows.dtype
    code = code_of(dtype)
    if rows.ndim == 0:
        raise ValueError("a scalar has no rows: append an array whose first dimension counts them")
    native = dtype if dtype.isnative else dtype.newbyteorder("=")
    item = buffer_dtype(native if native in _CODES else dtype_of(code))
    if dtype.isnative:
        return code, rows if dtype is item else rows.view(item), 0
    swapped = item.itemsize // 2 if item.kind == "c" else item.itemsize
    return code, rows.view(item), swapped
