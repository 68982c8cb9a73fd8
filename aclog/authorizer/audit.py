"""The audit log: Kafka's line for a decision, its level, and the same decision as a structured event."""

from typing import Any, TypeAlias

from attrs import frozen

from aclog.authorizer.acl import (
    AclOperation,
    PatternType,
    ResourceType,
    StandardAclWithId,
    code_name,
)
from aclog.authorizer.api_keys import api_name
from aclog.authorizer.decision import Decision
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext

AUDIT_LOGGER = "kafka.authorizer.logger"
"""The logger's name, the same as in Kafka's log4j configuration."""

TRACE, DEBUG, INFO = 5, 10, 20
"""Levels as numbered by the logging module, which has no TRACE and is not imported here: this package is pure."""

Row: TypeAlias = dict[str, Any]


def audit_level(action: Action, result: AuthorizationResult) -> int:
    """Return the level: DEBUG for an allowed access, INFO for a denied one, TRACE if only a listing was filtered."""
    if result is AuthorizationResult.ALLOWED:
        return DEBUG if action.log_if_allowed else TRACE
    return INFO if action.log_if_denied else TRACE


def audit_line(context: RequestContext, action: Action, decision: Decision) -> str:
    """Return the line that Kafka writes (StandardAuthorizerData.buildAuditMessage), character by character.

    Raises:
        InvalidRequestError: the context's request type is not an apiKey of Kafka 4.3.1.

    """
    pattern = action.resource_pattern
    answer = "Allowed" if decision.result is AuthorizationResult.ALLOWED else "Denied"
    return (
        f"Principal = {context.principal} is {answer} operation = {code_name(AclOperation, action.operation)} "
        f"from host = {context.host} on resource = {_type_name(pattern.resource_type)}:"
        f"{code_name(PatternType, pattern.pattern_type)}:{pattern.name} for request = {api_name(context.request_type)} "
        f"with resourceRefCount = {action.resource_reference_count} based on rule {decision.text}"
    )


def _type_name(code: int) -> str:
    """Return TRANSACTIONAL_ID as TransactionalId (SecurityUtils.resourceTypeName)."""
    return "".join(word.capitalize() for word in code_name(ResourceType, code).split("_"))


@frozen(kw_only=True)
class AuditEvent:
    """One decision as data. Its schema, audit_event.avsc in this directory, documents each field.

    Enum values are upper-case names, as in listings of ACLs; `timestamp` is in ms since 1970.
    """

    timestamp: int
    principal: str
    host: str
    operation: str
    resource_type: str
    resource_name: str
    pattern_type: str
    result: str
    basis: str
    rule: StandardAclWithId | None
    request: str
    api_key: int
    resource_reference_count: int
    logged: bool
    listener_name: str
    client_id: str
    correlation_id: int

    def to_dict(self) -> Row:
        """Return the event under the field names of the schema, for Avro and JSON."""
        return {
            "timestamp": self.timestamp,
            "principal": self.principal,
            "host": self.host,
            "operation": self.operation,
            "resourceType": self.resource_type,
            "resourceName": self.resource_name,
            "patternType": self.pattern_type,
            "result": self.result,
            "basis": self.basis,
            "rule": None if self.rule is None else self.rule.to_dict(),
            "request": self.request,
            "apiKey": self.api_key,
            "resourceReferenceCount": self.resource_reference_count,
            "logged": self.logged,
            "listenerName": self.listener_name,
            "clientId": self.client_id,
            "correlationId": self.correlation_id,
        }


def audit_event(context: RequestContext, action: Action, decision: Decision, *, timestamp: int) -> AuditEvent:
    """Return the event of a decision made at `timestamp` (ms since 1970). Raises as `audit_line`."""
    pattern = action.resource_pattern
    return AuditEvent(
        timestamp=timestamp,
        principal=context.principal,
        host=context.host,
        operation=code_name(AclOperation, action.operation),
        resource_type=code_name(ResourceType, pattern.resource_type),
        resource_name=pattern.name,
        pattern_type=code_name(PatternType, pattern.pattern_type),
        result=decision.result.value,
        basis=decision.basis.value,
        rule=decision.rule,
        request=api_name(context.request_type),
        api_key=context.request_type,
        resource_reference_count=action.resource_reference_count,
        logged=audit_level(action, decision.result) > TRACE,
        listener_name=context.listener_name,
        client_id=context.client_id,
        correlation_id=context.correlation_id,
    )
