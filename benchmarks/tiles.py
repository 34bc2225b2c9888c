"""CPU seconds for a GB of frames into tiles, frame by frame, beside other writers; and reading them back.

    python3 dev.py bench tiles [--peers] [--frames N] [--folder PATH] [--parts ...]

Two sets: frames like those of an sCMOS camera (uint16, 2048 x 2048, 8 bits of entropy), and smoother ones.
Each writer runs in a process of its own, `--times` times, in turns. The least CPU time counts, since others
may use the machine. Files lie in memory (/dev/shm) unless --folder names another place. Peers get whole
shards at a time, which is what they are fastest with; cdd and acquire-zarr get one frame at a time.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tiles_frames import HEIGHT, WIDTH, frames_of

TILE, SHARD = (32, 256, 256), (64, 1024, 1024)
CODECS = ("raw", "blosc-lz4", "blosc-zstd", "auto")


def with_cdd(path: str, frames: np.ndarray, codec: str, scales: int = 1) -> None:
    import cdd.tiles

    with cdd.tiles.open(
        path, "w", shape=(None, HEIGHT, WIDTH), dtype="uint16", tile_shape=TILE, shard_shape=SHARD,
        codec=codec, durability="none", dimension_names="tyx", scales=scales,
    ) as w:  # fmt: skip
        for frame in frames:
            w.append(frame)


def with_pyramid(path: str, frames: np.ndarray, codec: str) -> None:
    with_cdd(path, frames, codec, scales=3)


def with_tensorstore(path: str, frames: np.ndarray, codec: str) -> None:
    import tensorstore as ts

    inner: list[dict[str, Any]] = [{"name": "bytes", "configuration": {"endian": "little"}}]
    if codec != "raw":
        cname = "lz4" if codec == "blosc-lz4" else "zstd"
        blosc = {"cname": cname, "clevel": 1 if cname == "zstd" else 5, "shuffle": "shuffle"}
        inner.append({"name": "blosc", "configuration": blosc})
    index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
    sharding = {"chunk_shape": list(TILE), "codecs": inner, "index_codecs": index}
    store = ts.open(
        {
            "driver": "zarr3",
            "kvstore": {"driver": "file", "path": path, "file_io_sync": False},
            "metadata": {
                "shape": list(frames.shape), "data_type": "uint16",
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(SHARD)}},
                "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
            },
        },
        create=True,
    ).result()  # fmt: skip
    for first in range(0, len(frames), SHARD[0]):
        last = min(first + SHARD[0], len(frames))
        store[first:last].write(frames[first:last]).result()


def with_zarr(path: str, frames: np.ndarray, codec: str) -> None:
    import zarr
    from zarr.codecs import BloscCodec

    packed = None
    if codec != "raw":
        cname = "lz4" if codec == "blosc-lz4" else "zstd"
        packed = BloscCodec(cname=cname, clevel=1 if cname == "zstd" else 5, shuffle="shuffle")
    array = zarr.create_array(
        path, shape=frames.shape, dtype="uint16", chunks=TILE, shards=SHARD, compressors=packed
    )
    for first in range(0, len(frames), SHARD[0]):
        array[first : first + SHARD[0]] = frames[first : first + SHARD[0]]


def with_zarrs(path: str, frames: np.ndarray, codec: str) -> None:
    import zarr
    import zarrs  # noqa: F401  registers its pipeline

    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        with_zarr(path, frames, codec)


def with_acquire(path: str, frames: np.ndarray, codec: str) -> None:
    import acquire_zarr as az

    compression = None
    if codec != "raw":
        kind = az.CompressionCodec.BLOSC_LZ4 if codec == "blosc-lz4" else az.CompressionCodec.BLOSC_ZSTD
        compression = az.CompressionSettings(
            compressor=az.Compressor.BLOSC1, codec=kind, level=5 if codec == "blosc-lz4" else 1, shuffle=1
        )
    kinds = (az.DimensionType.TIME, az.DimensionType.SPACE, az.DimensionType.SPACE)
    dimensions = [
        az.Dimension(name=n, kind=k, array_size_px=s, chunk_size_px=t, shard_size_chunks=w // t)
        for n, k, s, t, w in zip("tyx", kinds, (0, HEIGHT, WIDTH), TILE, SHARD, strict=True)
    ]
    array = az.ArraySettings(dimensions=dimensions, data_type=az.DataType.UINT16, compression=compression)
    stream = az.ZarrStream(az.StreamSettings(store_path=path, arrays=[array]))
    for frame in frames:
        stream.append(frame)
    stream.close()


WRITERS: dict[str, Callable[[str, np.ndarray, str], None]] = {
    "cdd": with_cdd,
    "cdd, 3 scales": with_pyramid,
    "TensorStore": with_tensorstore,
    "acquire-zarr": with_acquire,
    "zarrs": with_zarrs,
    "zarr-python": with_zarr,
}


def resident_bytes(name: str) -> int:
    """Of this process, as Linux counts them; 0 elsewhere."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


def warm_memory() -> None:
    """A virtual machine gives memory back to its host, from where the first use of a page is dear: which run
    pays for that is a matter of chance. So each begins with memory that was just used."""
    np.ones(3 << 30, np.uint8)


def one(writer: str, codec: str, kind: str, count: int, folder: str) -> None:
    """In a process of its own: prints CPU and wall seconds, bytes stored, peak memory beside the frames."""
    frames = np.load(f"{folder}/../{kind}.npy")[:count]
    WRITERS[writer](f"{folder}/warm", frames[:1], codec)
    warm_memory()
    before = resident_bytes("VmRSS")
    if os.access("/proc/self/clear_refs", os.W_OK):
        Path("/proc/self/clear_refs").write_text("5")  # forgets the most there was so far
    start, before_cpu = time.perf_counter(), os.times()
    WRITERS[writer](f"{folder}/run", frames, codec)
    wall, cpu = time.perf_counter() - start, os.times()
    user, system = cpu.user - before_cpu.user, cpu.system - before_cpu.system
    peak = resident_bytes("VmHWM") - before
    stored = sum(p.stat().st_size for p in Path(folder, "run").rglob("*") if p.is_file())
    result = {"user": user, "system": system, "cpu": user + system, "wall": wall}
    print(json.dumps(result | {"stored": stored, "peak": peak, "raw": frames.nbytes}))


def measured(writer: str, codec: str, kind: str, count: int, where: str) -> dict[str, float] | None:
    folder = f"{where}/{os.getpid()}"
    Path(folder).mkdir()
    try:
        arguments = [sys.executable, __file__, "--one", writer, codec, kind, str(count), folder]
        done = subprocess.run(arguments, capture_output=True, text=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if done.returncode:
        if writer.startswith("cdd"):
            sys.exit(done.stderr)
        print(f"{writer}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    result: dict[str, float] = json.loads(done.stdout)
    return result


def writing(names: list[str], codec: str, kind: str, options: argparse.Namespace, where: str) -> None:
    """The writers in turns, and what the best run of each took, beside the best peer."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(options.times):
        for name in names:
            found = measured(name, codec, kind, options.frames, where)
            if found is not None and (name not in best or found["cpu"] < best[name]["cpu"]):
                best[name] = found
    peers = [found["cpu"] for name, found in best.items() if not name.startswith("cdd")]
    for name, found in best.items():
        gb = found["raw"] / 1e9
        ratio = f"{found['cpu'] / min(peers):5.2f} of the best peer" if peers else ""
        print(
            f"{codec:<12}{name:<15}{found['cpu'] / gb:6.2f} s/GB CPU ({found['user'] / gb:.2f} user, "
            f"{found['system'] / gb:.2f} system) {found['wall'] / gb:6.2f} wall  "
            f"1/{found['raw'] / found['stored']:.3f}  {found['peak'] / 1e6:7.0f} MB {ratio}",
            flush=True,
        )


def reading(kind: str, count: int, where: str) -> None:
    """One warm tile and a scan, beside TensorStore."""
    import cdd.tiles

    folder = f"{where}/{os.getpid()}"
    try:
        with_cdd(folder, np.load(f"{where}/{kind}.npy")[:count], "blosc-zstd")
        reader = cdd.tiles.open(folder)
        works: dict[str, Callable[[slice], Any]] = {"cdd": lambda s: reader[s]}
        one_tile = (slice(0, 32), slice(256, 512), slice(512, 768))
        try:
            import tensorstore as ts

            store = ts.open(
                {"driver": "zarr3", "kvstore": {"driver": "file", "path": folder}}, open=True
            ).result()
            works["TensorStore"] = lambda s: store[s].read().result()
        except ImportError:
            pass
        for what, key, times in (("one tile", one_tile, 30), ("scan", (slice(0, count),), 3)):
            for name, work in works.items():
                least, cpu = float("inf"), float("inf")
                for _ in range(times):
                    start, begun = time.perf_counter(), time.process_time()
                    work(key)  # type: ignore[arg-type]
                    least = min(least, time.perf_counter() - start)
                    cpu = min(cpu, time.process_time() - begun)
                print(f"{what:<10}{name:<14}{1e3 * least:9.2f} ms wall {1e3 * cpu:9.2f} ms CPU")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--frames", type=int, default=128)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--kinds", nargs="+", default=["camera", "smooth"])
    parser.add_argument("--codecs", nargs="+", default=list(CODECS), choices=CODECS)
    parser.add_argument("--writers", nargs="+", help="only these, and no reading", choices=list(WRITERS))
    parser.add_argument("--parts", nargs="*", help="of a writer: see tiles_parts.py")
    parser.add_argument("--seconds", type=float, default=20, help="of the part `memory`")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        writer, codec, kind, count, folder = options.one
        return one(writer, codec, kind, int(count), folder)
    if options.parts is not None:
        sys.path.insert(0, str(Path(__file__).parent))  # -P leaves it out
        import tiles_parts

        return tiles_parts.run(options.parts, options.folder, options.seconds)
    names = options.writers or (list(WRITERS) if options.peers else ["cdd", "cdd, 3 scales"])
    where = f"{options.folder}/cdd-tiles-bench-{os.getpid()}"
    Path(where).mkdir()
    try:
        for kind in options.kinds:
            np.save(f"{where}/{kind}.npy", frames_of(kind, options.frames))
            size = f"{options.frames} frames of {HEIGHT} x {WIDTH} uint16"
            print(f"{kind}: {size}, tile {TILE}, shard {SHARD}")
            for codec in options.codecs:
                # What "auto" is beside is what peers do with blosc-zstd, which is above.
                own = [name for name in names if codec != "auto" or name.startswith("cdd")]
                writing(own, codec, kind, options, where)
            if not options.writers:
                reading(kind, options.frames, where)
            Path(f"{where}/{kind}.npy").unlink()
    finally:
        shutil.rmtree(where, ignore_errors=True)
    return None


if __name__ == "__main__":
    main()
