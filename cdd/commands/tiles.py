"""Arrays of tiles and pyramids of them, as info and verify look at them."""

import json
from pathlib import Path

import cdd
from cdd import tiles
from cdd.commands.terminal import bytes_text
from cdd.tiles.pyramid import read_group


def is_tiles(path: str) -> bool:
    """Whether a path is looked at as an array of tiles: a zarr v3 array, or an OME-NGFF group of them. Where
    zarr.json is no JSON, too: opening it says so."""
    try:
        found = json.loads(Path(path, "zarr.json").read_bytes())
    except OSError:
        return False
    except (ValueError, RecursionError):
        return True
    try:
        return (
            not isinstance(found, dict) or found.get("node_type") == "array" or read_group(path) is not None
        )
    except cdd.FormatError:
        return False


def show(path: str) -> bool:
    with tiles.open(path) as reader:
        scales = reader.scales
    for scale in range(scales):
        with tiles.open(path, scale=scale) as reader:
            stored = reader.stored()
            name = path if scales == 1 else f"{path}, scale {scale}"
            lines = {
                "shape": str(reader.shape),
                "dtype": str(reader.dtype),
                "tiles": f"{reader.tile_shape}, {stored.tiles:,} stored, {stored.absent_tiles:,} not",
                "shards": str(reader.shard_shape),
                "codec": reader.codec,
                "stored": f"{bytes_text(stored.bytes)} ({stored.bytes:,} bytes)",
                "raw": f"{bytes_text(reader.nbytes)} ({reader.nbytes:,} bytes)",
            }
            if stored.bytes:
                lines["ratio"] = f"{reader.nbytes / stored.bytes:.3f}"
            if reader.dimension_names:
                lines["names"] = ", ".join(str(one) for one in reader.dimension_names)
            if reader.attrs and scale == 0:
                lines["attrs"] = json.dumps(reader.attrs, ensure_ascii=False)
            print(name)
            for label, text in lines.items():
                print(f"  {label:<10}{text}")
    if any(Path(path).glob(".cdd-journal")) or any(Path(path).glob("*/.cdd-journal")):
        print('  a writer has it, or was killed: cdd.tiles.open(path, "a") takes up what it left')
    return True


def verify(path: str, quiet: bool) -> bool:
    """Reads every tile with every check there is; says which are damaged."""
    damaged: list[str] = []
    count = 0
    with tiles.open(path) as reader:
        scales = reader.scales
    for scale in range(scales):
        with tiles.open(path, scale=scale) as reader:
            layer = reader.tile_shape[0]
            for first in range(0, len(reader), layer):
                try:
                    reader.read(first, min(first + layer, len(reader)))
                except cdd.CddError as error:
                    damaged.append(f"  scale {scale}, frames from {first} on: {error}")
                count += 1
    if damaged:
        print(f"{path}: {len(damaged):,} of {count:,} layers of tiles are damaged")
        print("\n".join(damaged))
    elif not quiet:
        print(f"{path}: all is well, {count:,} layers of tiles")
    return not damaged
