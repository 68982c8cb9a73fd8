"""What a batch must be that a caller has built and a log is to append as it is (aclog.metalog.log.Log.append_batch)."""

from aclog.metalog.batches import BatchHeader, check_crc, read_header
from aclog.metalog.errors import DecodeError, LogError


def read_finished(name: str, batch: bytes, leader_epoch: int) -> BatchHeader:
    """The header of one whole data batch of `leader_epoch`; `name` is the log's, for the error.

    The CRC tells that the records are as they were built. Its base offset is checked where offsets are given out.

    Raises:
        LogError: it is anything else.

    """
    try:
        header = read_header(batch)
        check_crc(batch, 0, header)
    except DecodeError as error:
        raise LogError(f"{name}: not a batch that can be appended: {error}") from None
    if header.size != len(batch):
        raise LogError(f"{name}: {len(batch)} bytes where one batch of {header.size} is expected: nothing is appended")
    if header.is_control:
        raise LogError(f"{name}: a control batch where a data batch is expected: nothing is appended")
    if header.leader_epoch != leader_epoch:
        what = f"a batch of epoch {header.leader_epoch}, the log's is {leader_epoch}"
        raise LogError(f"{name}: {what}: nothing is appended")
    return header


def check_base_offset(name: str, base_offset: int, end_offset: int) -> None:
    """Return if a batch built for `base_offset` continues the log of this name, which ends at `end_offset`.

    Raises:
        LogError: it does not: somebody else has appended since it was built.

    """
    if base_offset != end_offset:
        what = f"a batch of base offset {base_offset}, but the log ends at {end_offset}"
        raise LogError(f"{name}: {what}: somebody else appends to it; nothing is appended")
