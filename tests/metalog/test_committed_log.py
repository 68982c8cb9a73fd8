"""The window of committed batches: trimmed and joined, readable anywhere."""

from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.batches import BatchRun, build_batch, iter_batches
from aclog.metalog.committed_log import CommittedWindow


def runs(sizes, base=0, value=b"x"):
    """Return runs of the given numbers of batches, each batch with one or two records."""
    found = []
    for size in sizes:
        data = b""
        for number in range(size):
            values = [value] * (1 + number % 2)
            data += build_batch(values, base_offset=base, leader_epoch=1, timestamp=0)
            base += len(values)
        found.append(BatchRun.of(data))
    return found


def naive_read(data, offset, max_bytes):
    found, end = b"", None
    for position, header in iter_batches(data):
        if header.end_offset <= offset:
            continue
        if found and len(found) + header.size > max_bytes:
            break
        found += data[position : position + header.size]
        end = header.end_offset
    return found, end


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(0, 80), st.integers(1, 1500), st.booleans())
def test_reads_what_it_was_given(sizes, offset, max_bytes, large):
    window, given_runs = CommittedWindow(), runs(sizes, value=b"x" * 9000 if large else b"x")
    for run in given_runs:
        window.append(run)
    data = b"".join(run.data for run in given_runs)
    assert (window.start, window.end, window.size) == (0, given_runs[-1].end_offset, len(data))
    max_bytes *= 60 if large else 1
    expected = naive_read(data, offset, max_bytes)
    assert window.read(offset, max_bytes) == (expected if expected[0] else None)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(0, 50), st.integers(0, 50_000))
def test_drops_whole_runs_that_were_read_and_only_as_many_as_needed(sizes, offset, size):
    window = CommittedWindow()
    given_runs = runs(sizes, value=b"x" * 9000)
    for run in given_runs:
        window.append(run)
    window.drop(offset, size)
    assert window.start <= offset or window.start == 0
    assert window.size <= size or window.read(offset, 1) is not None or offset >= window.end
    left = b"".join(run.data for run in given_runs if run.base_offset >= window.start)
    assert window.size == len(left)
    if left:
        assert window.read(window.start, 1 << 20) == naive_read(left, window.start, 1 << 20)


def test_many_small_runs_are_few_large_ones():
    window = CommittedWindow()
    for run in runs([1] * 1000):
        window.append(run)
    assert len(window._runs) < 10
    assert window.read(500, 1)[1] == 501


def test_restart():
    window = CommittedWindow()
    window.append(*runs([3]))
    window.restart(70)
    assert (window.start, window.end, window.size, window.read(0, 9), window.read(70, 9)) == (70, 70, 0, None, None)
    window.append(*runs([1], base=70))
    assert window.read(70, 9)[1] == 71


@given(st.integers(0, 9), st.integers(0, 9))
def test_a_run_is_split_at_any_of_its_batches(first, last):
    (whole,) = runs([9])
    part = whole.slice(first, last)
    if first >= last:
        assert part is None
        return
    assert len(part) == last - first
    assert part.data == BatchRun.of(part.data).data
    assert (part.base_offset, part.end_offset) == (whole.bases[first], whole.ends[last - 1])
    assert part.read(part.base_offset, 1 << 20) == (part.data, part.end_offset)
