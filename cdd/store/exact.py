"""Values as items of another dtype, where they stay the same values."""

import math

import numpy as np
import numpy.typing as npt

from cdd.dtypes import Array, DType, array_of


def exact_items(given: Array, dtype: DType) -> Array:
    """Values as items of a dtype, the same ones: NaN and NaT only of dtypes that have them. Raises TypeError
    for other kinds of values, ValueError where `dtype` lacks one of them."""
    if given.dtype == dtype:
        return given
    if dtype.kind in "mM" and given.dtype.kind == dtype.kind:
        return _exact_times(given, dtype)
    if dtype.kind in "mM" or not _is_number(given.dtype) or (given.dtype.kind == "c" and dtype.kind != "c"):
        raise TypeError(f"values of {given.dtype} are no items of {dtype}")
    if dtype.kind == "c":
        return _exact_complex(given, dtype)
    if dtype.kind in "biu":
        _check_whole(given, dtype)
    with np.errstate(all="ignore"):
        found = given.astype(dtype)
        same = _is_same(found, given)
    if not bool(np.all(same)):
        raise ValueError(f"values of {given.dtype} are not ones of {dtype}, exactly")
    return found


def nearest_items(values: npt.ArrayLike, dtype: DType) -> Array:
    """exact_items(), but Python's floats mean the nearest items: of those that are finite, a finite one."""
    given = array_of(values)
    is_python = not isinstance(values, np.ndarray | np.generic)
    if not is_python or given.dtype.kind not in "fc" or not _is_real(dtype, given.dtype.kind):
        return exact_items(given, dtype)
    with np.errstate(all="ignore"):
        items = given.astype(dtype)
    if bool((np.isfinite(given) & ~np.isfinite(items)).any()):
        raise ValueError(f"values of {given.dtype} are larger than {dtype} holds")
    return items


def _is_number(dtype: DType) -> bool:
    return dtype.kind in "biufc" or dtype.name == "bfloat16"


def _is_real(dtype: DType, kind: str) -> bool:
    """Whether a dtype has the nearest item of a Python float, or, where `kind` is "c", of a complex."""
    return dtype.kind == "c" or (kind == "f" and (dtype.kind == "f" or dtype.name == "bfloat16"))


def _is_same(found: Array, given: Array) -> Array:
    """Whether items, that were made of others, are the same numbers."""
    same: Array
    if given.dtype.kind in "biu" and found.dtype.kind not in "biu":
        wide = found.astype(np.float64)
        low, high = _bounds(given.dtype)
        inside = (wide >= low) & (wide < high)
        same = inside & (np.where(inside, wide, 0).astype(given.dtype) == given)
        return same
    back = found.astype(given.dtype)
    if given.dtype.kind in "biu":
        same = (back == given) & ((found < 0) == (given < 0))
    else:
        same = (back == given) | (np.isnan(back) & np.isnan(given))
    return same


def _bounds(dtype: DType) -> tuple[float, float]:
    """The least integer of a dtype, and the first above all; both are floats exactly."""
    if dtype.kind == "b":
        return 0.0, 2.0
    info = np.iinfo(dtype)
    return float(info.min), math.ldexp(1.0, dtype.itemsize * 8 - (dtype.kind == "i"))


def _check_whole(given: Array, dtype: DType) -> None:
    """Looks before: what floats become as integers that lack them differs from machine to machine."""
    if given.dtype.kind in "biu":
        return
    low, high = _bounds(dtype)
    with np.errstate(all="ignore"):
        inside = (given >= low) & (given < high)  # False of NaN
    if not bool(np.all(inside)):
        raise ValueError(f"values of {given.dtype} are not ones of {dtype}: {given[~inside].flat[0]}")


def _exact_complex(given: Array, dtype: DType) -> Array:
    part = np.dtype(f"f{dtype.itemsize // 2}")
    if given.dtype.kind != "c":
        return exact_items(given, part).astype(dtype)
    found = np.empty(given.shape, dtype)
    found.real, found.imag = exact_items(given.real, part), exact_items(given.imag, part)
    return found


# Attoseconds of each unit of time that has a fixed length.
_ATTOSECONDS = {"W": 604800 * 10**18, "D": 86400 * 10**18, "h": 3600 * 10**18, "m": 60 * 10**18, "s": 10**18}
_ATTOSECONDS |= {"ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 1000, "as": 1}
MOST_TICKS = 2**63 - 1


def attoseconds(dtype: DType) -> int | None:
    """The length of a tick of datetime64 or timedelta64; None of months, years and where there is no unit."""
    unit, count = np.datetime_data(dtype)
    return _ATTOSECONDS[unit] * count if unit in _ATTOSECONDS else None


def _exact_times(given: Array, dtype: DType) -> Array:
    old, new = attoseconds(given.dtype), attoseconds(dtype)
    if old is not None and new is not None:
        return _exact_ticks(given, dtype, old, new)
    wanted = f"values of {given.dtype} are not whole ones of {dtype}"
    if not np.can_cast(given.dtype, dtype, "same_kind"):  # months have no number of days
        raise ValueError(wanted)
    try:
        found = given.astype(dtype)
        back = found.astype(given.dtype)
    except OverflowError:
        raise ValueError(wanted) from None
    if not bool(np.all((back == given) | (np.isnat(given) & np.isnat(found)))):
        raise ValueError(wanted)
    return found


def _exact_ticks(given: Array, dtype: DType, old: int, new: int) -> Array:
    """By whole numbers: NumPy knows no factor from days to picoseconds."""
    common = math.gcd(old, new)
    by, of = old // common, new // common  # `of` ticks are `by` of the others
    is_nat = np.isnat(given)
    ticks = np.where(is_nat, 0, given.astype(np.int64))
    parts = ticks // of if of <= MOST_TICKS else np.zeros_like(ticks)
    if bool(np.any(ticks != parts * min(of, MOST_TICKS))):
        raise ValueError(f"values of {given.dtype} are not whole ones of {dtype}")
    if bool(np.any(np.abs(parts) > MOST_TICKS // by)):
        raise ValueError(f"values of {given.dtype} are out of the range of {dtype}")
    made = (parts * min(by, MOST_TICKS)).astype(dtype)
    return np.where(is_nat, np.array("NaT", dtype), made)
