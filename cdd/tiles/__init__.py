"""A stream of pixels as compressed tiles, many in one file, that every zarr v3 reader opens while they come.

    with cdd.tiles.open("run.zarr", "w", shape=(None, 2048, 2048), tile_shape=(32, 256, 256),
                        dtype="uint16") as w:
        w.append(frames)               # whole frames; waits where it must
        rest = w.write(frame)          # any bytes; takes what fits now, never waits
    w = cdd.tiles.open("run.zarr", "a")       # goes on, after a crash too
    r = cdd.tiles.open("run.zarr")            # r[a:b, y0:y1, x0:x1] reads only the tiles that are touched

open          a TileReader or a TileWriter of an array, or of a pyramid of them
aopen         the same for asyncio: aread, aappend, aflush, aclose, afollow
bytes_needed  memory that such a writer takes, before it exists
CODECS        the names of codecs
"""

from cdd.tiles.opening import CODECS, aopen, bytes_needed, open
from cdd.tiles.reader import TileReader
from cdd.tiles.writer import Progress, TileWriter

__all__ = [
    "CODECS",
    "Progress",
    "TileReader",
    "TileWriter",
    "aopen",
    "bytes_needed",
    "open",
]
