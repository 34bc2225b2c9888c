"""Books as pictures: depth over time, with bid, ask and trades, and the ladder of one row.

    h = cdd.plot.heatmap(ds["ob"], time=ds["time"])      # NumPy only: h.image, h.x, h.y, h.best_bid, ...
    cdd.plot.draw(h).figure.savefig("btc.png")
    cdd.plot.ladder(ds["ob"], 5000)

    python -m cdd plot btc.cdd -o btc.png

Books are (n, levels, features): the first half of the levels are bids, the other asks, in any order, and
feature 0 is the price. Drawing needs matplotlib: pip install "cdd[plot]".
"""

from cdd.plot.drawing import draw, ladder
from cdd.plot.raster import Heatmap, heatmap

__all__ = ["Heatmap", "draw", "heatmap", "ladder"]
