"""Runs: what one adds to the index, and how the index remembers it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from attrs import field, frozen

from aclog.usage.coverage import Coverage
from aclog.usage.index.seen_rules import SeenRules
from aclog.usage.unread import UnreadAccesses


class TakenContent(NamedTuple):
    """What a file held, decompressed; of a file of lines, all whole lines."""

    length: int
    """In bytes."""
    digest: bytes
    """SHA-256."""
    path: str
    start: int
    """From where on it was new: its first bytes were taken before, from the same file when it was shorter."""


class Batch(NamedTuple):
    """A batch of a stream, whose batches are numbered upwards and taken in order, each once."""

    stream: str
    number: int


class RunRecord(NamedTuple):
    """A run as the ledger has it."""

    number: int
    at: int
    """When it was taken, in ms since 1970."""
    accesses: int
    """How many were judged."""
    first: int | None
    """Its first and last access that was judged, in us since 1970."""
    last: int | None
    source: str
    """Where its rules came from."""
    settings: Mapping[str, object]
    """What decided besides the rules."""


GIVEN = "given"
"""The key of settings with the properties of brokers whose values were given, or answered by a running cluster."""

KAFKA, REGISTERED = "kafka", "registered"
"""The key of settings that says which Kafka decided, if `cidr` does not: that which the brokers of the source ran."""


@frozen(eq=False, kw_only=True)
class Run:
    """What it adds besides its tallies."""

    rules: SeenRules
    """What the accesses were judged by; the tallies name them by ordinal."""
    source: str
    """Where the rules came from, for people."""
    settings: Mapping[str, object]
    """What decided besides the rules: allow_everyone, super_users and so on."""
    at: int
    """When, in ms since 1970."""
    coverage: Coverage = field(factory=Coverage.nothing)
    """The lines that it read, those that were not judged included."""
    unread: UnreadAccesses = field(factory=UnreadAccesses)
    """What could not be read, or has no time; what could not be decided is in the tallies."""
    contents: Sequence[TakenContent] = ()
    """The files that it read."""
    contents_version: int | None = None
    """UsageIndex.contents_version from when it was found out what of these files is new; None without files."""
    batch: Batch | None = None
    """Of a stream: a batch that was taken before is not taken again."""
    cluster_id: str | None = None
    """None if the source does not tell."""
