"""Who leads, as the log itself says it."""

from attrs import frozen

from aclog.metalog.control_records import LeaderChange, decode_control
from aclog.metalog.topiclog.positions import StoredMessage


@frozen(kw_only=True)
class Leader:
    """The writer of the newest leader epoch: its node id, the epoch, the offset of the epoch's LeaderChange."""

    node_id: int
    epoch: int
    start_offset: int


def leader_of(message: StoredMessage) -> Leader | None:
    """Whom a LeaderChange names; None for any other message.

    Raises:
        DecodeError: a control record that is not what its key says.

    """
    place = message.place
    record = None if place.control is None else decode_control(place.control, message.value or b"")
    if not isinstance(record, LeaderChange):
        return None
    return Leader(node_id=record.leader_id, epoch=place.epoch, start_offset=place.offset)
