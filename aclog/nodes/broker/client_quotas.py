"""DescribeClientQuotas, from the ClientQuotaRecords that Kafka wrote to the log (ClientQuotasImage.describe)."""

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import frozen

from aclog.metalog.codec import read_frame
from aclog.metalog.records import RecordType
from aclog.nodes.apis.request import Request, RequestError
from aclog.nodes.wire.api_keys import DESCRIBE_CLIENT_QUOTAS
from aclog.nodes.wire.error_codes import INVALID_REQUEST, UNSUPPORTED_VERSION
from aclog.nodes.wire.message_builder import build, build_response
from aclog.snapshots.image import Image
from aclog.snapshots.record_subjects import QuotaEntity, read_quota_key

_ENTITY_TYPES = ("user", "client-id", "ip")
_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2


@frozen
class _Component:
    """A filter component: matches an entity type with a name, the default entity (None), or any name."""

    entity_type: str
    any_name: bool
    name: str | None

    def matches(self, names: Mapping[str, str | None]) -> bool:
        return self.entity_type in names and (self.any_name or names[self.entity_type] == self.name)


def describe_client_quotas(image: Image, request: Request) -> bytes:
    """Return the encoded response with the quotas that match the filter.

    Raises:
        RequestError: Kafka rejects the filter (42, or 35 for an unsupported entity type).

    """
    version, body = request.header.api_version, request.body
    wanted = _components(body.components)
    entries = tuple(
        _entry(version, entity, values)
        for entity, values in _quotas(image).items()
        if all(component.matches(dict(entity)) for component in wanted)
        and (not body.strict or len(entity) == len(wanted))  # strict: no entity types beyond those in the filter
    )
    return build_response(DESCRIBE_CLIENT_QUOTAS, version, entries=entries)


def _components(components: Iterable[Any]) -> list[_Component]:
    found: dict[str, _Component] = {}
    for each in components:
        if not each.entity_type:
            raise RequestError(INVALID_REQUEST, "Unexpected empty filter component type.")
        if each.entity_type not in _ENTITY_TYPES:
            raise RequestError(UNSUPPORTED_VERSION, f"Unsupported entity type {each.entity_type}")
        if each.entity_type in found:
            raise RequestError(
                INVALID_REQUEST, f"Entity type {each.entity_type} cannot appear more than once in the filter."
            )
        found[each.entity_type] = _component(each)
    return list(found.values())


def _component(wanted: Any) -> _Component:
    kind = {_EXACT: "MATCH_TYPE_EXACT", _DEFAULT: "MATCH_TYPE_DEFAULT", _SPECIFIED: "MATCH_TYPE_SPECIFIED"}
    name = kind.get(wanted.match_type)
    if name is None:
        raise RequestError(INVALID_REQUEST, f"Unknown match type {wanted.match_type}")
    if wanted.match_type == _EXACT and wanted.match is None:
        raise RequestError(INVALID_REQUEST, f"Request specified {name}, but set match string to null.")
    if wanted.match_type != _EXACT and wanted.match is not None:
        raise RequestError(INVALID_REQUEST, f"Request specified {name}, but also specified a match string.")
    return _Component(wanted.entity_type, wanted.match_type == _SPECIFIED, wanted.match)


def _entry(version: int, entity: QuotaEntity, values: Mapping[str, float]) -> Any:
    return build(
        DESCRIBE_CLIENT_QUOTAS,
        version,
        "response",
        "EntryData",
        entity=tuple(
            build(DESCRIBE_CLIENT_QUOTAS, version, "response", "EntityData", entity_type=kind, entity_name=name)
            for kind, name in entity
        ),
        values=tuple(
            build(DESCRIBE_CLIENT_QUOTAS, version, "response", "ValueData", key=key, value=value)
            for key, value in values.items()
        ),
    )


def _quotas(image: Image) -> dict[QuotaEntity, dict[str, float]]:
    found: dict[QuotaEntity, dict[str, float]] = {}
    for entity, key, value in _records(image):
        found.setdefault(entity, {})[key] = value
    return found


def _records(image: Image) -> Iterator[tuple[QuotaEntity, str, float]]:
    """Yield the ClientQuotaRecords (version 0) of an image; replay has validated them."""
    for record in image.opaque.values():
        api_key, _version, at = read_frame(record)
        if api_key != RecordType.CLIENT_QUOTA_RECORD:
            continue
        entity, key, at = read_quota_key(record, at)
        (value,) = struct.unpack_from(">d", record, at)
        yield entity, key, value
