"""A node's merger: in a process of its own where there is much to merge, and told of in metrics and in the log."""

import logging

from aclog.nodes.telemetry.metrics import Metrics
from aclog.snapshots.fold_in_process import FoldInProcess
from aclog.snapshots.merger import Merger, MergeReport
from aclog.snapshots.publisher import Publisher

_log = logging.getLogger(__name__)


def merger_of(publisher: Publisher, metrics: Metrics) -> Merger:
    """Return the merger of a node's images, which the node must close."""

    def report(merge: MergeReport) -> None:
        """Count a merge, and log it."""
        what = f"{merge.changes} changes into the index of {merge.rules} ACLs"
        if merge.failure is not None:
            metrics.merge_failures.inc()
            # Decisions are right all the same: they take what has changed from the overlay.
            _log.warning("could not merge %s (tried again later): %s", what, merge.failure)
            return
        metrics.merges.observe(merge.seconds)
        _log.debug("merged %s in %.2f s", what, merge.seconds)

    metrics.overlay.set_function(lambda: publisher.current.acls.overlay_size)
    return Merger(publisher=publisher, folder=FoldInProcess(), report=report)
