"""A process that applies a plan to a log, and is killed, or finds the disk full, at one write after another.

Arguments: a directory to work in, in which `base` has the log, the journal and PLAN; `kill` or `full`. write_faults.c
must be preloaded. Each write is tried in a child; then the plan is applied once more without a fault. A line says what
the log held after the fault, `before`, `after` or `absent`; what is none of these, or not well in the end, is an error.
"""

import io
import os
import shutil
import sys
from pathlib import Path

from aclog.__main__ import run
from aclog.metalog.errors import LogError
from aclog.planning.journal import read_journal
from aclog.planning.plan import JournalError
from aclog.snapshots.publisher import recover
from aclog.targets.applies import check_applied
from aclog.targets.log import is_absent, open_log_place
from tests.support.processes.write_faults import fault_at


def rules(directory: Path) -> "frozenset[str] | None":
    """The ACLs of the log, as text; None if there is no log."""
    if is_absent(directory / "log"):
        return None
    return frozenset(str(rule.acl) for rule in recover(directory / "log").image.acls)


def apply(directory: Path) -> int:
    """Apply the plan; return the exit code."""
    return run(
        ["apply", f"{directory}/PLAN", "--yes", "--log", f"{directory}/log", "--journal", f"{directory}/journal"]
    )


def ends_well(directory: Path, after: "frozenset[str]") -> str:
    """What is wrong after the plan was applied once more; nothing if all is well."""
    if apply(directory):
        return "the second apply failed"
    if rules(directory) != after:
        return "not what was planned"
    journal = read_journal(directory / "journal", lambda: "none", print)
    if journal.open is not None:
        return "still open"
    try:
        with open_log_place(directory / "log", print, write=False) as place:
            check_applied(directory / "log", place.identity(), journal)
    except JournalError as error:
        return str(error)
    return "" if len(journal.owned) == len(after) else f"owns {len(journal.owned)} of {len(after)}"


def main(work: Path, how: str) -> None:
    """Work through the writes."""
    base = work / "base"
    before = rules(base)
    shutil.copytree(base, work / "whole")
    sys.stdout = io.StringIO()
    if apply(work / "whole"):
        raise LogError("the plan cannot be applied")
    after = rules(work / "whole")
    assert after is not None
    for write in range(1, 10_000):
        here = work / f"{write}"
        shutil.copytree(base, here)
        child = os.fork()
        if not child:
            shim = fault_at(write, full=how == "full")
            code = apply(here)
            os._exit(0 if shim.fault_left() > 0 and not code else 3)
        _, status = os.waitpid(child, 0)
        state = rules(here)
        name = {before: "before", after: "after", None: "absent"}.get(state, f"torn: {state}")
        os.write(1, f"{name} {ends_well(here, after)}\n".encode())
        shutil.rmtree(here)
        if status == 0:
            os.write(1, b"done\n")
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
