"""A simulated camera, a viewer that follows it with zarr-python, a writer that is killed, one that goes on.

python3 dev.py demo tiles
"""

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import cdd.tiles

FRAMES, HEIGHT, WIDTH = 96, 512, 512


def frame(number: int) -> np.ndarray:
    """What an sCMOS camera gives: an offset, read noise, the photons of a spot that moves."""
    rng = np.random.default_rng(number)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    spot = 40 + 400 * np.exp(-((y - 256) ** 2 + (x - 5 * number) ** 2) / 5000)
    return (100 + rng.poisson(spot) + rng.normal(0, 2, spot.shape)).astype(np.uint16)


def record(path: str) -> None:
    """Goes on until FRAMES are there: what a process does that may be killed."""
    with cdd.tiles.open(path, "a") as w:
        print(f"  writer: goes on at frame {len(w)}", flush=True)
        for number in range(len(w), FRAMES):
            w.append(frame(number))
            time.sleep(0.01)
        p = w.progress()
        print(f"  writer: {p.received_bytes / 1e6:.0f} MB, {p.stalls} stalls", flush=True)


def readable(path: str) -> int:
    """The frames that another tool sees."""
    try:
        import zarr
    except ImportError:
        return len(cdd.tiles.open(path))
    return int(zarr.open_array(path, mode="r").shape[0])


def main() -> None:
    if sys.argv[1:2] == ["record"]:
        return record(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "run.zarr"))
        options = {"shape": (None, HEIGHT, WIDTH), "dtype": "uint16", "tile_shape": (8, 128, 128)}
        print(f"memory a writer takes: {cdd.tiles.bytes_needed(**options) / 1e6:.1f} MB")
        cdd.tiles.open(path, "w", **options, dimension_names="tyx").close()
        for attempt in range(3):
            writer = subprocess.Popen([sys.executable, "-P", __file__, "record", path])
            seen = -1
            while writer.poll() is None:
                if (now := readable(path)) > seen:
                    seen = now
                    print(f"  viewer: {seen} frames are readable")
                if attempt < 2 and seen >= 32 * (attempt + 1):
                    writer.send_signal(signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
                    print(f"  the writer is killed, {seen} frames were readable")
                    writer.wait()
                time.sleep(0.02)
        with cdd.tiles.open(path) as r:
            right = all(np.array_equal(r[i], frame(i)) for i in range(FRAMES))
            stored = r.stored()
            print(f"{r.shape} {r.dtype}, all frames as they were taken: {right}")
            print(
                f"raw {r.nbytes / 1e6:.1f} MB, "
                f"stored {stored.bytes / 1e6:.1f} MB in {stored.tiles} tiles, {r.codec}"
            )
            if not right:
                sys.exit("frames differ")
    return None


if __name__ == "__main__":
    main()
