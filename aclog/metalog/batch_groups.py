"""Record values in groups that fit into a batch: how whatever writes many records at once divides them."""

from collections.abc import Iterable, Iterator

MAX_BATCH_BYTES = 8 << 20
"""Kafka's largest batch (KafkaRaftClient.MAX_BATCH_SIZE_BYTES)."""

_RECORD_OVERHEAD = 32
"""Upper bound on the bytes of a record's own lengths, deltas and attributes."""

_BATCH_OVERHEAD = 256


def grouped(values: Iterable[bytes], max_batch_bytes: int = MAX_BATCH_BYTES) -> Iterator[list[bytes]]:
    """Yield values in lists that fit into a batch; a value too large for any batch is alone in its list."""
    group: list[bytes] = []
    size = _BATCH_OVERHEAD
    for value in values:
        weight = len(value) + _RECORD_OVERHEAD
        if group and size + weight > max_batch_bytes:
            yield group
            group, size = [], _BATCH_OVERHEAD
        group.append(value)
        size += weight
    if group:
        yield group
