"""A repository of icechunk to begin with: on disk or in memory, with an array of two members."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdd import logical

zarr = pytest.importorskip("zarr")
icechunk = pytest.importorskip("icechunk")

BOOKS = np.round(np.random.default_rng(0).normal(100, 1, (3000, 50, 3)), 1).astype(np.float32)


@pytest.fixture(params=["disk", "memory"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A repository that is there: a path, or the object of one in memory."""
    if request.param == "memory":
        return icechunk.Repository.create(icechunk.in_memory_storage())
    icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "repo")))
    return tmp_path / "repo"


def begin(where: Any, rows: int = 1024, **options: Any) -> str:
    """A repository with the array "books" of two members."""
    with logical.transaction(where, "first", create=isinstance(where, Path)) as t:
        options = {"shape": (0, 50, 3), "dtype": "f4", "grid": (512, 50, 3), **options}
        a = t.create("books", **options)
        a.append(BOOKS[:512], codec={"compressors": zarr.codecs.BloscCodec(cname="lz4")})
        a.append(BOOKS[512:rows], codec={"compressors": zarr.codecs.ZstdCodec(level=9)}, chunks=(64, 50, 3))
    assert t.version is not None
    return t.version
