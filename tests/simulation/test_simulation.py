"""Seeds of the simulated cluster: the same in every process, without a failure, and with what is planted found."""

import os
import subprocess
import sys

import pytest

from tests.simulation.simulate import run_seed

SEEDS = range(1, 21)
"""Which of these run is a sample, below `make test-all`."""

SCRIPT = """
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
