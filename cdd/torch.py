"""Windows into PyTorch: batches by a thread, an order that needs no memory, runs that go on where they were.

    windows = cdd.Windows(cdd.dataset.open("btc"), 64, columns=("ob", "mid"))
    loader = cdd.torch.Loader(windows, 256, seed=1)
    for epoch in range(3):
        for batch in loader:                    # {"ob": (256, 64, 50, 3), "mid": (256, 64)}, fresh tensors
            ...
    torch.save({"model": model.state_dict(), "loader": loader.state_dict()}, path)

dataset() and Sampler are for DataLoader, where worker processes are wanted: a transform that is slow Python.
Reading needs none, it holds no GIL; a batch of a worker process is copied from process to process.

cdd.torch needs torch: pip install "cdd[torch]". Times become int64 tensors, bfloat16 is torch's.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from cdd import arguments
from cdd.dtypes import Array, buffer_dtype
from cdd.windows import Batch, Windows
from cdd.windows.ahead import Ahead
from cdd.windows.order import Order, Ordering, Position

try:
    import torch
    from torch.utils.data import Dataset, default_collate
    from torch.utils.data import Sampler as TorchSampler
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError('cdd.torch needs torch: pip install "cdd[torch]"', name="torch") from None

__all__ = ["Loader", "Sampler", "dataset", "tensor", "whole"]

Transform = Callable[[Any], Any]


def tensor(array: Array) -> Any:
    """The same memory as a tensor: of times as int64, of bfloat16 as torch has it."""
    item = buffer_dtype(array.dtype)
    if item is array.dtype:
        return torch.from_numpy(array)
    found = torch.from_numpy(array.view(item))
    return found if item == np.int64 else found.view(torch.bfloat16)


def _tensors(read: Any) -> Any:
    if isinstance(read, dict):
        return {name: tensor(block) for name, block in read.items()}
    return tensor(read)


class _Noted:
    """Errors get the numbers of the windows as a note; StopIteration, which ends loops, is RuntimeError."""

    def __init__(self, numbers: Sequence[int] | Array) -> None:
        self._numbers = numbers

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is None:
            return
        told = RuntimeError("the transform raised StopIteration") if kind is StopIteration else error
        numbers = self._numbers
        first = ", ".join(str(int(number)) for number in numbers[:8])
        many = f"a batch of {len(numbers)} windows: " if len(numbers) > 1 else "window "
        told.add_note(f"in {many}{first}{', ...' if len(numbers) > 8 else ''}")
        if told is not error:
            raise told from error


# ---------------------------------------------------------------- for DataLoader


class _Windows(Dataset[Any]):
    def __init__(self, windows: Windows, transform: Transform | None) -> None:
        self._windows = windows
        self._transform = transform

    def __len__(self) -> int:
        return len(self._windows)

    def __getitem__(self, number: int) -> Any:
        with _Noted([number]):
            window = _tensors(self._windows[number])
            return window if self._transform is None else self._transform(window)

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        with _Noted(numbers):
            batch = Batch(_tensors(self._windows.read(numbers)))
        if self._transform is None:
            return batch
        made = []
        for number, window in zip(numbers, batch, strict=True):
            with _Noted([number]):
                made.append(self._transform(window))
        return made


def dataset(windows: Windows, transform: Transform | None = None) -> Any:
    """Windows as a torch.utils.data.Dataset of tensors, or dicts of tensors. A batch is read in one call.

    `transform` is called with each window. collate_fn=cdd.torch.whole saves the copy that default_collate
    makes.
    """
    _check(windows, transform)
    return _Windows(windows, transform)


def _check(windows: Any, transform: Any) -> None:
    if not isinstance(windows, Windows):
        raise TypeError(f"windows are a cdd.Windows, not {arguments.shown(windows)}")
    if transform is not None and not callable(transform):
        raise TypeError(f"transform is called with windows, {arguments.shown(transform)} cannot be called")


def whole(batch: list[Any]) -> Any:
    """A collate_fn: the tensor, or dict of tensors, that the windows of a batch were read into. Windows that
    went through a transform are stacked by torch's default_collate."""
    return batch.array if isinstance(batch, Batch) else default_collate(batch)


class Sampler(TorchSampler[list[int]]):
    """Batches of numbers for DataLoader(batch_sampler=...), in an order that needs no memory.

    length is a number or what has a length; the other arguments are those of Loader's order. Each time it is
    iterated to the end the next epoch begins, which set_epoch() sets, too. state_dict() is where the
    iteration is: what load_state_dict() goes on with, on any rank. A DataLoader asks for batches ahead of its
    loop, prefetch_factor for each worker: going on from there leaves those out. StatefulDataLoader does not.
    """

    def __init__(self, length: Any, batch_size: int, **order: Unpack[Ordering]) -> None:
        if unknown := sorted(order.keys() - Ordering.__annotations__.keys()):
            raise TypeError(f"{unknown[0]}= is unknown: an order has {', '.join(Ordering.__annotations__)}")
        count = len(length) if hasattr(length, "__len__") else length
        self._order = Order(count, batch_size, **order)
        self._position = Position(self._order)

    @property
    def batch_size(self) -> int:
        """Windows of a batch of one rank."""
        return self._order.batch_size

    @property
    def sampler(self) -> "Sampler":
        """Itself: where Lightning looks for set_epoch()."""
        return self

    def __len__(self) -> int:
        return self._order.batches

    def __iter__(self) -> Iterator[list[int]]:
        epoch, first = self._position.begin()
        for batch, numbers in enumerate(self._order.epoch(epoch, first), first + 1):
            self._position.reached(epoch, batch)
            yield numbers.tolist()

    def set_epoch(self, epoch: int) -> None:
        """Which epoch is iterated next. The one that is under way goes on where it is."""
        self._position.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where it is, in less than 200 bytes of JSON."""
        return self._position.state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on there. ValueError where the state is of another length, batch size, seed, order or number
        of ranks."""
        self._position.load(state)


# ---------------------------------------------------------------- batches by a thread


class Loader:
    """Batches of windows as fresh tensors, read ahead by a thread. An iterable, as DataLoader is one.

    batch_size  windows of a batch of one rank
    order       seed=0, shuffle=True, near=0, rank=0, world=1, drop_last=True:
    shuffle, seed  another order each epoch, made of the seed and the epoch's number; else ascending
    near        windows are shuffled as runs of that many, and then within 64 of them, so that a batch reads
                neighbouring rows, whose chunks are decoded once: for slow disks. 0: any order
    rank, world this one of `world` processes, each of which has other windows and as many batches
    drop_last   leaves out what does not fill a batch on every rank. Else the last batch may be shorter, and
                some windows come twice where the ranks would not have as many
    prefetch    batches that are read ahead
    transform   called by the thread with each batch (a tensor, or a dict of tensors) before it goes to the
                device; what it returns is the batch
    device      where the batches are to be: they go there by a copy beside the computation
    pin_memory  whether they are read into pinned memory: by default for a CUDA device

    Each iteration is an epoch, after which the next begins; set_epoch() says which. state_dict() tells which
    batches were handed over, not which were read ahead: load_state_dict() goes on with the next one exactly.
    What is iterated before a fork goes on after it, in the child with a thread of its own. An iteration that
    is left ends its thread. An error of reading, or of transform, is raised by the iteration, with the
    windows' numbers as a note; the next iteration begins anew.
    """

    def __init__(
        self,
        windows: Windows,
        batch_size: int,
        *,
        prefetch: int = 3,
        device: Any = None,
        pin_memory: bool | None = None,
        transform: Transform | None = None,
        **order: Unpack[Ordering],
    ) -> None:
        _check(windows, transform)
        self._windows = windows
        self.sampler = Sampler(windows, batch_size, **order)
        self._prefetch = arguments.size("prefetch", prefetch, 1, 1 << 20)
        self._transform = transform
        self._device = None if device is None else torch.device(device)
        on_cuda = self._device is not None and self._device.type == "cuda"
        self._pin = on_cuda if pin_memory is None else arguments.flag("pin_memory", pin_memory)
        # Torch's own errors, where there is no such device or no memory to be pinned.
        torch.empty(1, device=self._device)
        if self._pin:
            torch.empty(1, pin_memory=True)

    @property
    def batch_size(self) -> int:
        """Windows of a batch of one rank."""
        return self.sampler.batch_size

    def __len__(self) -> int:
        return len(self.sampler)

    def set_epoch(self, epoch: int) -> None:
        """Which epoch is iterated next. The one that is under way goes on where it is."""
        self.sampler.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where it is, in less than 200 bytes of JSON."""
        return self.sampler.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on there. ValueError where the state is of another length, batch size, seed, order or number
        of ranks."""
        self.sampler.load_state_dict(state)

    def __iter__(self) -> Iterator[Any]:
        position, order = self.sampler._position, self.sampler._order
        epoch, done = position.begin()
        ahead: Ahead | None = None
        try:
            while done < order.batches:
                if ahead is None or ahead.process != os.getpid():
                    ahead = Ahead(self._read, order.epoch(epoch, done), self._prefetch)
                batch, arrived = ahead.take()
                if arrived is not None:
                    arrived(batch)
                done += 1
                position.reached(epoch, done)
                yield batch
        finally:
            if ahead is not None:
                ahead.close()

    def _read(self, numbers: Array) -> tuple[Any, Any]:
        """One batch, and what the consumer's thread is to do before it uses it."""
        with _Noted(numbers):
            batch = self._on_host(numbers)
            if self._transform is not None:
                batch = self._transform(batch)
            return (batch, None) if self._device is None else _sent(batch, self._device)

    def _on_host(self, numbers: Array) -> Any:
        if not self._pin:
            return _tensors(self._windows.read(numbers))
        batch = _each(
            _tensors(self._windows.read(numbers[:0])),
            lambda t: torch.empty((len(numbers), *t.shape[1:]), dtype=t.dtype, pin_memory=True),
        )
        self._windows.read(numbers, out=_each(batch, _memory))
        return batch


def _memory(block: Any) -> Array:
    """The memory of a tensor as NumPy has it."""
    found: Array = (block.view(torch.int16) if block.dtype == torch.bfloat16 else block).numpy()
    return found


def _each(batch: Any, change: Callable[[Any], Any]) -> Any:
    """`change` of each tensor of a batch, in dicts, lists and tuples."""
    if isinstance(batch, torch.Tensor):
        return change(batch)
    if isinstance(batch, Mapping):
        return {name: _each(value, change) for name, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(_each(value, change) for value in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(_each(value, change) for value in batch)
    return batch


def _sent(batch: Any, device: Any) -> tuple[Any, Any]:
    """The batch on its device. Of CUDA: copied on a stream of its own, for which the consumer's waits."""
    if device.type != "cuda":
        return _each(batch, lambda t: t.to(device, non_blocking=True)), None
    stream = torch.cuda.Stream(device)
    with torch.cuda.stream(stream):
        sent = _each(batch, lambda t: t.to(device, non_blocking=True))
        copied = stream.record_event()

    def arrived(sent: Any) -> None:
        current = torch.cuda.current_stream(device)
        current.wait_event(copied)
        _each(sent, lambda t: t.record_stream(current))

    return sent, arrived
