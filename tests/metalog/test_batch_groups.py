from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.batches import MAX_BATCH_BYTES, build_batch, grouped

VALUES = st.lists(st.binary(min_size=1, max_size=400), max_size=60)


@given(VALUES, st.integers(300, 3000))
def test_each_group_fits_into_a_batch_and_none_is_left_out(values, most):
    groups = list(grouped(values, most))
    assert [value for group in groups for value in group] == values
    for group in groups:
        batch = build_batch(group, base_offset=0, leader_epoch=1, timestamp=1)
        assert len(batch) <= most or len(group) == 1


def test_a_million_small_values_fill_batches_of_kafkas_size():
    value = bytes(100)
    groups = list(grouped([value] * 200_000))
    sizes = [len(build_batch(group, base_offset=0, leader_epoch=1, timestamp=1)) for group in groups]
    assert max(sizes) <= MAX_BATCH_BYTES
    assert len(sizes) == 4
