"""Seeds of the simulated cluster: the same in every process, without a failure, and with what is planted found.

Each test is a process of its own: while a seed runs, it replaces clocks, files and threads of its interpreter.
"""

import os
import subprocess
import sys

import pytest

from aclog.metalog.native import NATIVE_VARIABLE
from tests.simulation.mutations import MUTATIONS, planted
from tests.simulation.simulate import WORLDS

QUICKLY_FOUND = (
    "acknowledged before the commit",
    "published when staged",
    "published after a failed commit",
    "the mark before the append",
    "the committed mark runs ahead",
    "no fsync of the segment",
    "replaced before its fsync",
    "deny is overlooked",
    "a lost epoch check",
    "beyond the last stable offset",
    "a commit that is not read back",
    "acknowledged before the transaction",
    "ready before the mark",
    "the end of the log is the mark",
    "a diverging tail is not truncated",
    "the mark of another leader",
    "historical reads are not cut",
    "every removal is plausible",
    "a poll is recorded in parts",
    "a filter is too wide",
    "an interval is added twice",
    "an interval that failed is dropped",
    "transactions are not synced",
    "the name of the index is not durable",
)
"""Mutations that one of the first seeds finds; the others take up to minutes: `make simulate-mutations`."""


FAILED = (
    ("admin", "7", ""),  # a power loss left a hole in the journal's last line
    ("admin", "318", ""),  # a line whose fsync had failed stayed in the journal
    ("quorum", "3", ""),  # a quorum that was formatted again, whose log begins beyond the observers, was followed
    ("usage", "1", ""),  # a power loss took the directory of the index
    ("quorum", "11", "1"),  # a mirror that began anew after a snapshot did not report how far it was
    ("quorum", "3747", "1"),  # a new mirror ended at one voter of another cluster while the others elected a leader
    ("quorum", "5907", "1"),  # a snapshot of a leader that was gone: the mirror retried for ever, and reported no end
    ("usage", "100104", "1"),  # a commit whose fsync had failed was recovered: a power loss took those after it
    ("files", "2985", "1"),  # the committed mark could not be written: what was committed then was answered as failed
    ("files", "2430", "1"),  # after a power loss of the controller, each idle connection of a broker cost a request
    ("topic", "14461", "1"),  # after a slow transaction, a single request waited as long for others to join its own
)
"""Seeds that have failed, with SHORT if they were short, before what they found was fixed."""


def simulate(module: str, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a module of the simulation."""
    command = [sys.executable, "-W", "ignore", "-m", f"tests.simulation.{module}", *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)


@pytest.mark.process
@pytest.mark.tier("test")
def test_seeds_without_a_failure():
    """Two of each world."""
    run = simulate("simulate", SEED="1", COUNT="10")
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1].endswith(" 0 failures")


@pytest.mark.process
@pytest.mark.tier("all")
@pytest.mark.parametrize(("world", "seed", "short"), FAILED)
def test_a_seed_that_has_failed(world, seed, short):
    run = simulate("simulate", SEED=seed, WORLD=world, SHORT=short)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.process
@pytest.mark.tier("test")
@pytest.mark.parametrize("world", WORLDS)
def test_a_seed_is_the_same_in_every_process_and_without_the_native_core(world):
    others = ({"PYTHONHASHSEED": "1", NATIVE_VARIABLE: ""}, {"PYTHONHASHSEED": "2", NATIVE_VARIABLE: "0"})
    runs = [simulate("simulate", SEED="4", WORLD=world, TRACE="1", SHORT="1", **each) for each in others]
    first, second = ([line for line in run.stdout.splitlines() if "per CPU hour" not in line] for run in runs)
    assert len(first) > 20
    assert first == second


@pytest.mark.parametrize("name", MUTATIONS)
def test_what_a_mutation_breaks_is_still_there(name):
    with planted(name):
        pass


@pytest.mark.process
@pytest.mark.tier("all")
def test_planted_mutations_are_found():
    run = simulate("mutations", *QUICKLY_FOUND)
    assert run.returncode == 0, run.stdout + run.stderr
