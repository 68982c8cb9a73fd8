"""What the audit log says of a decision: Kafka's line, its level, and the same as a structured event."""

from typing import Any, TypeAlias

from attrs import frozen

from aclog.authorizer.acl import (
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAclWithId,
    code_name,
)
from aclog.authorizer.api_keys import api_name
from aclog.authorizer.decision import Decision
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.metalog.uuids import uuid_text

AUDIT_LOGGER = "kafka.authorizer.logger"
"""The logger's name; Kafka's operators know it from log4j files."""

TRACE, DEBUG, INFO = 5, 10, 20
"""Levels, as the logging module numbers them; TRACE is ours, below DEBUG."""

Row: TypeAlias = dict[str, Any]


def audit_level(action: Action, result: AuthorizationResult) -> int:
    """How loud a decision is: what was really accessed at DEBUG, really refused at INFO, mere questions at TRACE."""
    if result is AuthorizationResult.ALLOWED:
        return DEBUG if action.log_if_allowed else TRACE
    return INFO if action.log_if_denied else TRACE


def audit_line(context: RequestContext, action: Action, decision: Decision) -> str:
    """The line that Kafka writes (StandardAuthorizerData.buildAuditMessage), character by character.

    Raises:
        InvalidRequestError: the context's request type is no apiKey of Kafka 4.3.1.

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
    """TRANSACTIONAL_ID as TransactionalId (SecurityUtils.resourceTypeName)."""
    return "".join(word.capitalize() for word in code_name(ResourceType, code).split("_"))


@frozen(kw_only=True)
class AuditEvent:
    """One decision as data; `audit_event.avsc` beside this file is its schema, and says what each field means.

    Enum values are upper-case names, as in a list of rules; `timestamp` is ms since 1970.
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
        """The event under the schema's names: a datum for Avro, and for JSON."""
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
            "rule": None if self.rule is None else rule_row(self.rule),
            "request": self.request,
            "apiKey": self.api_key,
            "resourceReferenceCount": self.resource_reference_count,
            "logged": self.logged,
            "listenerName": self.listener_name,
            "clientId": self.client_id,
            "correlationId": self.correlation_id,
        }


def rule_row(rule: StandardAclWithId) -> Row:
    """A rule under the names that it has in lists of rules."""
    acl = rule.acl
    return {
        "resourceType": code_name(ResourceType, acl.resource_type),
        "resourceName": acl.resource_name,
        "patternType": code_name(PatternType, acl.pattern_type),
        "principal": acl.principal,
        "host": acl.host,
        "operation": code_name(AclOperation, acl.operation),
        "permissionType": code_name(AclPermissionType, acl.permission_type),
        "id": None if rule.id is None else uuid_text(rule.id),
    }


def audit_event(context: RequestContext, action: Action, decision: Decision, *, timestamp: int) -> AuditEvent:
    """The event of a decision made at `timestamp` (ms since 1970). Raises as `audit_line`."""
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
