"""What follows from a leader's answer."""

from typing import TypeAlias

from attrs import frozen

from aclog.metalog.batch_run import BatchRun
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.observer.fetch_messages import EpochEnd


@frozen(kw_only=True)
class Progress:
    """An answer in order: the batches that are committed now, in as many runs as they came in. There may be none."""

    committed: tuple[BatchRun, ...] = ()


@frozen(kw_only=True)
class SnapshotNeeded:
    """The log goes on from a snapshot only: the leader no longer has what comes next."""

    snapshot: EpochEnd


@frozen(kw_only=True)
class Again:
    """Ask the same node again: now the leader's epoch is known, or what diverged is forgotten."""


@frozen(kw_only=True)
class Elsewhere:
    """Ask another node: the leader, where it is known, else any. `why` is for an operator."""

    why: str
    leader: HostPort | None = None


Step: TypeAlias = Progress | SnapshotNeeded | Again | Elsewhere
