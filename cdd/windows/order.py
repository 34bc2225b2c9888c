"""In which order an epoch has its windows, for any rank, from any batch on, without a list of them."""

from collections.abc import Iterator, Mapping
from typing import Any, TypedDict

import numpy as np

from cdd import arguments
from cdd.dtypes import Array
from cdd.windows.permutation import Permutation

_BLOCK = 16_384  # numbers that are made at once
_BUFFER_RUNS = 64
_MOST = (1 << 63) - 1


class Ordering(TypedDict, total=False):
    """How an epoch is ordered; cdd.torch.Loader says what each is."""

    seed: int
    shuffle: bool
    near: int
    rank: int
    world: int
    drop_last: bool


class Order:
    """The batches of each epoch, as arrays of window numbers.

    `length` windows there are; the other arguments are those of cdd.torch.Loader, which says what they mean.
    Runs of `near` begin elsewhere each epoch.
    """

    def __init__(
        self,
        length: int,
        batch_size: int,
        *,
        seed: int = 0,
        shuffle: bool = True,
        near: int = 0,
        rank: int = 0,
        world: int = 1,
        drop_last: bool = True,
    ) -> None:
        self.length = arguments.size("length", length, 1, _MOST)
        self.batch_size = arguments.size("batch_size", batch_size, 1, _MOST)
        self.seed = arguments.size("seed", seed, 0, (1 << 64) - 1)
        self.shuffle = arguments.flag("shuffle", shuffle)
        self.near = min(arguments.size("near", near, 0, _MOST), self.length)
        self.world = arguments.size("world", world, 1, _MOST)
        self.rank = arguments.size("rank", rank, 0, self.world - 1)
        self.drop_last = arguments.flag("drop_last", drop_last)
        if self.drop_last:
            self._of_rank = self.length // self.world
            self.batches = self._of_rank // self.batch_size
        else:
            self._of_rank = -(-self.length // self.world)
            self.batches = -(-self._of_rank // self.batch_size)
        if not self.batches:
            raise ValueError(
                f"batch_size is {self.batch_size}, and each of {self.world} ranks has {self._of_rank} of "
                f"{self.length} windows: there is no whole batch (drop_last=False keeps a short one)"
            )

    @property
    def kind(self) -> dict[str, Any]:
        """What must be the same for a position in an epoch to mean the same batch. The rank may differ."""
        return {
            "length": self.length, "batch_size": self.batch_size, "seed": self.seed, "shuffle": self.shuffle,
            "near": self.near, "world": self.world, "drop_last": self.drop_last,
        }  # fmt: skip

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Array]:
        """The batches of an epoch from batch `first` on: int64 window numbers."""
        numbers_of = self._shuffled(epoch)
        several = max(1, _BLOCK // self.batch_size)
        for block in range(first, self.batches, several):
            begin = block * self.batch_size
            end = min((block + several) * self.batch_size, self._of_rank)
            numbers = numbers_of(self._positions(begin, end))
            for batch in range(min(several, self.batches - block)):
                yield numbers[batch * self.batch_size : (batch + 1) * self.batch_size]

    def _positions(self, begin: int, end: int) -> Array:
        """Where those of this rank are in the epoch of all: each `world`-th, as DistributedSampler has it;
        with `near` next to each other."""
        places = np.arange(begin, end, dtype=np.int64)
        if self.near and self.shuffle:
            places += self.rank * self._of_rank
        else:
            places = places * self.world + self.rank
        return places % self.length if places.size and places[-1] >= self.length else places

    def _shuffled(self, epoch: int) -> Any:
        if not self.shuffle:
            return np.asarray
        if self.near < 2:
            return Permutation(self.length, (self.seed, epoch))
        return _Near(self.length, self.near, (self.seed, epoch))


class _Near:
    """Runs of k numbers in any order, and then any order within 64 of them."""

    def __init__(self, length: int, run: int, seeds: tuple[int, int]) -> None:
        self._length, self._run, self._seeds = length, run, seeds
        self._whole = length // run * run  # numbers in whole runs; those after are a run at the end
        self._runs = Permutation(length // run, (*seeds, 1))
        # So that not the same windows are the last ones of every epoch, and no run begins where another did.
        self._shift = int(np.random.SeedSequence([*seeds, 2]).generate_state(1, np.uint64)[0] % length)

    def __call__(self, positions: Array) -> Array:
        buffer = _BUFFER_RUNS * self._run
        found = np.empty_like(positions)
        which = positions // buffer
        for number in np.unique(which).tolist():
            places = np.flatnonzero(which == number)
            begin = number * buffer
            size = min(buffer, self._length - begin)
            within = Permutation(size, (*self._seeds, 3, number))(positions[places] - begin) + begin
            found[places] = within
        whole = found < self._whole
        inner = found[whole]
        found[whole] = self._runs(inner // self._run) * self._run + inner % self._run
        return (found + self._shift) % self._length


class Position:
    """The epoch, and how many of its batches were handed over."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._epoch = 0
        self._batch = 0
        self._is_loaded = False

    def begin(self) -> tuple[int, int]:
        """The epoch that is iterated now, and its first batch: 0 but where a state was loaded."""
        if not self._is_loaded:
            self._batch = 0
        self._is_loaded = False
        return self._epoch, self._batch

    def reached(self, epoch: int, batch: int) -> None:
        """After the last batch of an epoch the next epoch begins, also where nobody asks for one more."""
        self._epoch, self._batch = (epoch, batch) if batch < self._order.batches else (epoch + 1, 0)

    def set_epoch(self, epoch: int) -> None:
        number = arguments.size("epoch", epoch, 0, (1 << 63) - 1)
        if number != self._epoch:
            self._epoch, self._batch, self._is_loaded = number, 0, False

    def state(self) -> dict[str, Any]:
        return {"epoch": self._epoch, "batch": self._batch, **self._order.kind}

    def load(self, state: Mapping[str, Any]) -> None:
        if not isinstance(state, Mapping):
            raise TypeError(f"a state is what state_dict() gives, not {arguments.shown(state)}")
        if missing := [name for name in self._order.kind if name not in state]:
            raise ValueError(
                f"this is no state of batches: {missing[0]!r} is missing in {arguments.shown(state)}"
            )
        for name, value in self._order.kind.items():
            if state[name] != value:
                found = arguments.shown(state.get(name))
                raise ValueError(f"the state was saved with {name} {found}, this one has {value}")
        epoch = arguments.size("epoch of the state", state.get("epoch"), 0, (1 << 63) - 1)
        batch = arguments.size("batch of the state", state.get("batch"), 0, self._order.batches)
        self.reached(epoch, batch)
        self._is_loaded = True
