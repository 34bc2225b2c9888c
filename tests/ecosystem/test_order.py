"""The order of an epoch: a permutation without memory, exact for each length, and what ranks get of it."""

import json
import tracemalloc

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from cdd.windows.order import Order, Position
from cdd.windows.permutation import Permutation


def test_it_is_a_bijection_of_every_length() -> None:
    for length in [*range(1, 2001), 4095, 4096, 4097, 5000]:
        numbers = Permutation(length, (length, 3))(np.arange(length))
        assert np.array_equal(np.sort(numbers), np.arange(length)), length


@pytest.mark.parametrize("length", [1 << 20, (1 << 20) + 1, 1_000_003])
def test_it_is_a_bijection_of_long_ones(length: int) -> None:
    seen = np.zeros(length, bool)
    seen[Permutation(length, (1, 2))(np.arange(length))] = True
    assert seen.all()


@pytest.mark.parametrize("length", [2**30 - 1, 2**30, 2**30 + 1, 10**9, 2**62 + 1])
def test_numbers_of_a_huge_range_stay_within_and_differ(length: int) -> None:
    numbers = np.unique(np.random.default_rng(0).integers(0, length, 50_000))
    found = Permutation(length, (7, 0))(numbers)
    assert found.min() >= 0
    assert found.max() < length
    assert len(np.unique(found)) == len(numbers)
    # Spread evenly: the halves, quarters, ... of the range have as many, within five standard deviations.
    counts = np.bincount((found >> max(0, length.bit_length() - 7)).astype(int))
    even = len(numbers) / (length / 2 ** max(0, length.bit_length() - 7))
    assert (np.abs(counts[:-1] - even) < 5 * even**0.5).all()


def test_it_is_the_same_for_ever() -> None:
    # Of a training that is resumed with a later version, and of two machines.
    assert Permutation(10, (0, 0))(np.arange(10)).tolist() == [8, 7, 2, 0, 3, 5, 9, 6, 4, 1]
    assert Permutation(10**9, (5, 2))(np.arange(4)).tolist() == [195343740, 819213955, 44085001, 958128945]


@pytest.mark.parametrize("length", [2, 3, 5, 8, 13])
def test_each_place_has_each_number_as_often(length: int) -> None:
    epochs = 6000
    counts = np.zeros((length, length))
    for epoch in range(epochs):
        counts[np.arange(length), Permutation(length, (11, epoch))(np.arange(length))] += 1
    expected = epochs / length
    chi_square = ((counts - expected) ** 2 / expected).sum()
    freedom = (length - 1) ** 2
    # Normal from some degrees of freedom on; six standard deviations of it.
    assert chi_square < freedom + 6 * (2 * freedom) ** 0.5 + 6


def test_neighbours_do_not_stay_neighbours() -> None:
    found = Permutation(100_000, (1, 1))(np.arange(100_000))
    steps = np.abs(np.diff(found))
    assert (steps < 100).mean() < 0.004  # 0.002 where each order is as likely
    assert abs(np.corrcoef(np.arange(100_000), found)[0, 1]) < 0.02
    other = Permutation(100_000, (1, 2))(np.arange(100_000))
    assert (found == other).mean() < 0.001


@hypothesis.given(
    st.integers(1, 3000), st.integers(1, 70), st.integers(1, 4), st.sampled_from([0, 0, 1, 2, 7, 64]),
    st.booleans(), st.booleans(), st.integers(0, 5),
)  # fmt: skip
def test_ranks_share_an_epoch(
    length: int, batch_size: int, world: int, near: int, shuffle: bool, drop_last: bool, epoch: int
) -> None:
    def order(rank: int) -> Order:
        return Order(
            length,
            batch_size,
            shuffle=shuffle,
            near=near,
            rank=rank,
            world=world,
            drop_last=drop_last,
            seed=9,
        )

    if drop_last and length // world < batch_size:
        with pytest.raises(ValueError, match="no whole batch"):
            order(0)
        return
    ranks = [list(order(rank).epoch(epoch)) for rank in range(world)]
    assert len({len(batches) for batches in ranks}) == 1
    assert len(ranks[0]) == order(0).batches
    assert len({tuple(len(batch) for batch in batches) for batches in ranks}) == 1
    sizes = [len(batch) for batch in ranks[0]]
    assert all(size == batch_size for size in (sizes if drop_last else sizes[:-1]))
    numbers = np.concatenate([batch for batches in ranks for batch in batches])
    counts = np.bincount(numbers, minlength=length)
    assert len(counts) == length
    if drop_last:
        assert counts.max() == 1
        assert counts.sum() == length // world // batch_size * batch_size * world
    else:
        assert counts.min() >= 1
        assert counts.max() - counts.min() <= 1
        assert counts.sum() == -(-length // world) * world
    if not shuffle and world == 1:
        assert np.array_equal(numbers, np.arange(len(numbers)))


@hypothesis.given(st.integers(1, 400), st.integers(1, 50), st.sampled_from([0, 3]), st.data())
def test_any_batch_can_be_the_first(length: int, batch_size: int, near: int, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cdd.windows.order._BLOCK", data.draw(st.sampled_from([1, 40, 16_384])))
        order = Order(length, batch_size, near=near, drop_last=False)
        whole = list(order.epoch(2))
        first = data.draw(st.integers(0, order.batches))
        rest = list(order.epoch(2, first))
        assert [batch.tolist() for batch in rest] == [batch.tolist() for batch in whole[first:]]


def test_near_reads_neighbours_together() -> None:
    order = Order(1_000_000, 256, near=64)
    batches = [batch for _, batch in zip(range(200), order.epoch(0), strict=False)]
    runs = [len(np.unique(batch // 128)) for batch in batches]
    assert max(runs) <= 2 * 65 + 2  # 64 runs of 64, each over at most two blocks of 128, and a buffer's end
    assert np.mean([len(np.unique(batch // 128)) for batch in list(Order(50_000, 256).epoch(0))[:50]]) > 180
    last = {int(list(Order(1000, 10, near=64).epoch(epoch))[-1][0]) for epoch in range(20)}
    assert len(last) > 10, "not the same windows are the last ones of each epoch"


def test_the_first_batch_of_a_billion_takes_no_memory() -> None:
    for near in (0, 64):
        tracemalloc.start()
        next(Order(10**9, 256, near=near).epoch(0))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 4e6


def test_bad_arguments_are_errors() -> None:
    for arguments, text in [
        ({"length": 0}, "length is 0"), ({"batch_size": 0}, "batch_size is 0"), ({"seed": -1}, "seed is -1"),
        ({"rank": 2, "world": 2}, "rank is 2"), ({"world": 0}, "world is 0"), ({"near": -1}, "near is -1"),
        ({"batch_size": 11}, "batch_size is 11, and each of 1 ranks has 10 of 10 windows"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=text):
            Order(**{"length": 10, "batch_size": 2, **arguments})
    with pytest.raises(TypeError, match="shuffle is a bool"):
        Order(10, 2, shuffle=1)  # type: ignore[arg-type]


def test_a_position_is_loaded_only_into_the_same_order() -> None:
    position = Position(Order(1000, 10, seed=1))
    position.reached(3, 40)
    state = json.loads(json.dumps(position.state()))
    assert len(json.dumps(state)) <= 200
    other = Position(Order(1000, 10, seed=1))
    other.load(state)
    assert other.begin() == (3, 40)
    assert other.begin() == (3, 0), "the one after begins the epoch anew"
    for wrong in (
        {"length": 999},
        {"batch_size": 5},
        {"seed": 2},
        {"near": 4},
        {"shuffle": False},
        {"world": 2},
    ):
        with pytest.raises(ValueError, match=f"the state was saved with {next(iter(wrong))}"):
            other.load(state | wrong)
    for bad in ({"batch": 101}, {"batch": -1}, {"epoch": -1}):
        with pytest.raises(ValueError, match="of the state is"):
            other.load(state | bad)
    with pytest.raises(TypeError, match="epoch of the state"):
        other.load({k: v for k, v in state.items() if k != "epoch"})
    other.load(state | {"batch": 100})
    assert other.begin() == (4, 0), "all of epoch 3 was handed over"
    other.load(state)
    other.set_epoch(3)
    assert other.begin() == (3, 40), "set_epoch() of the epoch under way changes nothing"
    other.load(state)
    other.set_epoch(4)
    assert other.begin() == (4, 0)
