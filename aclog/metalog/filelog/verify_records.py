"""Check what the records of a batch say: that each decodes, as a whole and as the type that it names."""

from collections import deque
from pathlib import Path

from aclog.metalog.batches import BatchHeader
from aclog.metalog.codec import decode_values
from aclog.metalog.control_records import decode_control_batch
from aclog.metalog.errors import DecodeError
from aclog.metalog.filelog.filesystem import read_at


def records_problem(fd: int, path: Path, position: int, header: BatchHeader) -> DecodeError | None:
    """What is wrong with the first damaged record of a batch whose CRC is right; None if every record decodes.

    A record of a type that we do not interpret, or do not know, is only looked at as far as that.
    """
    data = read_at(fd, position, header.size)
    try:
        if header.is_control:
            decode_control_batch(data, 0, header)
        else:
            deque(decode_values(data, 0, header), maxlen=0)
    except DecodeError as error:
        return error.at(path=str(path), base=position, offset=header.base_offset)
    return None
