"""What is wrong with a logical array as a whole, and what is no longer needed."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cdd.logical.array import Array


def verify_array(array: "Array", progress: Any = None) -> Any:
    """Array.verify()."""
    raise NotImplementedError
