"""Intervals of rules held against the applier: at the end of every batch, and at the time of every batch."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import NamedTuple

from aclog.authorizer.acl import code_name
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.batches import iter_batches
from aclog.metalog.primitives import uuid_text
from aclog.snapshots.applier import Applier
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import recover
from tests.support.spark.history import log_bytes

_FEW, _MOST = 10, 600
_LARGE = 1000


class Interval(NamedTuple):
    """A rule (`rule_key`) and when it was in force: offsets, and ms since 1970."""

    key: tuple
    added: int
    removed: int | None
    visible_from: int | None
    visible_to: int | None


def rule_key(rule):
    """A rule with its id as the history has it."""
    acl = rule.acl
    return (
        code_name(ResourceType, acl.resource_type),
        acl.resource_name,
        code_name(PatternType, acl.pattern_type),
        acl.principal,
        acl.host,
        code_name(AclOperation, acl.operation),
        code_name(AclPermissionType, acl.permission_type),
        uuid_text(rule.id),
    )


def states(directory, start=Image.EMPTY):
    """[(base offset, max timestamp, image after)] of every batch of the log, before `start` the image there."""
    applier, data, result = Applier(image=start), log_bytes(directory), []
    for position, header in iter_batches(data):
        if header.base_offset >= start.end_offset:
            applier.apply(data, position, position + header.size)
        result.append((header.base_offset, header.max_timestamp, applier.image))
    return result


def check_offsets(rows, history, start=Image.EMPTY):
    """At every end offset of a visible state (of many, at some of them) the rows in force are its rules."""
    spans, images = _spans(rows), {image.end_offset: image for _, _, image in history} | {start.end_offset: start}
    for end in _some(sorted(images), rows):
        in_force = sorted(s.key for s in spans if s.added < end and (s.removed is None or s.removed >= end))
        assert in_force == sorted(map(rule_key, images[end].acls)), f"at offset {end}"


def check_times(rows, history, start=Image.EMPTY, known_from=None):
    """At every ms around the time of a batch (or at some) the visible rows are the rules of the state then."""
    spans, times = _spans(rows), {time + delta for _, time, _ in history for delta in (-1, 0, 1)}
    for time in _some(sorted(time for time in times if known_from is None or time >= known_from), rows):
        assert _visible(spans, time) == sorted(map(rule_key, _state_at(history, start, time).acls)), f"at {time} ms"


def _some(places, rows):
    most = _MOST if len(rows) < _LARGE else _FEW
    return places if len(places) <= most else [*Random(len(places)).sample(places, most), places[0], places[-1]]


def check_recovered(rows, directory, times):
    """At these times (ms) the visible rows are what recovery gives."""
    spans = _spans(rows)
    for time in times:
        image = recover(directory, datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time), strict=False).image
        assert _visible(spans, time) == sorted(map(rule_key, image.acls))


def _state_at(history, start, time):
    image = start
    for _, timestamp, after in history:
        if timestamp > time:
            break
        image = after
    return image


def _spans(rows):
    """Rows of Spark look every name up; these do not."""
    return [
        Interval(
            tuple(row[:8]),
            row.first_seen_offset - 1 if row.added_offset is None else row.added_offset,
            row.removed_offset,
            row.visible_from,
            row.visible_to,
        )
        for row in rows
    ]


def _visible(spans, time):
    return sorted(
        s.key
        for s in spans
        if (s.visible_from is None or s.visible_from <= time) and (s.visible_to is None or s.visible_to > time)
    )
