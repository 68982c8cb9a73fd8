import pyarrow as pa

from aclog.usage.arrow import regrouped


def test_batches_are_regrouped():
    batches = [pa.record_batch([pa.array(range(n), pa.int64())], ["x"]) for n in (3, 0, 4, 1)]
    assert [len(table) for table in regrouped(iter(batches), 5)] == [7, 1]
