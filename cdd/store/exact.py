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


def _exact_times(given: Array, dtype: DType) -> Array:
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
