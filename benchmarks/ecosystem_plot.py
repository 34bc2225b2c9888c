"""A picture of a million rows: the raster and the figure, and the memory that the process had."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from arrays import arrays, load_array, recordings
from goals import Goal

import cdd

ROWS = 1_000_000
SCRIPT = """
import re, sys, time
import numpy as np, cdd, cdd.plot
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
time_ = np.cumsum(np.random.default_rng(0).integers(1, 1000, len(cdd.open(sys.argv[1])))).astype("M8[ms]")
best = None
for _ in range(3):
    since = time.perf_counter(), time.process_time()
    found = cdd.plot.heatmap(cdd.open(sys.argv[1]), time=time_)
    raster = time.perf_counter() - since[0]
    figure = Figure(figsize=(14, 6.4), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    cdd.plot.draw(found, figure.add_subplot())
    figure.savefig(sys.argv[2])
    took = time.perf_counter() - since[0], raster, time.process_time() - since[1]
    best = min(best or took, took)
# Not ru_maxrss, which begins with that of the process that started this one.
print(*best, int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024)
"""


def measure() -> Iterator[Goal]:
    folder = recordings()
    if folder is not None:
        part = load_array(folder / "es_changes.npz")
    else:
        part = next(array for _, array in arrays("lob"))[:20_000]
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "b.cdd"
        with cdd.open(path, "w") as writer:
            for _ in range(ROWS // len(part)):
                writer.append(part)
        command = [sys.executable, "-P", "-c", SCRIPT, str(path), str(Path(name) / "b.png")]
        words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        whole, raster, cpu, megabytes = map(float, words)
        rows = len(cdd.open(path))
    others = {"raster s": raster, "CPU s": cpu}
    yield Goal(f"picture of {rows:,} rows, PNG written", whole, "s", at_most=1.5, others=others)
    yield Goal("memory of the process", megabytes, "MB", at_most=300)
