"""Command plot: the depth of a book over time, or one row of it, as a PNG."""

import argparse
from io import BytesIO
from pathlib import Path
from typing import Any

import cdd
from cdd.commands.sources import check_output, in_dataset, rows_argument
from cdd.commands.terminal import Commands, argument, natural
from cdd.packed.places import whole_file


def add(commands: Commands) -> None:
    plot = commands.add(
        "plot", _plot, "Draws the depth of a book over time, with best bid and ask, as a PNG."
    )
    plot.add_argument(
        "file",
        metavar="FILE",
        help="a store (n, levels, features), a dataset with such a column, or DATASET/column",
    )
    plot.add_argument("--output", "-o", metavar="PNG", help="(default: FILE's name with .png)")
    plot.add_argument(
        "--rows", type=argument(_rows), default=slice(None), metavar="A:B", help="(default: all)"
    )
    plot.add_argument(
        "--time", metavar="FILE", help="a store of times, one a row (default: a dataset's clock)"
    )
    plot.add_argument("--column", metavar="NAME", help="of a dataset (default: its first book)")
    plot.add_argument("--bps", action="store_true", help="basis points from the middle instead of prices")
    plot.add_argument("--linear", action="store_true", help="colours in proportion to the size")
    plot.add_argument(
        "--feature", type=natural, default=1, metavar="N", help="what is drawn (default: 1, the size)"
    )
    plot.add_argument("--ladder", type=int, metavar="ROW", help="one row instead, as bars")
    plot.add_argument(
        "--size", type=_size, default=(1400, 640), metavar="WxH", help="pixels (default: 1400x640)"
    )


def _rows(text: str) -> slice:
    found = rows_argument(text)
    if not isinstance(found, slice) or found.step is not None:
        raise ValueError(f"rows are A:B, not {text!r}")
    return found


def _size(text: str) -> tuple[int, int]:
    width, x, height = text.partition("x")
    if not x or not 100 <= int(width) <= 20_000 or not 100 <= int(height) <= 20_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not WIDTHxHEIGHT, each 100 to 20000")
    return int(width), int(height)


def _plot(options: argparse.Namespace) -> int:
    from cdd import plot

    book, time = _opened(options)
    figure = _figure(options.size)
    ax = figure.add_subplot()
    if options.ladder is not None:
        plot.ladder(book, options.ladder, ax)
    else:
        width, height = (max(16, size) for size in (options.size[0] - 180, (options.size[1] - 60) // 2))
        first, last, _ = options.rows.indices(len(book))  # as Python counts
        by: Any = "bps" if options.bps else "price"
        found = plot.heatmap(
            book, first, last, time=time, width=width, height=height, by=by,
            feature=options.feature,
        )  # fmt: skip
        plot.draw(found, ax, scale="linear" if options.linear else "log")
        ax.set_title(
            f"{Path(options.file).name}, {found.rows:,} rows", fontsize=9, loc="left", color="#c9d1d9"
        )
    output = Path(options.output or Path(options.file).with_suffix(".png"))
    check_output(str(output), True, [options.file, options.time])
    picture = BytesIO()  # a disk that is full leaves what was there
    figure.savefig(picture, format=output.suffix[1:] or "png")
    with whole_file(output) as file:
        file.write(picture.getvalue())
    print(output)
    return 0


def _figure(size: tuple[int, int]) -> Any:
    """A figure that needs no screen, whatever backend is set."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ImportError('plot needs matplotlib: pip install "cdd[plot]"') from None
    figure = Figure(
        figsize=(size[0] / 100, size[1] / 100), dpi=100, facecolor="#0d1017", layout="constrained"
    )
    FigureCanvasAgg(figure)
    return figure


def _table_of(root: Any, path: str) -> tuple[Any, str | None]:
    """The table that a path in a dataset leads to, and the column in it, where it names one."""
    for table in sorted(filter(None, root.tables), key=len, reverse=True):
        if path == table or path.startswith(table + "/"):
            return root[table], path[len(table) + 1 :] or None
    return root, path or None


def _opened(options: argparse.Namespace) -> tuple[Any, Any]:
    """The book, and its times or None."""
    time = None if options.time is None else cdd.open(options.time)
    within = in_dataset(options.file)
    if within is None:
        if options.column is not None:
            raise ValueError("--column is for datasets")
        return cdd.open(options.file), time
    root = cdd.dataset.open(within[0])
    ds, column = _table_of(root, within[1])
    if column is not None and options.column is not None:
        raise ValueError(f"FILE names the column {column!r}, and so does --column")
    options.column = options.column or column
    books = [name for name in ds.columns if len(ds[name].shape) == 3]
    if options.column is None and not books:
        raise ValueError(f"none of the columns {', '.join(ds.columns)} is (n, levels, features)")
    name = options.column or books[0]
    if name not in ds.columns:
        raise ValueError(f"there is no column {name!r}: one of {', '.join(ds.columns)}")
    if time is None and ds.clock is not None:
        time = ds[ds.clock]
    return ds[name], time
