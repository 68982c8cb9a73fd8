"""Messages of any API for tests: hypothesis strategies from kio's schemas, and an encoder that adds what kio cannot."""

import io
from collections.abc import Callable
from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.serial._implicit_defaults import get_tagged_field_default
from kio.serial._introspect import EntityField, EntityTupleField, classify_field, get_field_tag, is_optional
from kio.serial._serialize import get_field_writer

from aclog.metalog.primitives import unsigned_varint
from aclog.protocol.api_keys import ENVELOPE
from aclog.protocol.messages import _blank, message_type
from aclog.protocol.responses import BROKER_APIS, CONTROLLER_APIS

SERVED = sorted(
    {
        (api.api_key, version)
        for api in (*BROKER_APIS, *CONTROLLER_APIS)
        for version in range(api.min_version, api.max_version + 1)
        if api.api_key != ENVELOPE
    }
)
"""Every (API key, version) that our nodes serve and kio has."""

MESSAGES = st.tuples(st.sampled_from(SERVED), st.sampled_from(["request", "response"])).map(
    lambda pair: (*pair[0], pair[1])
)
"""(API key, version, kind) of anything that is served."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_EXACT = 1000 << 33
"""Up to the year 2242 kio reads times to the very ms; beyond, a float of theirs is off by a microsecond."""
_MILLIS = timedelta(milliseconds=1)
_TEXT = st.text(max_size=8) | st.sampled_from(["é" * 70, "x" * 126, "x" * 127, "x" * 128])


def _ints(bits: int, low: int | None = None) -> st.SearchStrategy:
    return st.integers(
        -(1 << bits - 1) if low is None else low, (1 << bits - 1) - 1 if low is None else (1 << bits) - 1
    )


_VALUES = {
    "int8": _ints(8), "int16": _ints(16), "int32": _ints(32), "int64": _ints(64),
    "uint16": _ints(16, 0), "uint32": _ints(32, 0), "float64": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(), "string": _TEXT, "bytes": st.binary(max_size=8), "records": st.binary(max_size=8),
    "uuid": st.none() | st.uuids().filter(lambda value: value.int), "error_code": st.sampled_from(list(ErrorCode)),
    "timedelta_i32": _ints(32).map(lambda millis: millis * _MILLIS),
    "timedelta_i64": st.integers(-(10**12), 10**12).map(lambda millis: millis * _MILLIS),
    "datetime_i64": st.integers(0, _LAST_EXACT).map(lambda millis: _EPOCH + millis * _MILLIS),
}  # fmt: skip


@cache
def entities(entity: Any) -> st.SearchStrategy:
    """Values of a message class."""
    return st.builds(entity, **{each.name: _field(each) for each in fields(entity)})


@cache
def messages(api_key: int, version: int, kind: str) -> st.SearchStrategy:
    """Messages of an API's version."""
    return entities(message_type(api_key, version, kind))


def _field(each: Any) -> st.SearchStrategy:
    kind = classify_field(each)
    one = (
        entities(kind.type_)
        if isinstance(kind, EntityField | EntityTupleField)
        else _VALUES[each.metadata["kafka_type"]]
    )
    values = st.lists(one, max_size=3).map(tuple) if kind.is_array else one
    tagged_null = get_field_tag(each) is None or each.default is None
    return st.none() | values if is_optional(each) and tagged_null else values


def filled(entity: Any) -> Any:
    """A message with one element in every array of structures, so that every structure occurs."""
    values = {}
    for each in fields(entity):
        kind = classify_field(each)
        if isinstance(kind, EntityTupleField):
            values[each.name] = (filled(kind.type_),)
        elif isinstance(kind, EntityField):
            values[each.name] = filled(kind.type_)
    return entity(**({name: default for name, (default, _) in _blank(entity).items()} | values))


Tags = Callable[[], list[tuple[int, bytes]]]
"""Gives the unknown tagged fields of the next structure."""

ArrayLength = Callable[[str, int | None], int | None]
"""Gives the length to announce for an array of that name and length."""


def encode(message: Any, tags: Tags = list, length: ArrayLength = lambda _name, real: real) -> bytes:
    """The message as bytes, with unknown tagged fields in every structure of it, or with false lengths of arrays."""
    flexible, plain, tagged = type(message).__flexible__, b"", []
    for each in fields(message):
        value, tag = getattr(message, each.name), get_field_tag(each)
        if tag is None:
            plain += _encode_field(message, each, value, tags, length)
        elif value != (get_tagged_field_default(each) if each.default is MISSING else each.default):
            tagged.append((tag, _encode_field(message, each, value, tags, length)))
    if not flexible:
        return plain
    every = sorted([*tagged, *tags()])
    return (
        plain
        + unsigned_varint(len(every))
        + b"".join(unsigned_varint(tag) + unsigned_varint(len(data)) + data for tag, data in every)
    )


def _encode_field(message: Any, each: Any, value: Any, tags: Tags, length: ArrayLength) -> bytes:
    kind, flexible, tagged = classify_field(each), type(message).__flexible__, get_field_tag(each) is not None
    if isinstance(kind, EntityField):
        nullable = is_optional(each) and not tagged
        if value is None:
            return b"\xff"
        return (b"\1" if nullable else b"") + encode(value, tags, length)
    if isinstance(kind, EntityTupleField):
        count = length(each.name, None if value is None else len(value))
        return array_head(count, flexible=flexible) + b"".join(encode(one, tags, length) for one in value or ())
    out = io.BytesIO()
    _writer(each, flexible, tagged)(out, value)
    if not kind.is_array:
        return out.getvalue()
    real = None if value is None else len(value)
    return (
        array_head(length(each.name, real), flexible=flexible)
        + out.getvalue()[len(array_head(real, flexible=flexible)) :]
    )


@cache
def _writer(each: Any, flexible: bool, tagged: bool) -> Any:
    return get_field_writer(each, flexible, False, tagged)


def array_head(length: int | None, *, flexible: bool) -> bytes:
    """The length of an array as bytes."""
    if flexible:
        return unsigned_varint(0 if length is None else length + 1)
    return (-1 if length is None else length).to_bytes(4, "big", signed=True)


UNKNOWN_TAGS = st.dictionaries(st.integers(50, 300) | st.just(0xFFFFFFFF), st.binary(max_size=5), max_size=2).map(
    lambda fields: list(fields.items())
)
"""Tagged fields that no schema has."""


def mutations(whole: bytes) -> st.SearchStrategy:
    """The bytes cut, with some of them overwritten, or with a great number put in."""
    places = st.integers(0, len(whole))
    great = st.sampled_from(
        [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\x80" * 11, b"\xff\xff"]
    )
    over = st.tuples(places, st.binary(min_size=1, max_size=4) | great)
    return (
        places.map(lambda at: whole[:at])
        | over.map(lambda put: whole[: put[0]] + put[1] + whole[put[0] + len(put[1]) :])
        | over.map(lambda put: whole[: put[0]] + put[1] + whole[put[0] :])
    )
