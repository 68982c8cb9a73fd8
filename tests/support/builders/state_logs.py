"""Log directories for tests of state."""

from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.filelog.files import segment_name


def write_log(directory, *batches, base=0, times=None):
    """A directory as a Kafka leaves it: one segment, no mark of ours."""
    directory.mkdir(exist_ok=True)
    offset, data = base, []
    for number, records in enumerate(batches):
        time = 1000 * (number + 1) if times is None else times[number]
        values = [encode_record(record) for record in records]
        data.append(build_batch(values, base_offset=offset, leader_epoch=1, timestamp=time))
        offset += len(values)
    (directory / segment_name(base)).write_bytes(b"".join(data))
    return directory


def damage(path):
    """Flip a bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(bytes(data))
