"""Silences of brokers, from the hours that the index keeps, against all lines."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from aclog.usage.unused import HOUR, HeardHours, Silence, first_heard, silences

TICK = HOUR // 4
times = st.lists(st.integers(0, 80), max_size=25).map(lambda ticks: sorted(tick * TICK for tick in ticks))


def heard(lines) -> HeardHours:
    hours = sorted({line // HOUR for line in lines})
    of_hour = [[line for line in lines if line // HOUR == hour] for hour in hours]
    return HeardHours(
        first=np.array([min(each) for each in of_hour], np.int64),
        last=np.array([max(each) for each in of_hour], np.int64),
    )


@given(
    st.dictionaries(st.sampled_from([None, "1", "2"]), times, max_size=3),
    st.integers(-5, 60), st.integers(1, 60), st.integers(4, 40),
)  # fmt: skip
def test_silences_are_the_gaps_between_lines(lines, start, length, gap):
    start, until, gap = start * TICK, (start + length) * TICK, gap * TICK
    expected = []
    for broker in sorted(lines, key=lambda name: (name is not None, name or "")):
        known = [None, *lines[broker], None]
        for since, to in pairwise(known):
            begin, end = start if since is None else max(since, start), until if to is None else min(to, until)
            if end - begin >= gap:
                expected.append(Silence(broker=broker, since=since, to=to))
    found = {broker: heard(each) for broker, each in lines.items()}
    assert list(silences(found, start, until, gap=gap)) == expected
    later = [line for each in lines.values() for line in each if line >= start // HOUR * HOUR]
    assert first_heard(found.values(), start // HOUR * HOUR) == min(later, default=None)
