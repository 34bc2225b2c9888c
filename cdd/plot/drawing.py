"""Figures of matplotlib, which is imported when one is made; the program's backend is left alone."""

from typing import Any, Literal

import numpy as np

from cdd import arguments
from cdd.dtypes import Array
from cdd.plot.raster import Heatmap

_GROUND, _INK, _FAINT = "#0d1017", "#c9d1d9", "#30363d"
_BID, _ASK = "#3fd0c9", "#ff8f5e"

Scale = Literal["log", "linear"]


def _matplotlib() -> Any:
    try:
        import matplotlib
        import matplotlib.colors
        import matplotlib.dates
        import matplotlib.ticker
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise ImportError('drawing needs matplotlib: pip install "cdd[plot]"', name="matplotlib") from None
    return matplotlib


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    _matplotlib()
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.figure(figsize=size, facecolor=_GROUND, layout="constrained").add_subplot()


def _dark(ax: Any) -> None:
    ax.set_facecolor(_GROUND)
    ax.tick_params(colors=_INK, labelsize=8, length=3)
    for spine in ax.spines.values():
        spine.set_color(_FAINT)
    for text in (ax.xaxis.label, ax.yaxis.label, ax.title):
        text.set_color(_INK)


def _places(x: Array) -> Array:
    """Bounds of columns as matplotlib's numbers."""
    if x.dtype.kind == "M":
        found: Array = _matplotlib().dates.date2num(x)
        return found
    return x.astype(np.float64)


def _colours() -> Any:
    """Inferno without its darkest part, which could not be told from the ground."""
    matplotlib = _matplotlib()
    bright = matplotlib.colormaps["inferno"](np.linspace(0.14, 1, 256))
    return matplotlib.colors.ListedColormap(bright)


def draw(
    heatmap: Heatmap, ax: Any = None, *, scale: Scale = "log", mid: bool = True, trades: Any = None
) -> Any:
    """Draws a heatmap on these axes, or on a new figure's, and returns them.

    scale   of the colours: "log" shows thin levels, too, "linear" only the walls
    mid     whether lines show the best bid and the best ask
    trades  (time, price) or (time, price, size) of marks, in the units of the heatmap's x and y
    """
    colors = _matplotlib().colors
    if scale not in ("log", "linear"):
        raise ValueError(f'scale is "log" or "linear", not {arguments.shown(scale)}')
    ax = _axes(ax, (12, 5.5))
    x, y = _places(heatmap.x), heatmap.y
    image = np.ma.masked_less_equal(heatmap.image, 0)
    shown = heatmap.image[heatmap.image > 0]
    low, high = np.quantile(shown, (0.05, 0.998)) if shown.size else (0.1, 1.0)
    high = high if high > low else low * 10
    norm = colors.LogNorm(low, high, clip=True) if scale == "log" else colors.Normalize(0, high, clip=True)
    drawn = ax.imshow(
        image, origin="lower", aspect="auto", interpolation="nearest", cmap=_colours(), norm=norm,
        extent=(x[0], x[-1], y[0], y[-1]),
    )  # fmt: skip
    if mid:
        middles = (x[:-1] + x[1:]) / 2
        for best, color, label in (
            (heatmap.best_ask, _ASK, "best ask"),
            (heatmap.best_bid, _BID, "best bid"),
        ):
            ax.plot(middles, best, color=color, linewidth=0.9, label=label)
    if trades is not None:
        _mark(ax, trades)
    ax.set_xlim(x[0], x[-1])
    ax.set_ylim(y[0], y[-1])
    _dark(ax)
    _label(ax, heatmap)
    bar = ax.figure.colorbar(drawn, ax=ax, pad=0.01, aspect=40)
    bar.outline.set_edgecolor(_FAINT)
    bar.ax.tick_params(colors=_INK, labelsize=8, which="both", length=2)
    plain = _matplotlib().ticker.StrMethodFormatter("{x:g}")
    bar.ax.yaxis.set_major_formatter(plain)
    bar.ax.yaxis.set_minor_formatter(plain if high < 20 * low else _matplotlib().ticker.NullFormatter())
    bar.set_label(
        "size at the price" if heatmap.feature == 1 else f"feature {heatmap.feature}", color=_INK, fontsize=8
    )
    if mid or trades is not None:
        legend = ax.legend(loc="upper left", fontsize=8, facecolor=_GROUND, edgecolor=_FAINT, framealpha=0.8)
        for text in legend.get_texts():
            text.set_color(_INK)
    return ax


def _label(ax: Any, heatmap: Heatmap) -> None:
    matplotlib = _matplotlib()
    ax.set_ylabel("price" if heatmap.by == "price" else "basis points from the middle", fontsize=8)
    if heatmap.by == "price":
        ax.yaxis.set_major_formatter(matplotlib.ticker.ScalarFormatter(useOffset=False))
    if heatmap.x.dtype.kind == "M":
        locator = matplotlib.dates.AutoDateLocator()
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(matplotlib.dates.ConciseDateFormatter(locator))
        ax.xaxis.get_offset_text().set_color(_INK)
    else:
        ax.set_xlabel("row" if heatmap.x.dtype.kind == "f" else "time", fontsize=8)
        ax.xaxis.set_major_formatter(matplotlib.ticker.StrMethodFormatter("{x:,.0f}"))


def _mark(ax: Any, trades: Any) -> None:
    time, price, *size = (np.asarray(each) for each in trades)
    if len(size) > 1 or any(len(each) != len(time) for each in (price, *size)):
        raise ValueError("trades are (time, price) or (time, price, size), of as many each")
    area: Any = 12.0
    if size:
        area = 4 + 80 * np.sqrt(np.abs(size[0]) / max(float(np.abs(size[0]).max(initial=0)), 1e-300))
    ax.scatter(
        _places(time), price, s=area, facecolor="none", edgecolor="#ffffff", linewidth=0.6, label="trades"
    )


def ladder(reader: Any, row: int, ax: Any = None) -> Any:
    """Draws one row of a book: a bar for the size at each price, bids and asks. Returns the axes."""
    shape: tuple[int, ...] = tuple(getattr(reader, "shape", ()))
    if len(shape) != 3 or shape[1] < 2 or shape[1] % 2 or shape[2] < 2:
        raise ValueError(f"a book is (n, levels, features), with as many bids as asks, not {shape}")
    number = arguments.index("row", row)
    levels = np.asarray(reader[number], dtype=np.float64)
    half = shape[1] // 2
    ax = _axes(ax, (6, 8))
    places, names = [], []
    bids, asks = (_sorted(side) for side in (levels[:half], levels[half:]))
    for side, color, label, sign in ((bids[::-1], _BID, "bids", -1), (asks, _ASK, "asks", 1)):
        at = sign * (np.arange(len(side)) + 0.5)
        ax.barh(at, side[:, 1], height=0.86, color=color, label=label)
        places += at.tolist()
        names += [f"{price:.7g}" for price in side[:, 0]]
    ax.axhline(0, color=_INK, linewidth=0.8)
    ax.set_yticks(places, names, fontsize=6 if shape[1] > 30 else 8)
    ax.set_ylim(-half - 0.5, half + 0.5)
    ax.set_xlabel("size", fontsize=8)
    if len(bids) and len(asks):
        spread = asks[0, 0] - bids[-1, 0]
        ax.set_title(f"row {number % shape[0]:,}, spread {spread:.4g}", fontsize=9)
    _dark(ax)
    ax.tick_params(axis="y", labelsize=6 if shape[1] > 30 else 8)
    legend = ax.legend(loc="best", fontsize=8, facecolor=_GROUND, edgecolor=_FAINT)
    for text in legend.get_texts():
        text.set_color(_INK)
    return ax


def _sorted(side: Array) -> Array:
    """Levels that are there, the lowest price first."""
    side = side[(side[:, 0] > 0) & np.isfinite(side[:, :2]).all(axis=1)]
    return side[np.argsort(side[:, 0], kind="stable")]
