"""What benchmarks have in common when they tell what they found: files of JSON, tables, means."""

import json
import math
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import cdd


def machine() -> dict[str, str | int]:
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line
        ]
        cpu = names[0] if names else cpu
    return {
        "cpu": cpu,
        "cores": os.cpu_count() or 1,
        "threads": cdd.threads(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cdd": cdd.__version__,
    }


def write(path: Path | None, settings: dict[str, Any], figures: Any) -> None:
    """The figures as JSON, where a path was asked for."""
    if path is None:
        return
    told = {k: v for k, v in settings.items() if isinstance(v, int | float | bool | str) and k != "json"}
    path.write_text(json.dumps({"machine": machine(), "settings": told, "figures": figures}, indent=1) + "\n")


def geometric_mean(values: Iterable[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown, which is a table for people, too."""
    cells = [list(head), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = []
    for row in cells:
        numbers = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append(f"| {' | '.join([row[0].ljust(widths[0]), *numbers])} |")
    lines.insert(1, "|" + "|".join(["-" * (widths[0] + 2), *("-" * (w + 1) + ":" for w in widths[1:])]) + "|")
    return "\n".join(lines)


def _text(cell: object) -> str:
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:.0f}" if cell >= 100 else f"{cell:.1f}" if cell >= 20 else f"{cell:.2f}"
