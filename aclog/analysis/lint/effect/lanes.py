"""States of requests as numbers: which operations some rules allow and deny, and which of these more than one does.

Four lanes of 16 bits, by the codes of AclOperation: allowed by a rule, denied by a rule, allowed by two or more, denied
by two or more. So one number tells whether a rule could be missed: an operation that is denied, and not by two, depends
on the one rule that denies it.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

States: TypeAlias = NDArray[np.uint64]

_LANE = np.uint64(0xFFFF)
_ONCE = np.uint64(0xFFFFFFFF)
_TO_TWICE = np.uint64(32)
DENIED_TO_ALL = np.uint64(0xFFFF_0000_FFFF_0000)
"""Every operation denied, whatever else is removed."""


def combined(one: States, other: States) -> States:
    """Return the state of the rules of both."""
    return one | other | (one & other & _ONCE) << _TO_TWICE


def allowed(states: States) -> States:
    """Return the operations that some rule allows."""
    return states & _LANE


def denied(states: States) -> States:
    """Return the operations that some rule denies."""
    return states >> np.uint64(16) & _LANE


def allowed_twice(states: States) -> States:
    """Return the operations that several rules allow."""
    return states >> np.uint64(32) & _LANE


def denied_twice(states: States) -> States:
    """Return the operations that several rules deny."""
    return states >> np.uint64(48)
