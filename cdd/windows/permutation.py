"""A shuffle that needs no memory: number -> number, a bijection of range(n) for each seed.

A Feistel network over the smallest power of two that holds n, of two halves that differ by a bit at most, and
cycle walking: a number that leaves the range is put through again until it is back. Since the network is a
bijection, so is what remains of its cycles (J. Black and P. Rogaway, "Ciphers with Arbitrary Finite Domains",
CT-RSA 2002; the network is due to H. Feistel, its analysis to M. Luby and C. Rackoff, 1988). The domain has
fewer than 2 n numbers, so that two passes are needed on average at most. Nothing here is a cipher: the round
function is a multiplicative hash.
"""

from collections.abc import Sequence

import numpy as np

from cdd.dtypes import Array

_ROUNDS = 8
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
_ODD2 = np.uint64(0xD6E8FEB86659FD93)
_FOLD = np.uint64(32)


class Permutation:
    """A permutation of range(length), one for each sequence of seeds: integers that are not negative.

    The same for ever: on all machines, and by NumPy's promise for SeedSequence with all its versions.
    """

    def __init__(self, length: int, seeds: Sequence[int]) -> None:
        self._length = np.uint64(length)
        bits = max(2, (length - 1).bit_length())
        left, right = bits // 2, bits - bits // 2
        self._right_bits, self._right_mask = np.uint64(right), np.uint64((1 << right) - 1)
        self._drop_left, self._drop_right = np.uint64(64 - left), np.uint64(64 - right)
        self._keys = np.random.SeedSequence(list(seeds)).generate_state(_ROUNDS, np.uint64)

    def __call__(self, numbers: Array) -> Array:
        """Where these numbers of range(length) go, as int64."""
        found = self._passed(numbers.astype(np.uint64))
        outside = np.flatnonzero(found >= self._length)
        while outside.size:
            walked = self._passed(found[outside])
            found[outside] = walked
            outside = outside[walked >= self._length]
        return found.view(np.int64)

    def _passed(self, numbers: Array) -> Array:
        left, right = numbers >> self._right_bits, numbers & self._right_mask
        for at in range(0, _ROUNDS, 2):
            left ^= _hash(right, self._keys[at]) >> self._drop_left
            right ^= _hash(left, self._keys[at + 1]) >> self._drop_right
        return left << self._right_bits | right


def _hash(numbers: Array, key: np.uint64) -> Array:
    """64 bits, the high ones the best."""
    found = (numbers ^ key) * _ODD
    found ^= found >> _FOLD
    found *= _ODD2
    return found
