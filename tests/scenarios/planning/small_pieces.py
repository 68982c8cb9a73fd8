"""`aclog apply PLAN` in pieces of a few steps, in a process that can be killed."""

import sys
from unittest import mock

from aclog.__main__ import run
from aclog.targets import cluster


def main() -> None:
    """Arguments: steps of a piece, and the plan."""
    most, plan = int(sys.argv[1]), sys.argv[2]
    with mock.patch.multiple(cluster, MOST_ADDED=most, MOST_REMOVED=most):
        sys.exit(run(["apply", plan, "--yes", "--accept-transient-denials"]))


if __name__ == "__main__":
    main()
