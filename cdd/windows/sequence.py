"""Windows: which windows there are, and reading many of them at once."""

import copy
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self, overload

import numpy as np
import numpy.typing as npt

from cdd import arguments
from cdd.dtypes import Array, DType, buffer_dtype
from cdd.indexing import row_numbers
from cdd.out import out_items
from cdd.windows import runs
from cdd.windows.members import ALONE, Arrays, Group, Stores, group_of

_OUTSIDE = "window {} is not one of {}"
_of_thread = threading.local()


class Batch(list[Any]):
    """Windows as a list of views of what they were read into, which is `.array`: an array of shape
    (windows, rows, ...), or a dict of them. Collate functions that take lists work on it."""

    array: Any

    def __init__(self, array: Any) -> None:
        self.array = array
        if isinstance(array, dict):
            names = tuple(array)
            super().__init__(
                dict(zip(names, views, strict=True)) for views in zip(*array.values(), strict=True)
            )
        else:
            super().__init__(array)

    def __reduce__(self) -> tuple[Any, ...]:
        return Batch, (self.array,)


class _Field(NamedTuple):
    dtype: DType
    shape: tuple[int, ...]


class Windows(Sequence[Any]):
    """Windows of `rows` rows, every `step` rows, as a sequence of arrays.

        w = cdd.Windows(cdd.open("btc.cdd"), 64)
        w[5]                                    # an array (64, 50, 3): rows 5 to 68
        w.read([9, 2, 7])                       # (3, 64, 50, 3): one call, each chunk decoded once
        cdd.Windows({"book": book, "time": time}, 64)[5]            # {"book": ..., "time": ...}
        cdd.Windows(ds, 64, columns=("ob", "time"), asof={"trades": ("price",)})

    source   what to read:
             a store, a column of a dataset, a logical array or an array in memory: windows are arrays;
             a mapping of names to such, whose rows lie side by side: windows are dicts. The shortest
             decides, so that a writer which is one append ahead does no harm. Arrays of others, such as
             tensors on the CPU, are arrays in memory;
             a dataset or a table of one: dicts of its `columns` (all by default; a name alone: arrays);
             a sequence of any of these, all alike: symbols or days one behind the other. No window crosses
             from one to the next; one with fewer than `rows` rows has none
    rows     of a window; step  rows from the start of one window to that of the next
    asof     of tables: what Table.read_windows() takes, rows of other tables joined by time
    levels, features  as Reader.read has them, of all members whose rows are (levels, features); or a
             mapping of names to picks
    cut      rows where a session begins, which no window crosses; of a sequence one list for each
    max_gap  a session also begins where time steps by more: a timedelta64, or a number in time's unit
    time     what max_gap looks at: an array or store of integers or datetime64, or a member's or column's
             name; a table's clock by default. Of a sequence a name, or one for each
    slack    rows by which members of a mapping may differ in length; any number by default
    raw      times and bfloat16 as integers of their size (int64, uint16), which torch takes

    The length is fixed when it is made: refresh() returns a longer one. A negative number counts from the
    end, a slice gives a Batch. Any number of threads may read. It goes on after a fork and can be pickled as
    its members can: the copy has the same windows, beside a live writer, too.

    Texts are codes, uint32; `categories` has the texts of each.

    Raises ValueError where there is no window (it names the longest run), where members of a sequence have
    other names, dtypes, row shapes or codes of texts, where time goes back or is NaT (it names the row);
    IndexError for a number that is not there.
    """

    def __init__(
        self,
        source: Any,
        rows: int,
        *,
        step: int = 1,
        columns: Sequence[str] | str | None = None,
        asof: Any = None,
        levels: Any = None,
        features: Any = None,
        cut: Any = None,
        time: Any = None,
        max_gap: np.timedelta64 | int | None = None,
        slack: int | None = None,
        raw: bool = False,
    ) -> None:
        self._rows = arguments.size("rows", rows, 1, (1 << 63) - 1)
        self._step = arguments.size("step", step, 1, (1 << 63) - 1)
        self._raw = arguments.flag("raw", raw)
        is_list = isinstance(source, list | tuple)
        sources = list(source) if is_list else [source]
        if not sources:
            raise ValueError("there are no stores in the sequence")
        found = [group_of(each, columns, asof, levels, features) for each in sources]
        self._groups: list[Group] = [group for group, _ in found]
        self._alone = found[0][1]
        if any(alone != self._alone for _, alone in found):
            raise TypeError("a sequence is of stores, of mappings or of tables, not of several kinds")
        self._slack = slack if slack is None else arguments.size("slack", slack, 0, (1 << 63) - 1)
        self._cuts = _of_each("cut", cut, len(sources), is_list, False)
        self._cuts = [runs.cuts_of([] if each is None else each, "cut") for each in self._cuts]
        if time is not None and max_gap is None:
            raise TypeError("time= is what max_gap= looks at, and there is no max_gap")
        self._max_gap = max_gap
        times = _of_each("time", time, len(sources), is_list, isinstance(time, str))
        self._times = [] if max_gap is None else list(map(_time_of, self._groups, times))
        self._jumps: list[list[int]] = [[] for _ in sources]
        self._seen = [0 for _ in sources]
        self._fields = self._same_fields()
        self._texts = self._same_texts()
        self._find_runs()
        if not self._length:
            longest = int(max(np.diff(each).max() for each in self._edges))
            counted = sum(len(each) - 1 for each in self._edges)
            among = f"the longest of {counted} runs" if counted > 1 else "all there is"
            raise ValueError(f"rows is {self._rows}, and {among} has {longest} rows")

    # ------------------------------------------------------------ which there are

    def _same_fields(self) -> dict[str, _Field]:
        """dtype and row shape of each member, the same in all groups."""
        none = np.empty(0, np.int64)
        first: dict[str, _Field] = {}
        for group in self._groups:
            blocks = group.read(none, self._rows, {})
            fields = {name: _Field(block.dtype, block.shape[2:]) for name, block in blocks.items()}
            first = first or fields
            if fields != first:
                raise ValueError(
                    f"{group.name} has {_shown(fields)}, {self._groups[0].name} has {_shown(first)}: members "
                    "of a sequence are alike"
                )
        return first

    def _same_texts(self) -> dict[str, list[str]]:
        """The texts of each text column, in the order of their codes. A member may lack the last of them."""
        longest: dict[str, tuple[list[str], str]] = {}
        for group in self._groups:
            for name, texts in group.texts().items():
                if name not in self._fields:
                    continue
                known, of = longest.get(name, (texts, group.name))
                both = min(len(known), len(texts))
                if known[:both] != texts[:both]:
                    at = next(at for at in range(both) if known[at] != texts[at])
                    raise ValueError(
                        f"text column {name!r}: code {at} is {arguments.shown(texts[at])} in {group.name}, "
                        f"{arguments.shown(known[at])} in {of}: members of a sequence have the same codes"
                    )
                longest[name] = (texts, group.name) if len(texts) > len(known) else (known, of)
        return {name: texts for name, (texts, _) in longest.items()}

    def _find_runs(self) -> None:
        self._edges: list[Array] = []
        for at, group in enumerate(self._groups):
            length = self._length_of(group)
            if self._max_gap is not None:
                self._find_jumps(at, length)
            self._edges.append(runs.edges(length, self._cuts[at], self._jumps[at]))
        firsts = np.concatenate([each[:-1] for each in self._edges])
        lengths = np.concatenate([np.diff(each) for each in self._edges])
        group_numbers = np.repeat(np.arange(len(self._edges)), [len(each) - 1 for each in self._edges])
        counts = np.where(lengths >= self._rows, (lengths - self._rows) // self._step + 1, 0)
        kept = counts > 0
        self._run_group, self._run_first = group_numbers[kept], firsts[kept]
        self._run_end = np.cumsum(counts[kept])
        self._run_window = self._run_end - counts[kept]  # the number of its first window
        self._length = int(counts.sum())

    def _length_of(self, group: Group) -> int:
        if isinstance(group, Stores) and self._slack is not None:
            lengths = group.lengths()
            shortest, longest = min(lengths, key=lengths.__getitem__), max(lengths, key=lengths.__getitem__)
            if lengths[longest] - lengths[shortest] > self._slack:
                raise ValueError(
                    f"{longest!r} has {lengths[longest]} rows, {shortest!r} has {lengths[shortest]}: more "
                    f"than {self._slack} apart"
                )
        return len(group)

    def _find_jumps(self, at: int, length: int) -> None:
        time = self._times[at]
        if len(time) < length:
            raise ValueError(f"time has {len(time)} rows, and {self._groups[at].name} {length}")
        limit = runs.gap_limit(self._max_gap, time, "time")
        what = "time" if len(self._groups) == 1 else f"time of {self._groups[at].name}"
        self._jumps[at] = self._jumps[at] + runs.gaps(time, limit, self._seen[at], length, what)
        self._seen[at] = length

    @property
    def rows(self) -> int:
        """Rows of a window."""
        return self._rows

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what a window has; () where a window is one array."""
        return () if self._alone else tuple(self._fields)

    @property
    def categories(self) -> dict[str, list[str]]:
        """Of each text column, whose windows are codes: the texts, in the order of the codes."""
        return {name: list(texts) for name, texts in self._texts.items()}

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        what = _shown(self._fields)
        return f"<cdd.Windows, {self._length:,} of {self._rows} rows: {what}>"

    def where(self, number: Any) -> Any:
        """(number of the member of the sequence, first row) of a window: two ints, or two arrays for an
        array of numbers."""
        if np.ndim(number):
            return self._places(self._numbers(number))
        group, start = self._place(number)
        return group, start

    def refresh(self) -> Self:
        """Refreshes what it reads, and returns windows of all rows that are there now. This one stays as it
        is."""
        for group in self._groups:
            group.refresh()
        longer = copy.copy(self)
        longer._texts = longer._same_texts()
        longer._jumps, longer._seen = list(self._jumps), list(self._seen)
        longer._find_runs()
        return longer

    # ------------------------------------------------------------ reading

    @overload
    def __getitem__(self, number: int) -> Any: ...
    @overload
    def __getitem__(self, number: slice) -> Batch: ...
    def __getitem__(self, number: int | slice) -> Any:
        if isinstance(number, slice):
            return self.__getitems__(range(self._length)[number])
        group, start = self._place(number)
        return self._given(self._groups[group].one(start, self._rows))

    def __getitems__(self, numbers: Sequence[int]) -> Batch:
        """Several windows, read in one call, as a list of views of one array: what torch's DataLoader asks
        for."""
        return Batch(self.read(numbers))

    def __iter__(self) -> Iterator[Any]:
        for number in range(self._length):
            yield self[number]

    def read(self, numbers: npt.ArrayLike, out: Any = None) -> Any:
        """Windows of these numbers in one call: an array of shape (len(numbers), rows, ...), or a dict of
        them. `out` is filled instead: a buffer as Reader.read_windows takes it, or a dict of buffers for
        some of the names."""
        groups, starts = self._places(self._numbers(numbers))
        buffers: dict[str, Any] = {} if out is None else {ALONE: out} if self._alone else dict(out)
        if unknown := buffers.keys() - self._fields.keys():
            raise KeyError(f"out has {unknown.pop()!r}, which is not one of {tuple(self._fields)}")
        if not len(groups) or (groups == groups[0]).all():
            group = self._groups[groups[0] if len(groups) else 0]
            return self._given(group.read(starts, self._rows, buffers))
        return self._given(self._gathered(groups, starts, buffers))

    def _gathered(self, groups: Array, starts: Array, buffers: Mapping[str, Any]) -> Arrays:
        """Windows of several groups: those of each in one call, then each to its place."""
        lead = len(groups), self._rows
        targets: Arrays = {}
        for name, field in self._fields.items():
            if name in buffers:
                targets[name] = out_items(buffers[name], field.dtype, (*lead, *field.shape))
            else:
                targets[name] = np.empty((*lead, *field.shape), buffer_dtype(field.dtype))
        for number in np.unique(groups).tolist():
            places = np.flatnonzero(groups == number)
            between = {name: _scratch(name, target, len(places)) for name, target in targets.items()}
            for name, block in self._groups[number].read(starts[places], self._rows, between).items():
                targets[name][places] = block.view(targets[name].dtype)
        return {
            name: buffers[name] if name in buffers else target.view(self._fields[name].dtype)
            for name, target in targets.items()
        }

    def _given(self, blocks: Arrays) -> Any:
        if self._raw:
            blocks = {name: _raw(block) for name, block in blocks.items()}
        return blocks[ALONE] if self._alone else blocks

    def _place(self, number: Any) -> tuple[int, int]:
        at = arguments.index("the number of a window", number)
        found = at + self._length if at < 0 else at
        if not 0 <= found < self._length:
            raise IndexError(_OUTSIDE.format(at, self._length))
        run = 0 if len(self._run_end) == 1 else int(self._run_end.searchsorted(found, "right"))
        start = int(self._run_first[run]) + (found - int(self._run_window[run])) * self._step
        return int(self._run_group[run]), start

    def _numbers(self, numbers: npt.ArrayLike) -> Array:
        found = np.asarray(numbers)
        if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
            raise TypeError(f"windows are read by a sequence of numbers, not by {arguments.shown(numbers)}")
        return row_numbers(found, self._length, _OUTSIDE)

    def _places(self, numbers: Array) -> tuple[Array, Array]:
        run = np.searchsorted(self._run_end, numbers, "right")
        starts = self._run_first[run] + (numbers - self._run_window[run]) * self._step
        return self._run_group[run], starts


def _scratch(name: str, like: Array, count: int) -> Array:
    """Memory of this thread for `count` entries of an array like this one: allocating and freeing it for each
    group would cost more in page faults than reading does."""
    needed = count * like[:1].nbytes
    held: dict[str, Array] = _of_thread.__dict__
    if name not in held or held[name].nbytes < needed:
        held[name] = np.empty(needed, np.uint8)
    return held[name][:needed].view(like.dtype).reshape(count, *like.shape[1:])


def _raw(block: Any) -> Any:
    """Times and bfloat16 as integers of their size; what the caller gave as it is."""
    return block.view(buffer_dtype(block.dtype)) if isinstance(block, np.ndarray) else block


def _shown(fields: Mapping[str, _Field]) -> str:
    return ", ".join(f"{name and name + ' '}{field.dtype} {field.shape}" for name, field in fields.items())


def _of_each(name: str, value: Any, count: int, is_list: bool, is_given_once: bool) -> list[Any]:
    """What an option has for each member of a sequence."""
    if value is None:
        return [None] * count
    if not is_list or is_given_once:
        return [value] * count
    if not isinstance(value, list | tuple) or len(value) != count:
        raise ValueError(
            f"{name} has one entry for each of the {count} in the sequence, not {arguments.shown(value)}"
        )
    return list(value)


def _time_of(group: Group, given: Any) -> Any:
    if isinstance(given, str):
        return group.member(given)
    found = group.time() if given is None else given
    if found is None:
        raise TypeError(f"max_gap looks at time=, an array or a name, and {group.name} has no clock")
    return found if hasattr(found, "dtype") else np.asarray(found)
