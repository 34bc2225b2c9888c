"""Many rows in one call: windows that overlap in every way, and scans by several threads of damaged files."""

from collections.abc import Iterator

import numpy as np
import pytest

import cdd

ROWS = 6000


@pytest.fixture(scope="module")
def book() -> np.ndarray:
    rng = np.random.default_rng(8)
    rows = np.repeat(rng.integers(0, 50, (ROWS // 4, 50, 3)), 4, axis=0)
    rows[:, :, 2] += rng.integers(0, 2, (ROWS, 50))
    return rows.astype(np.float32)


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    cdd.set_threads(request.param)
    yield request.param
    cdd.set_threads(0)


def windows_of(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    if kind == "sliding":
        return np.arange(100, 160), 250
    if kind == "equal":
        return np.repeat(rng.integers(0, ROWS - 300, 6), 5), 300
    if kind == "chains":
        return np.arange(0, ROWS - 400, 170), 400
    if kind == "rows":
        return rng.integers(0, ROWS, 900), 1
    return rng.integers(0, ROWS - 300, 60), int(rng.integers(1, 300))


@pytest.mark.parametrize("kind", ["sliding", "equal", "chains", "rows", "any", "any", "any"])
@pytest.mark.parametrize("codec", ["levels", "levels+zstd", "numeric", "raw", "lz4"])
@pytest.mark.parametrize("verify", ["stored", "full"])
def test_windows(
    book: np.ndarray, threads: int, kind: str, codec: str, verify: str, request: pytest.FixtureRequest
) -> None:
    rng = np.random.default_rng(sum(request.node.name.encode()))
    memory = cdd.Memory()
    cdd.save(memory, book, codec=codec, chunk_rows=int(rng.choice([7, 64, 1000])))
    reader = cdd.Reader(memory, check=verify)
    starts, rows = windows_of(kind, rng)
    found = np.full((len(starts) + 1, rows, 50, 3), -1, np.float32)
    reader.read_windows(starts, rows, out=found[:-1])
    assert np.array_equal(found[:-1], np.stack([book[a : a + rows] for a in starts.tolist()]))
    assert (found[-1] == -1).all()
    part = reader.read_windows(starts, rows, levels=slice(5, 9), features=2)
    assert np.array_equal(part, found[:-1, :, 5:9, 2])


def test_scans_of_damaged_files(book: np.ndarray) -> None:
    """By several threads as by one: the same rows or the same kind of error."""
    memory = cdd.Memory()
    cdd.save(memory, book, codec="levels", chunk_rows=32)
    whole = bytes(memory)
    reader = cdd.open(whole)
    first = min(chunk.offset for chunk in reader.chunk_infos)
    records = {chunk.offset: chunk.offset + chunk.stored_bytes for chunk in reader.chunk_infos}
    gaps, at = [], first
    while at < len(whole):
        if at in records:
            at = records[at]
        else:
            gaps.append(at)
            at += 1
    index = [*range(first), *gaps]
    failed = 0
    for at in np.random.default_rng(2).choice(index, 400).tolist():
        damaged = bytearray(whole)
        damaged[at] ^= 0x41
        try:
            reader = cdd.open(bytes(damaged))
            rows = len(reader)
        except (cdd.CddError, ValueError):
            continue
        begin, end = sorted((at * 7919 % (rows // 8 + 1), rows - at * 104729 % (rows // 8 + 1)))
        outcomes = []
        for threads in (1, 4):
            cdd.set_threads(threads)
            try:
                outcomes.append(reader.read(begin, end).tobytes())
            except cdd.CddError as error:
                outcomes.append(type(error))
        cdd.set_threads(0)
        assert outcomes[0] == outcomes[1], at
        if isinstance(outcomes[0], type):
            failed += 1
        else:
            assert outcomes[0] == book[begin:end].tobytes()
    assert failed > 20
