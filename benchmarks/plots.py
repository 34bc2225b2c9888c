"""Draws what benchmarks found: a PNG for each question, bars of a few stores side by side."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from report import geometric_mean
from stores import CDD, REFERENCE

mpl.use("Agg")
import matplotlib.pyplot as plt

COLOURS = ("#1f5fa8", "#e08a1e", "#7a7a7a", "#b9b9b9", "#4f9d69", "#a34d7c", "#c9b458")
OWN = list(CDD)[-1]
NAMES = {"lob": "books", "series": "series", "thinned": "thinned book"}


def bars(
    path: Path,
    title: str,
    unit: str,
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    line: float = 0,
) -> None:
    """Groups of horizontal bars; a dashed line at what is to be compared with."""
    height = 0.8 / len(series)
    size = (9, 1.2 + 0.16 * len(groups) * (len(series) + 1))
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    for number, (name, values) in enumerate(series.items()):
        at = [i + (number + 0.5) * height - 0.4 for i in range(len(groups))]
        axes.barh(at, values, height, label=name, color=COLOURS[number % len(COLOURS)])
    if line:
        axes.axvline(line, color="black", linewidth=1, linestyle="--")
    every = [value for values in series.values() for value in values if value > 0]
    if max(every) > 30 * min(every):
        axes.set_xscale("log")
    axes.set_yticks(range(len(groups)), groups)
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    axes.set_title(title)
    axes.margins(y=0.01)
    if len(series) > 1:
        figure.legend(loc="outside lower center", ncols=4)
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def columns_of(found: Mapping[str, Mapping[str, float]]) -> dict[str, list[float]]:
    """Each column of a table whose rows are these."""
    names = dict.fromkeys(name for row in found.values() for name in row)
    return {name: [row.get(name, 0.0) for row in found.values()] for name in names}


def draw_read(folder: Path, kind: str, found: dict[str, Any]) -> None:
    stores = {"cdd": OWN, "LZ4": "LZ4, chunks of 64 rows", "zstd-3": "zstd-3, chunks of 64 rows"}
    beside = {
        array: {store: of[store]["window_us"] / of[REFERENCE]["window_us"] for store in of}
        for array, of in found.items()
    }
    title = f"A window of 64 rows: time beside copying it from a memory map ({kind})"
    picked = {array: {name: of[store] for name, store in stores.items()} for array, of in beside.items()}
    less = "times np.copyto (less is better)"
    bars(folder / f"read_{kind}.png", title, less, list(found), columns_of(picked), 1)
    means = {}
    for store in dict.fromkeys(store for of in found.values() for store in of):
        ratio = geometric_mean(of[store]["ratio"] for of in found.values() if store in of)
        window = geometric_mean(of[store] for of in beside.values() if store in of)
        means[store] = {f"window, {less}": window, "raw by stored bytes (more is better)": ratio}
    title = f"All stores, geometric means ({kind})"
    bars(folder / f"read_{kind}_stores.png", title, "", list(means), columns_of(means), 1)


def draw_all(folder: Path) -> None:
    found = {path.stem: json.loads(path.read_text())["figures"] for path in sorted(folder.glob("*.json"))}
    for kind, figures in found["read"].items():
        draw_read(folder, kind, figures)
    for part, title in (("batch", "64 windows of 256 rows in one call"), ("row", "One row")):
        rows = {name: of[part] for name, of in found["gather"].items()}
        bars(folder / f"gather_{part}.png", title, "µs (less is better)", list(rows), columns_of(rows))
    touches = {name: found["long"][name] for name in ("first touch", "warm")}
    title = "A window of 64 rows of the long generated book"
    bars(folder / "long.png", title, "µs (less is better)", list(touches), columns_of(touches))
    for kind, sizes in found["size"].items():
        for chunk_rows in next(iter(sizes.values())):
            ratios = {
                name: {c: of[chunk_rows]["raw"] / of[chunk_rows][c] for c in of[chunk_rows] if c != "raw"}
                for name, of in sizes.items()
            }
            path = folder / f"size_{NAMES[kind].replace(' ', '_')}_{chunk_rows}.png"
            title = f"Ratio in chunks of {chunk_rows} rows ({NAMES[kind]})"
            bars(path, title, "raw by stored bytes (more is better)", list(ratios), columns_of(ratios))
    more = "MB of raw rows a second (more is better)"
    for kind, speeds in found["write"].items():
        path = folder / f"write_{NAMES[kind]}.png"
        bars(path, f"Appending ({NAMES[kind]})", more, list(speeds), columns_of(speeds))
    kernels = found["kernels"]
    title = "Kernels by SIMD target"
    bars(folder / "kernels.png", title, "GB/s (more is better)", list(kernels), columns_of(kernels))
