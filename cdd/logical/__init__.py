"""Several arrays, each stored its own way, as one: zarr arrays with codecs of their own, .cdd files, columns
of datasets, NumPy arrays, and whatever has shape, dtype and []. A manifest says which region lies in which
member; every member stays readable by its own tools.

    a = cdd.logical.open("books.json", allow=["."])       # or an icechunk repository, a zarr store or group
    a[10_000:10_064], a[:, 25:30, 0], a[[3, 9, 4]]        # NumPy's rules; only the members that are needed
    a.read(i, j, out=buffer), a.read_windows(starts, 64)  # as a cdd.Reader

    with cdd.logical.transaction("repo", "November") as t:
        t["books"].append(rows, codec={"compressors": ...})  # a member with a codec of its own

zarr, icechunk, dask and xarray are imported when they are first needed: pip install "cdd[zarr]".
"""

from cdd.logical.array import Array, OuterIndex
from cdd.logical.checking import LogicalReport
from cdd.logical.errors import (
    AlignmentError,
    ConflictError,
    CoverageError,
    CrossRegionError,
    ForkError,
    LogicalError,
    ManifestError,
    MemberError,
    OverlapError,
    ReadOnlyMemberError,
)
from cdd.logical.interop import to_dask, to_xarray
from cdd.logical.lazy import Lazy
from cdd.logical.manifest import Manifest, Member, Region
from cdd.logical.opening import names, open
from cdd.logical.transaction import Transaction, append, transaction
from cdd.logical.upkeep import check, prune, verify
from cdd.logical.writing import WritableArray

__all__ = [
    "AlignmentError",
    "Array",
    "ConflictError",
    "CoverageError",
    "CrossRegionError",
    "ForkError",
    "Lazy",
    "LogicalError",
    "LogicalReport",
    "Manifest",
    "ManifestError",
    "Member",
    "MemberError",
    "OuterIndex",
    "OverlapError",
    "ReadOnlyMemberError",
    "Region",
    "Transaction",
    "WritableArray",
    "append",
    "check",
    "names",
    "open",
    "prune",
    "to_dask",
    "to_xarray",
    "transaction",
    "verify",
]
