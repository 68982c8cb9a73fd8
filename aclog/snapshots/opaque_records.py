"""Records of an image that aclog does not interpret: kept as bytes, in log order, never silently dropped.

A checkpoint that aclog writes must not lose a cluster's topics. Left out is only what can no longer matter: earlier
values of one config, quota or producer id block, everything of a topic that was removed, and the registrations of a
controller that was unregistered. Removing a topic also removes its configs, as Kafka's MetadataDelta does; the
RemoveTopicRecord itself goes as well, since Kafka refuses to remove a topic that it has never seen. A ClearElrRecord
for all topics keeps its place; a Kafka node that loads it from a checkpoint has no topics yet to apply it to, and keeps
their eligible leader replicas until it clears them again.
"""

from collections.abc import Iterable, Iterator
from typing import ClassVar, NamedTuple, Self, TypeAlias

from attrs import define, field, frozen

from aclog.metalog.persistent_map import Map, MapMutation
from aclog.snapshots.record_subjects import (
    CONTROLLER,
    TOPIC_CONFIG,
    Appended,
    Effect,
    Latest,
    Removed,
    Subject,
    config_group,
    controller,
    named_topic,
)


@frozen(kw_only=True)
class OpaqueChange:
    """A record's value, and its effect on earlier records."""

    effect: Effect
    value: bytes = field(repr=False)


class Kept(NamedTuple):
    """A record that was kept: its place in the order, and its value."""

    sequence: int
    value: bytes


class Chain(NamedTuple):
    """The records of one subject as a linked list, newest first, so that appending costs the same at any length."""

    kept: Kept
    before: "Chain | None"
    length: int
    size: int


_Latest: TypeAlias = Map[str, Kept]


@frozen(kw_only=True, eq=False, repr=False)
class OpaqueImage:
    """All uninterpreted records that still matter at one offset; `size` is the sum of their values in bytes."""

    EMPTY: ClassVar["OpaqueImage"]

    count: int = 0
    size: int = 0
    _next_sequence: int = field(default=0, alias="next_sequence")
    _chains: Map[Subject, Chain] = field(factory=Map, alias="chains")
    _latest: Map[Subject, _Latest] = field(factory=Map, alias="latest")
    _topic_names: Map[bytes, str] = field(factory=Map, alias="topic_names")

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"OpaqueImage(count={self.count}, size={self.size})"

    def values(self) -> Iterator[bytes]:
        """Yield the values of the records in log order; a replaced record has the place of its last value."""
        kept = [each for group in self._latest.values() for each in group.values()]
        for chain in self._chains.values():
            kept.extend(_links(chain))
        kept.sort()
        return (each.value for each in kept)

    def topic_names(self) -> Iterator[str]:
        """Yield the names of the topics, in no particular order."""
        return iter(self._topic_names.values())

    def has_controller(self, controller_id: int) -> bool:
        """Return whether a controller is registered."""
        return controller(controller_id) in self._chains

    def controllers(self) -> Iterator[tuple[int, bytes]]:
        """Yield the id of each registered controller and its newest RegisterControllerRecord, in no order."""
        for (kind, subject), chain in self._chains.items():
            if kind == CONTROLLER:
                yield subject, chain.kept.value

    def topics(self) -> Iterator[tuple[bytes, str]]:
        """Yield the uuid and the name of each topic, in no particular order."""
        return iter(self._topic_names.items())

    def apply(self, changes: Iterable[OpaqueChange]) -> Self:
        """Return the image after these records, in order."""
        editor = _Editor(
            count=self.count,
            size=self.size,
            next_sequence=self._next_sequence,
            chains=self._chains.mutate(),
            latest=self._latest.mutate(),
            topic_names=self._topic_names.mutate(),
        )
        for change in changes:
            editor.replay(change)
        return type(self)(
            count=editor.count,
            size=editor.size,
            next_sequence=editor.next_sequence,
            chains=editor.chains.finish(),
            latest=editor.latest.finish(),
            topic_names=editor.topic_names.finish(),
        )


OpaqueImage.EMPTY = OpaqueImage()


def _links(chain: Chain | None) -> Iterator[Kept]:
    while chain is not None:
        yield chain.kept
        chain = chain.before


@define(kw_only=True)
class _Editor:
    """An OpaqueImage while records are replayed onto it; owned by one call of `apply`."""

    count: int
    size: int
    next_sequence: int
    chains: MapMutation[Subject, Chain]
    latest: MapMutation[Subject, _Latest]
    topic_names: MapMutation[bytes, str]

    def replay(self, change: OpaqueChange) -> None:
        """Apply the next record; records come in log order."""
        kept = Kept(self.next_sequence, change.value)
        self.next_sequence += 1
        match change.effect:
            case Appended(subject=subject, topic_name=name):
                self._append(subject, kept)
                if name is not None:
                    self.topic_names[subject[1]] = name
            case Latest(group=group, key=key, removes=removes):
                self._replace(group, key, None if removes else kept)
            case Removed(subject=subject):
                self._remove(subject)

    def _append(self, subject: Subject, kept: Kept) -> None:
        before = self.chains.get(subject)
        count, size = (0, 0) if before is None else (before.length, before.size)
        self.chains[subject] = Chain(kept, before, count + 1, size + len(kept.value))
        self._account(1, len(kept.value))

    def _replace(self, group: Subject, key: str, kept: Kept | None) -> None:
        entries = self.latest.get(group, Map())
        before = entries.get(key)
        if before is not None:
            entries = entries.delete(key)
            self._account(-1, -len(before.value))
        if kept is not None:
            entries = entries.set(key, kept)
            self._account(1, len(kept.value))
        if entries:
            self.latest[group] = entries
        else:
            self.latest.pop(group, None)

    def _remove(self, subject: Subject) -> None:
        self._drop(subject)
        name = self.topic_names.pop(subject[1], None) if subject[0] == "topic" else None
        if name is not None:
            # ClearElrRecords of this topic name it instead of giving its uuid.
            self._drop(named_topic(name))
            configs = config_group(TOPIC_CONFIG, name)
            for key in self.latest.get(configs, Map()):
                self._replace(configs, key, None)

    def _drop(self, subject: Subject) -> None:
        chain = self.chains.pop(subject, None)
        if chain is not None:
            self._account(-chain.length, -chain.size)

    def _account(self, count: int, size: int) -> None:
        self.count += count
        self.size += size
