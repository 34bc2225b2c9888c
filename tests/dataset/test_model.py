"""The model of the commit protocol: some states of each scenario, and mutants that are found early.

dev.py soak searches all of them with more states. A change of the protocol changes the model first.
"""

import os

import pytest

from tests.dataset.search import MUTANTS, SCENARIOS, explore, find_mutant

RARE = (
    "built-on-unsynced-commit",
    "ghost-not-checked",
    "no-conflict-check",
    "opened-without-folder-sync",
    "owner-lets-go-before-commit",
    "pack-not-looked-at-again",
    "prune-ignores-owners",
    "pruned-on-unsynced-log",
    "two-prune-at-once",
)
"""Mutants that are found after more states than a change's tests look at."""


STATES = int(os.environ.get("CDD_MODEL_STATES", "2000"))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s[0])
def test_nothing_is_found(scenario: tuple) -> None:
    found = explore(scenario, (), STATES)
    assert "found" not in found
    assert found["states"] > 100


@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m not in RARE or STATES > 50_000])
def test_a_mutant_is_found(mutant: str) -> None:
    assert find_mutant(mutant, STATES) is not None
