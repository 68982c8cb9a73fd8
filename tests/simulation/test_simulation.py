"""Seeds of the simulated cluster: the same in every process, without a failure, and with what is planted found."""

import os
import subprocess
import sys

import pytest

from tests.simulation.mutations import planted
from tests.simulation.simulate import run_seed

SEEDS = range(1, 21)
"""Which of these run is a sample, below `make test-all`."""

QUICKLY_FOUND = (
    "acknowledged before the commit",
    "published when staged",
    "published after a failed commit",
    "the mark before the append",
    "the committed mark runs ahead",
    "whole batches above the mark are dropped",
    "no fsync of the segment",
    "a failed append is not truncated",
    "replaced before its fsync",
    "deny is overlooked",
)
"""Mutations that one of the first seeds finds."""

SCRIPT = """
from tests.simulation.mutations import planted
from tests.simulation.simulate import run_seed
outcome = run_seed({seed}, seconds=30.0)
print(outcome.digest, outcome.steps, outcome.failures)
"""


@pytest.mark.process
@pytest.mark.slow(10)
@pytest.mark.tier("test")
def test_a_seed_is_the_same_in_every_process():
    printed = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-W", "ignore", "-c", SCRIPT.format(seed=4)]
        printed.add(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
    assert len(printed) == 1
    assert printed.pop().endswith("()\n")


@pytest.mark.sample(10)
@pytest.mark.tier("test")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_without_a_failure(seed):
    assert run_seed(seed, seconds=90.0).failures == ()


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", QUICKLY_FOUND)
def test_a_mutation_is_found(name):
    """Within a few seeds; the others take minutes: `make simulate-mutations`."""
    with planted(name):
        assert any(run_seed(seed, seconds=60.0).failures for seed in range(12))
