"""JSON lines of requests, each with the decision that is expected, and, if it is said, with what decides it."""

from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache

from aclog.analysis.regions.region import Request
from aclog.analysis.rule_tests.decides import ERROR, Decides
from aclog.analysis.rule_tests.rule_text import RuleText, parse_rule_text
from aclog.authorizer.acl import AclOperation, ResourceType
from aclog.authorizer.decision import Basis
from aclog.authorizer.hosts import host_address
from aclog.authorizer.origin import FileOrigin
from aclog.authorizer.rule_object import enum_field
from aclog.metalog.errors import ConfigError
from aclog.metalog.json_object import parse_object, text_field
from aclog.sources.text_lines import display_name, numbered

_KEYS = (
    "principal", "host", "operation", "resourceType", "resourceName", "kind", "decision", "rule", "name", "error",
)  # fmt: skip
_DECISIONS = ("ALLOWED", "DENIED", ERROR)
_BY_TYPE = "byResourceType"
_KAFKAS = (f"{Basis.MATCHING_ACL.value}(", *(basis.value for basis in Basis))

_address = lru_cache(1 << 16)(host_address)


def read_request_cases(path: str) -> Iterator[Decides]:
    """Yield a case for each line: a request as `aclog authorize --requests` takes it, with what that answers.

    Raises:
        ConfigError: a line that is no such object, with its number; or a damaged file.
        OSError: the file cannot be read.

    """
    file = display_name(path)
    for number, line in numbered(path):
        try:
            yield _case(parse_object(line), FileOrigin(file=file, line=number))
        except ConfigError as error:
            raise ConfigError(f"{file}:{number}: {error}") from error


def _case(value: dict[str, object], origin: FileOrigin) -> Decides:
    for key in value:
        if key not in _KEYS:
            near = get_close_matches(key, _KEYS, 1)
            hint = f"did you mean {near[0]}?" if near else f"expected {', '.join(_KEYS)}"
            raise ConfigError(f"unknown key {key[:60]!r}: {hint}")
    decision = text_field(value, "decision")
    if decision not in _DECISIONS:
        raise ConfigError(f"decision {decision[:40]!r} is not one of {', '.join(_DECISIONS)}")
    return Decides(
        test=text_field(value, "name") if "name" in value else f"line {origin.line}",
        origin=origin,
        request=Request(
            principal=text_field(value, "principal"),
            host=_address(text_field(value, "host")),
            operation=enum_field(value, "operation", AclOperation),
            resource_type=enum_field(value, "resourceType", ResourceType),
            resource_name=_resource_name(value),
        ),
        by_type=value.get("kind") is not None,
        decision=decision,
        rule=_rule(text_field(value, "rule")) if value.get("rule") is not None else None,
    )


def _resource_name(value: dict[str, object]) -> str:
    kind = value.get("kind")
    if kind not in (None, _BY_TYPE):
        raise ConfigError(f"kind must be {_BY_TYPE} or absent")
    if kind is not None:
        if "resourceName" in value or value.get("rule") is not None:
            raise ConfigError(f"with kind {_BY_TYPE} there is no resourceName, and no rule")
        return ""
    return text_field(value, "resourceName")


def _rule(text: str) -> str | RuleText:
    """Return Kafka's own text as it is, and anything else as a short form."""
    return text if text.startswith(_KAFKAS) else parse_rule_text(text)
