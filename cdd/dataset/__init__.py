"""Aligned columns in a folder: appended together, versioned, found by time.

    with cdd.dataset.open("btc", "a") as w:
        w.append(time=times, ob=books, price=prices)   # the same number of rows, all or none
        w.flush()                                      # on the disk, seen by readers that refresh
        w.commit("first day")                          # a version
    ds = cdd.dataset.open("btc")                       # what was flushed; as_of= a version, tag or time
    ds["ob"][10_000:10_064]                            # a column has the face of a Reader
    ds.read_windows(starts, 64, columns=("ob", "time"))
    ds["ob"][ds.between(t0, t1)]

open           a Dataset or a DatasetWriter
aopen          the same for asyncio: aread_windows, aappend, aflush, acommit, aclose, afollow
transaction    changes rows, columns, attributes; joins what is small; commits all of it as one version
expire, prune  let go of old versions, and of their files
tag, untag     name a version, so that it is kept
repair         mends what is damaged, in a version that says what is lost
adopt          makes a dataset of single files
convert_bcolz  makes a dataset of a bcolz folder
columns_of     the columns of a DataFrame or an Arrow table, for append()
"""

from cdd.dataset.adopting import adopt
from cdd.dataset.collecting.table_writer import TableWriter
from cdd.dataset.collecting.writer import DatasetWriter
from cdd.dataset.column import Column
from cdd.dataset.convert import ConvertReport, convert_bcolz
from cdd.dataset.frames import columns_of
from cdd.dataset.opened import Dataset
from cdd.dataset.opening import aopen, open
from cdd.dataset.protocol.directory import Directory, LocalDirectory, MemoryDirectory
from cdd.dataset.protocol.errors import (
    ConflictError,
    DatasetError,
    OrderError,
    VersionExpiredError,
    VersionNotFoundError,
)
from cdd.dataset.protocol.log import Version
from cdd.dataset.pruning import PruneReport, expire, prune, tag, untag
from cdd.dataset.repairing import DatasetRepairReport, LostRows, repair
from cdd.dataset.table import Table
from cdd.dataset.transaction import Transaction, transaction

__all__ = [
    "Column",
    "ConflictError",
    "ConvertReport",
    "Dataset",
    "DatasetError",
    "DatasetRepairReport",
    "DatasetWriter",
    "Directory",
    "LocalDirectory",
    "LostRows",
    "MemoryDirectory",
    "OrderError",
    "PruneReport",
    "Table",
    "TableWriter",
    "Transaction",
    "Version",
    "VersionExpiredError",
    "VersionNotFoundError",
    "adopt",
    "aopen",
    "columns_of",
    "convert_bcolz",
    "expire",
    "open",
    "prune",
    "repair",
    "tag",
    "transaction",
    "untag",
]
