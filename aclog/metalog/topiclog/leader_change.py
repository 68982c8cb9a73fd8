"""The log's leader, read from its LeaderChange control records."""

from attrs import frozen

from aclog.metalog.control_records import LeaderChange, decode_control
from aclog.metalog.topiclog.positions import StoredMessage


@frozen(kw_only=True)
class Leader:
    """The writer of a leader epoch: its node id, the epoch, and the offset of the epoch's LeaderChange."""

    node_id: int
    epoch: int
    start_offset: int


def leader_of(message: StoredMessage) -> Leader | None:
    """Return the leader that a LeaderChange message names; None for any other message.

    Raises:
        DecodeError: a control record that does not match its key.

    """
    place = message.place
    record = None if place.control is None else decode_control(place.control, message.value or b"")
    if not isinstance(record, LeaderChange):
        return None
    return Leader(node_id=record.leader_id, epoch=place.epoch, start_offset=place.offset)
