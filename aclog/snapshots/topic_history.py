"""The history of topics: which names came into being and went, at which offsets."""

from attrs import define, field

from aclog.metalog.records import OpaqueRecord, RecordType
from aclog.snapshots.image import Image
from aclog.snapshots.record_subjects import Appended, Removed, effect_of
from aclog.snapshots.visible_records import VisibleRecord

_TOPICS = frozenset({RecordType.TOPIC_RECORD, RecordType.REMOVE_TOPIC_RECORD})


@define
class TopicHistory:
    """The topics of a log, record by record: for each name when it existed.

    A name may come and go; `spans` has an interval of end offsets for each time, open at the end while it exists. Those
    of the state with which the history begins exist since its end offset, as far as is known.
    """

    spans: dict[str, list[tuple[int, int | None]]] = field(factory=dict, init=False)
    _names: dict[bytes, str] = field(factory=dict, init=False)

    @staticmethod
    def beginning(image: Image) -> "TopicHistory":
        """Return the history with the topics of a state."""
        found = TopicHistory()
        for topic, name in image.opaque.topics():
            found._add(topic, name, image.end_offset)  # its own
        return found

    def replay(self, seen: VisibleRecord) -> None:
        """Take note of a record; records come in the order of the log.

        Raises:
            DecodeError: a damaged record about a topic.

        """
        record = seen.record
        if not isinstance(record, OpaqueRecord) or record.api_key not in _TOPICS:
            return
        match effect_of(record):
            case Appended(subject=(_, topic), topic_name=str(name)):
                self._add(topic, name, seen.end_offset)
            case Removed(subject=(_, topic)):
                self._remove(topic, seen.end_offset)
            case _:
                return

    def _add(self, topic: bytes, name: str, end_offset: int) -> None:
        self._names[topic] = name
        self.spans.setdefault(name, []).append((end_offset, None))

    def _remove(self, topic: bytes, end_offset: int) -> None:
        name = self._names.pop(topic, None)
        if name is not None:
            spans = self.spans[name]
            spans[-1] = (spans[-1][0], end_offset)
