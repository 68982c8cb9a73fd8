"""How many connections this process has files for, beside those that it needs itself."""

import logging
import resource

OWN_FILES = 256
"""Segments, checkpoints, listeners, connections to other nodes: without them a node cannot go on."""

_log = logging.getLogger(__name__)


def connections_within_files(wanted: int) -> int:
    """At most `wanted` connections, and no more than there are files for.

    The process's limit of open files is raised as far as it goes without privileges, as the Java machine does; if it
    still is too low, fewer connections are served and a warning says so, since clients could otherwise take the files
    that the log needs.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    served = max(1, soft - OWN_FILES)
    _log.warning("%d connections at most, not %d: this process may open %d files (ulimit -n)", served, wanted, soft)
    return served
