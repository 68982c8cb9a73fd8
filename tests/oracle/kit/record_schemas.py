"""Metadata records: types, versions, fields and tags of a release, beside aclog's codec.

Of each version of each record that aclog interprets, values are made by the release's own schema, written by a small
encoder here, and read by aclog's codec: names, order, types, tags and bytes must agree. Of a record that aclog keeps as
bytes, only what it reads of it to know its subject is compared.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Any
from uuid import UUID

import attrs
from attrs import frozen

from aclog.metalog.codec import SCHEMAS, decode_record, encode_record, record_version, schema_of
from aclog.metalog.errors import MetadataError
from aclog.metalog.primitives import compact_bytes, compact_string, unsigned_varint
from aclog.metalog.records import FRAME_VERSION, OpaqueRecord, RecordType
from aclog.snapshots.image import Appended, Effect, Latest, Removed, effect_of
from tests.oracle.kit.values import Difference, Outcome
from tests.support.kafka.release_facts import FieldFacts, RecordFacts, ReleaseFacts

CHECK = "record schemas"
SAMPLES = 30
"""Values of each version of each record; those at an even place have tagged fields."""
_TEXTS = ("a", "", "é", "結", "😀", 'a"b', "x" * 200, "User:a")

Fields = Sequence[FieldFacts]


@frozen
class _Plain:
    """A wire type without parts: values other than the one that a tagged field leaves out, and their bytes."""

    make: Callable[[Random], Any]
    write: Callable[[Any], bytes]


def _integer(code: str, low: int, high: int) -> _Plain:
    return _Plain(
        lambda random: random.choice([low, high, random.randint(1, high)]),
        lambda value: struct.pack(f">{code}", value),
    )


_STRING = _Plain(lambda random: random.choice(_TEXTS), compact_string)
_BYTES = _Plain(lambda random: random.randbytes(random.randint(1, 200)), compact_bytes)
_PLAIN: Mapping[str, _Plain] = MappingProxyType(
    {
        "BOOLEAN": _Plain(lambda random: random.random() < 0.5, lambda value: bytes((value,))),
        "INT8": _integer("b", -0x80, 0x7F),
        "INT16": _integer("h", -0x8000, 0x7FFF),
        "UINT16": _integer("H", 1, 0xFFFF),
        "INT32": _integer("i", -(1 << 31), (1 << 31) - 1),
        "INT64": _integer("q", -(1 << 63), (1 << 63) - 1),
        "FLOAT64": _Plain(lambda random: random.uniform(-1e9, 1e9), lambda value: struct.pack(">d", value)),
        "UUID": _Plain(lambda random: UUID(int=random.getrandbits(128) | 1), lambda value: value.bytes),
        "COMPACT_STRING": _STRING,
        "COMPACT_NULLABLE_STRING": _STRING,
        "COMPACT_BYTES": _BYTES,
        "COMPACT_NULLABLE_BYTES": _BYTES,
    }
)
"""Every wire type that a metadata record has had."""


def check_record_schemas(facts: ReleaseFacts, *, seed: int) -> Outcome:
    """Compare every record of a release."""
    random, found, compared = Random(seed), list[Difference](), 0
    for record in facts.records:
        found += _named_otherwise(record)
        for version, fields in record.versions.items():
            compared += 1
            found += _read_otherwise(record, version, fields, random)
    return Outcome(check=CHECK, compared=compared, differences=tuple(found), notes=(f"{len(facts.records)} records",))


def _named_otherwise(record: RecordFacts) -> Iterator[Difference]:
    subject = f"record {record.api_key}"
    known = {kind.value: kind.name for kind in RecordType}.get(record.api_key)
    if known != record.name:
        kafka = f"{record.name}, version {record.newest}: {_shown(record.versions[record.newest])}"
        yield Difference(subject=subject, kafka=kafka, aclog=known or "not known")


def _read_otherwise(record: RecordFacts, version: int, fields: Fields, random: Random) -> Iterator[Difference]:
    if record.api_key not in set(RecordType):
        return  # reported by its name
    kind = RecordType(record.api_key)
    subject = f"{record.name} version {version}"
    if kind in SCHEMAS and version >= len(SCHEMAS[kind]):
        newest = f"read up to version {len(SCHEMAS[kind]) - 1}"
        yield Difference(subject=subject, kafka=_shown(fields), aclog=newest)
        return
    if unknown := sorted(_plain_types(fields) - _PLAIN.keys()):
        yield Difference(
            subject=subject, kafka=_shown(fields), aclog=f"no wire type {', '.join(unknown)} in this check"
        )
        return
    for number in range(SAMPLES):
        value, data = _sample(record, version, random, tagged=number % 2 == 0)
        try:
            seen = _interpreted(data, version) if kind in SCHEMAS else _subject(data, kind, value)
        except MetadataError as error:
            yield Difference(subject=subject, kafka=f"{_shown(fields)}: {data.hex()}", aclog=f"refuses it: {error}")
            return
        expected = value if kind in SCHEMAS else _expected_subject(kind, value)
        if seen != expected or (isinstance(expected, Mapping) and list(seen) != list(expected)):
            yield Difference(subject=subject, kafka=f"{_shown(fields)}: {expected}", aclog=str(seen))
            return


def interpreted_values(facts: ReleaseFacts, random: Random) -> list[bytes]:
    """A value with and one without tagged fields of each record and version that aclog interprets and a release has."""
    return [
        _sample(record, version, random, tagged=tagged)[1]
        for record in facts.records
        for version in record.versions
        for tagged in (False, True)
        if version < len(SCHEMAS.get(record.api_key, ()))
    ]


def _sample(record: RecordFacts, version: int, random: Random, *, tagged: bool) -> tuple[dict[str, Any], bytes]:
    fields = record.versions[version]
    value = {each.name: _value(each, random) for each in fields if each.tag is None or tagged}
    frame = bytes((FRAME_VERSION,)) + unsigned_varint(record.api_key) + unsigned_varint(version)
    return value, frame + _encoded(fields, value)


def _interpreted(data: bytes, version: int) -> dict[str, Any]:
    """What aclog reads, by attribute; it must write the same bytes again."""
    record = decode_record(data)
    found = {name: _plain(value) for name, value in schema_of(record).present_fields(record)}
    if record.tagged_fields:
        found["unknown tagged fields"] = record.tagged_fields
    if record_version(record) != version:
        found["version"] = record_version(record)
    if (written := encode_record(record)) != data:
        found["written as"] = written.hex()
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if attrs.has(type(value)):
        names = [field.name for field in attrs.fields(type(value)) if field.name != "tagged_fields"]
        return {name: _plain(getattr(value, name)) for name in names}
    return value


# --- records that aclog keeps as bytes ---------------------------------------------------------------------------


def _subject(data: bytes, kind: RecordType, value: Mapping[str, Any]) -> Effect | None:
    """What aclog takes a record for that it does not interpret; None where nothing is expected of it."""
    record = decode_record(data)
    assert isinstance(record, OpaqueRecord), record
    return effect_of(record) if _expected_subject(kind, value) is not None else None


def _expected_subject(kind: RecordType, value: Mapping[str, Any]) -> Effect | None:
    """The same by the names of the release's fields."""
    expected = _SUBJECTS.get(kind)
    return None if expected is None else expected(value)


def _quota(value: Mapping[str, Any]) -> Effect:
    entity = frozenset((each["entity_type"], each["entity_name"]) for each in value["entity"])
    return Latest(group=("quota", entity), key=value["key"], removes=value["remove"])


def _config(value: Mapping[str, Any]) -> Effect:
    group = "config", (value["resource_type"] & 0xFF, value["resource_name"])
    return Latest(group=group, key=value["name"], removes=value["value"] is None)


def _of_topic(value: Mapping[str, Any]) -> Effect:
    return Appended(subject=("topic", value["topic_id"].bytes))


_SUBJECTS: Mapping[RecordType, Callable[[Mapping[str, Any]], Effect]] = MappingProxyType(
    {
        RecordType.TOPIC_RECORD: lambda value: attrs.evolve(_of_topic(value), topic_name=value["name"]),
        RecordType.PARTITION_RECORD: _of_topic,
        RecordType.PARTITION_CHANGE_RECORD: _of_topic,
        RecordType.REMOVE_TOPIC_RECORD: lambda value: Removed(subject=("topic", value["topic_id"].bytes)),
        RecordType.CLEAR_ELR_RECORD: lambda value: Appended(
            subject=("topic name", value["topic_name"]) if value["topic_name"] else ("log", None)
        ),
        RecordType.CONFIG_RECORD: _config,
        RecordType.CLIENT_QUOTA_RECORD: _quota,
        RecordType.PRODUCER_IDS_RECORD: lambda _: Latest(group=("producer ids", None), key=""),
    }
)


# --- values of a schema, and their bytes ----------------------------------------------------------------------------


def _value(field: FieldFacts, random: Random) -> Any:
    """A value of a field; of a tagged one never the default, which is left out."""
    if field.tag is None and field.type.get("plain") == "COMPACT_NULLABLE_STRING" and random.randrange(3) == 0:
        return None
    return _set_value(field.type, random)


def _set_value(kind: Mapping[str, Any], random: Random) -> Any:
    if "struct" in kind:
        return {each.name: _value(each, random) for each in FieldFacts.all_of(kind["struct"]) if each.tag is None}
    if "array" in kind:
        return [_set_value(kind["array"], random) for _ in range(random.randint(1, 3))]
    return _PLAIN[kind["plain"]].make(random)


def _encoded(fields: Fields, value: Mapping[str, Any]) -> bytes:
    """A flexible message (KIP-482)."""
    plain = b"".join(_bytes(field.type, value[field.name]) for field in fields if field.tag is None)
    tagged = [(field.tag, _bytes(field.type, value[field.name])) for field in fields if field.tag is not None
              and field.name in value]  # fmt: skip
    section = b"".join(unsigned_varint(tag) + unsigned_varint(len(data)) + data for tag, data in tagged)
    return plain + unsigned_varint(len(tagged)) + section


def _bytes(kind: Mapping[str, Any], value: Any) -> bytes:
    if "struct" in kind:
        return _encoded(FieldFacts.all_of(kind["struct"]), value)
    if "array" in kind:
        return unsigned_varint(len(value) + 1) + b"".join(_bytes(kind["array"], each) for each in value)
    return b"\0" if value is None else _PLAIN[kind["plain"]].write(value)


def _plain_types(fields: Fields) -> set[str]:
    return {name for field in fields for name in _plain_types_of(field.type)}


def _plain_types_of(kind: Mapping[str, Any]) -> set[str]:
    if "struct" in kind:
        return _plain_types(FieldFacts.all_of(kind["struct"]))
    return _plain_types_of(kind["array"]) if "array" in kind else {kind["plain"]}


def _shown(fields: Fields) -> str:
    return ", ".join(f"{each.name} {_type(each.type)}{'' if each.tag is None else f' tag {each.tag}'}"
                     for each in fields) or "no fields"  # fmt: skip


def _type(kind: Mapping[str, Any]) -> str:
    if "struct" in kind:
        return f"({_shown(FieldFacts.all_of(kind['struct']))})"
    return f"[{_type(kind['array'])}]" if "array" in kind else kind["plain"]
