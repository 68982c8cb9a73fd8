"""Checking many batches at once agrees with checking them one by one."""

from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.batches import build_batch
from aclog.metalog.committed_log import EpochStart
from aclog.metalog.errors import DecodeError
from aclog.metalog.filelog.segments import checked_batches
from aclog.pipeline.source.directory import FileRange, Query, read_range
from tests.support.spark import source

EPOCHS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), max_size=4).map(
    lambda steps: tuple(
        EpochStart(
            epoch=number + sum(step[0] for step in steps[:number]), start_offset=sum(s[1] for s in steps[:number])
        )
        for number in range(len(steps))
    )
)


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.integers(0, 4), st.sampled_from([0] * 8 + [1, -1])), min_size=1, max_size=8
    ),
    st.none() | EPOCHS,
)
def test_batches_are_taken_up_to_the_first_that_is_out_of_place(tmp_path_factory, batches, epochs):
    data, offset = b"", 0
    for count, epoch, shift in batches:
        base = max(offset + shift, 0)
        data += build_batch([b"\x01\x02\x00"] * count, base_offset=base, leader_epoch=epoch, timestamp=0)
        offset += count
    path = tmp_path_factory.getbasetemp() / "places.log"
    path.write_bytes(data)
    place = FileRange(path=str(path), position=0, end=len(data), offset=0, end_offset=None, epochs=epochs)
    expected, found, said, wrong = [], [], None, None
    try:
        for _, header in checked_batches(data, 0, epochs):
            expected += range(header.base_offset, header.end_offset)
    except DecodeError as error:
        wrong = error.at(path=str(path), offset=expected[-1] + 1 if expected else 0)
    try:
        for batch in read_range(place, Query()):
            found += [row["offset"] for row in source.rows_of([batch])]
    except DecodeError as error:
        said = error
    assert found == expected
    assert (said and (said.what, said.position)) == (wrong and (wrong.what, wrong.position))
