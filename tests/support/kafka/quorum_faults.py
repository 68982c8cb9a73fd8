"""What happens to the leaders of a test Kafka, one after another, in a thread of its own."""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Self

from tests.support.kafka.quorum import KafkaQuorum, QuorumNode

KINDS = ("killed", "killed", "killed", "paused", "stopped")
"""As often as each stands there: SIGKILL, SIGSTOP until there is another leader, SIGTERM."""
_LONGEST_WAIT = 2.0
"""Seconds, at most, between what was waited for and the fault."""


class LeaderFaults:
    """As many faults as there are `thresholds`, of these `kinds`, each some time after `reach` has told that much.

    One at a time: a node that was ended is started again before the next one, so that there is always a majority.
    """

    def __init__(self, kafka: KafkaQuorum, thresholds: Sequence[int], kinds: Sequence[str], random: Random) -> None:
        self._kafka, self._thresholds, self._kinds, self._random = kafka, thresholds, kinds, random
        self.done: Counter[str] = Counter()
        self.at_work = False
        """Whether a fault lasts, from before its begin until all nodes are there again."""
        self._reached = 0
        self._changed = threading.Condition()
        self._closing = False
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="leader-faults", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def reach(self, count: int) -> None:
        """Tell how far the load has come."""
        with self._changed:
            self._reached = count
            self._changed.notify_all()

    def finish(self) -> None:
        """Wait for all faults whose time has come; raises what went wrong in the thread."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            for threshold in self._thresholds:
                with self._changed:
                    self._changed.wait_for(lambda threshold=threshold: self._closing or self._reached >= threshold)
                if self._closing:
                    return
                time.sleep(self._random.uniform(0, _LONGEST_WAIT))
                self.at_work = True
                self._do(self._random.choice(self._kinds), self._kafka.leader())
                self.at_work = False
        except Exception as error:  # noqa: BLE001 - told by `finish`
            self._failure = error

    def _do(self, kind: str, leader: QuorumNode) -> None:
        if kind == "paused":
            leader.pause()
        elif kind == "stopped":
            leader.stop()
        else:
            leader.kill()
        self.done[f"leader {kind}"] += 1
        self._kafka.wait_leader()
        time.sleep(self._random.uniform(0, _LONGEST_WAIT))
        if kind == "paused":
            leader.resume()
        else:
            leader.start()
