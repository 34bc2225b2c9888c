"""cdd.Windows: windows of rows as a sequence, which is what training loops ask for. NumPy only."""

from cdd.windows.order import Order
from cdd.windows.sequence import Batch, Windows

__all__ = ["Batch", "Order", "Windows"]
