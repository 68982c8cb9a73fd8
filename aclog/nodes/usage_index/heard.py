"""The coverage of a node's own decisions: when it was at work, whether anybody asked it or not."""

from collections.abc import Sequence

import numpy as np

from aclog.usage.coverage import HOUR, Coverage


def heard(broker: str, since: int, until: int, decisions: int) -> Coverage:
    """Return that a broker was at work from `since` to `until` (us since 1970), hour by hour.

    Its decisions count in the last hour, in which an interval of seconds lies nearly always.
    """
    hour = np.arange(since // HOUR, until // HOUR + 1, dtype=np.int64)
    rows = np.zeros(len(hour), np.int64)
    rows[-1] = decisions
    return Coverage(
        brokers=(broker,),
        broker=np.zeros(len(hour), np.int64),
        hour=hour,
        rows=rows,
        first=np.maximum(hour * HOUR, since),
        last=np.minimum((hour + 1) * HOUR - 1, until),
    )


def expected(brokers: Sequence[str], at: int) -> Coverage:
    """Return that there are other brokers, of whose decisions nothing is known from `at` (us since 1970) on."""
    return Coverage.sum(heard(broker, at, at, 0) for broker in brokers)
