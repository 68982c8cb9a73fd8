"""The audit log.

Kafka's line for a decision, its level, the hooks that receive decisions, and a parser of such lines.
"""

import re
from collections.abc import Callable, Sequence
from enum import IntEnum, StrEnum
from functools import cache
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from aclog.authorizer.acl import StandardAclWithId, code_name
from aclog.authorizer.acls_image import AclsImage, Decision
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.interface import Action, AuthorizationResult, InvalidRequestError, RequestContext
from aclog.metalog.native import regex
from aclog.metalog.values import frozen

# Audit hooks: receivers of an authorizer's decisions, and the outcomes that a hook selects.


ALLOWED_LOGGED: Final = 1
ALLOWED_UNLOGGED: Final = 2
DENIED_LOGGED: Final = 4
DENIED_UNLOGGED: Final = 8
"""The four outcomes of an action, as bits: allowed or denied, and whether the action requests a log line then
(`log_if_allowed`, `log_if_denied`)."""
EVERY_OUTCOME: Final = ALLOWED_LOGGED | ALLOWED_UNLOGGED | DENIED_LOGGED | DENIED_UNLOGGED
EITHER_LOGGED: Final = ALLOWED_LOGGED | DENIED_LOGGED
ANY_ALLOWED: Final = ALLOWED_LOGGED | ALLOWED_UNLOGGED

AuditHook: TypeAlias = Callable[[RequestContext, Action, Decision], None]
"""Called with the decisions of authorize(), and with the decision on `hardcode` of authorizeByResourceType.

A hook with an attribute `wanted` (SelectiveHook) is called for those outcomes only; any other hook for every decision.
"""


@runtime_checkable
class SelectiveHook(Protocol):
    """An audit hook that selects outcomes.

    Finding the ACL that determined a decision takes several times as long as the decision, and is done only for
    selected outcomes.
    """

    @property
    def wanted(self) -> int:
        """The selected outcomes (bits). Read at every call of authorize(), so it may change at any time."""

    def __call__(self, context: RequestContext, action: Action, decision: Decision) -> None:
        """Receive one decision. authorize() passes on its errors."""


@frozen
class _EveryDecision:
    """Makes a SelectiveHook of a plain callable."""

    hook: AuditHook
    wanted: int = EVERY_OUTCOME

    def __call__(self, context: RequestContext, action: Action, decision: Decision) -> None:
        self.hook(context, action, decision)


def selective(hook: AuditHook) -> SelectiveHook:
    """Return the hook itself if it selects outcomes, otherwise a hook that selects every outcome."""
    return hook if isinstance(hook, SelectiveHook) else _EveryDecision(hook)


def outcome_of(action: Action, result: AuthorizationResult) -> int:
    """Return the outcome (one bit) of an action with this result."""
    if result is AuthorizationResult.ALLOWED:
        return ALLOWED_LOGGED if action.log_if_allowed else ALLOWED_UNLOGGED
    return DENIED_LOGGED if action.log_if_denied else DENIED_UNLOGGED


# Observers of accesses: they receive the requests and the image that decided them, without the deciding ACL.


class AccessTally(Protocol):
    """Receives the decisions on one image, from any thread; its methods must not raise or block."""

    def decided(
        self, context: RequestContext, actions: Sequence[Action], results: Sequence[AuthorizationResult]
    ) -> None:
        """Receive decisions made by the ACLs of the image: the first of `actions`, as many as have a result."""

    def left_to_super_users(self, actions: Sequence[Action]) -> None:
        """Receive actions that were allowed to a super user, without any ACL."""

    def not_ready(self, actions: Sequence[Action]) -> None:
        """Receive actions that were refused because the log had not been replayed."""


class AccessObserver(Protocol):
    """Called with every image by which an authorizer is about to decide (StandardAuthorizer.set_observer).

    Unlike an audit hook, it does not need the ACL that determined a decision, which takes several times as long as the
    decision.
    """

    def begin(self, image: AclsImage) -> AccessTally:
        """Return the receiver of the decisions on an image; called in the order of the images."""


# The reasons why a line or row of an access log is not an access, for all readers.


MAX_EXCERPT = 80
"""The number of characters of a bad value in a detail."""


class Reason(StrEnum):
    """Why a line or row is not an access. BLANK lines are counted, but are not rejects."""

    BLANK = "BLANK"
    NOT_UTF8 = "NOT_UTF8"
    NO_HEAD = "NO_HEAD"
    TORN = "TORN"
    OTHER_LOGGER = "OTHER_LOGGER"
    OTHER_MESSAGE = "OTHER_MESSAGE"
    AMBIGUOUS = "AMBIGUOUS"
    UNREADABLE = "UNREADABLE"
    MALFORMED = "MALFORMED"
    MISSING_VALUE = "MISSING_VALUE"
    BAD_TIMESTAMP = "BAD_TIMESTAMP"
    BAD_OPERATION = "BAD_OPERATION"
    BAD_RESOURCE_TYPE = "BAD_RESOURCE_TYPE"
    BAD_PATTERN_TYPE = "BAD_PATTERN_TYPE"
    BAD_DECISION = "BAD_DECISION"
    TOO_LONG = "TOO_LONG"


EXPECTED_VALUES: Final = {
    Reason.BAD_OPERATION: ("operation", "READ, WRITE, ... or ALL"),
    Reason.BAD_RESOURCE_TYPE: (
        "resourceType",
        "TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN or USER",
    ),
    Reason.BAD_PATTERN_TYPE: ("patternType", "LITERAL, the pattern type of all requests"),
    Reason.BAD_DECISION: ("loggedDecision", "ALLOWED or DENIED"),
}
"""The column that a bad value is in, and what was expected."""


def known_names(kind: type[IntEnum]) -> list[str]:
    """Return the names of an enum that may occur in a request: all but UNKNOWN and ANY."""
    return [member.name for member in kind if member.name not in {"UNKNOWN", "ANY"}]


def bad_value(reason: Reason, value: str) -> str:
    """Return the detail for an invalid value."""
    name, expected = EXPECTED_VALUES[reason]
    return f"{name} `{value[:MAX_EXCERPT]}`: expected {expected}"


# Parser for a line of kafka-authorizer.log after its time, as written by any Kafka since 0.9.
#
# There are four formats: StandardAuthorizer (`operation = READ`, request, rule), AclAuthorizer of Kafka 2.4 to 3.9
# (`Operation = Read`, request, no rule), SimpleAclAuthorizer of 2.0 to 2.3 (no request), and older ones (no pattern
# type either).
#
# Clients choose principals and names, so a line may contain parts of the layout twice and be ambiguous. Every part is
# searched for in the whole line; a line with a repeated part is rejected.
#
# An unreadable line may still contain an access, in another layout or torn: `access_trace` returns as much of it as is
# certain.


TIME: Final = r"\[\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}[,.]\d{3}"
"""As log4j's `%d` and `%d{ISO8601}` write it, in 1 and 2, and logback's."""
TIME_SIZE: Final = len("[2026-11-21 10:00:00,123")
HEAD: Final = rf"^{TIME}\] [A-Z]+ Principal = "
"""The beginning of a line about an access."""

# All quantifiers but those of free text are possessive or bounded, and a part that occurs twice is found before the
# free texts between the parts are matched: so the time for a hostile line is linear in its length.
_HEAD = r"\] ([A-Z]+) Principal = "
_ACCESS = (
    r" is (Allowed|Denied) ([oO])peration = ([A-Za-z_]{1,40}+) from host = (\S{1,255}+)"
    r" on resource = ([A-Za-z_]{1,40}+):"
)
_REQUEST = r" for request = (\w{1,60}+) with resourceRefCount = (\d{1,10}+)"
_RULE = r"SuperUser|DefaultAllow|DefaultDeny|MatchingAcl\(acl=StandardAcl(?:\[.*\]|\(.*\))\)"
_TAIL = r" \(kafka\.authorizer\.logger\)\r?\Z"
_LITERAL = "LITERAL:"

_FREE = r"([^ ]*+(?: [^ ]*+)*?)"
"""Any text, as short as possible, word by word: the part after it begins with a space."""
_LINE = regex(
    rf"{_HEAD}{_FREE}{_ACCESS}{_FREE}(?:{_REQUEST}(?: based on rule ({_RULE}))?)?{_TAIL}", re.ASCII | re.DOTALL
)
MESSAGE: Final = "Principal = "
"""How the message of every authorizer begins, in every layout."""
_MESSAGE = regex(
    rf"{MESSAGE}{_FREE}{_ACCESS}{_FREE}(?:{_REQUEST}(?: based on rule ({_RULE}))?)?\Z", re.ASCII | re.DOTALL
)
_SHORT_RULE = r"SuperUser|DefaultAllow|DefaultDeny|MatchingAcl\(acl=StandardAcl(?:\[.*?\]|\(.*?\))\)"
_CERTAIN = regex(
    rf"{MESSAGE}{_FREE}{_ACCESS}{_FREE}{_REQUEST}(?: based on rule (?:{_SHORT_RULE}))?", re.ASCII | re.DOTALL
)
_BY_RULE = regex(rf"{_REQUEST} based on rule (?:{_SHORT_RULE})", re.ASCII | re.DOTALL)
_FIND_REQUEST = regex(_REQUEST, re.ASCII)
_PARTS: Final = (
    (" from host = ", regex(_ACCESS, re.ASCII)),
    (" for request = ", regex(_REQUEST, re.ASCII)),
)
"""(A literal in the part, the part), each of which a line has at most once. The literal is quicker to count."""

_ANY_HEAD = regex(rf"{TIME}\] [A-Z]+ ", re.ASCII)
_ANY_TAIL = regex(r" \([\w.$-]++\)\r?\Z", re.ASCII)
_SHORT_TAIL = regex(r" \((?:k\w*\.)?(?:a\w*\.)?logger\)\r?", re.ASCII)
"""The logger's name as `%c{1}` and `%c{1.}` abbreviate it: another layout."""
_OUR_TAIL = regex(_TAIL, re.ASCII)
_BLANK = regex(r"\s*+\Z", re.ASCII)
_HEADED = regex(HEAD, re.ASCII)
_ALLOWED, _DENIED = " is Allowed", " is Denied"
_HOST, _RESOURCE = " from host = ", " on resource = "


class ParsedLine(NamedTuple):
    """A line without its time: ACCESS_COLUMNS in their order, or the reason why it is not an access."""

    principal: str | None = None
    host: str | None = None
    operation: str | None = None
    resource_type: str | None = None
    resource_name: str | None = None
    pattern_type: str | None = None
    decision: str | None = None
    rule: str | None = None
    request: str | None = None
    reference_count: int | None = None
    level: str | None = None
    reason: str | None = None
    detail: str | None = None


class AccessTrace(NamedTuple):
    """The certain parts of an access whose line cannot be read; None for the others."""

    principal: str | None = None
    decision: str | None = None
    """ALLOWED or DENIED."""


def is_headed(line: str) -> bool:
    """Return whether a line begins like an access; `read_line` parses its rest after TIME_SIZE."""
    return _HEADED.match(line) is not None


def access_trace(line: str) -> AccessTrace | None:
    """Return the certain parts of an access in an unreadable line; None if it is not about an access.

    A line may consist of two torn ones, and clients choose principals and names: a repeated part is not certain.
    """
    allowed, denied = line.count("is Allowed"), line.count("is Denied")
    heads = line.count(MESSAGE)
    if not allowed + denied + heads:
        # the rest of a torn line; AclAuthorizer's other messages have the resource before the host
        return AccessTrace() if 0 <= line.find(_HOST) < line.find(_RESOURCE) or _is_fragment(line) else None
    if allowed + denied != 1 or heads > 1 or _has_second_time(line):
        return AccessTrace()
    decision = "ALLOWED" if allowed else "DENIED"
    begin = line.find(MESSAGE) + len(MESSAGE)
    end = line.find(_ALLOWED if allowed else _DENIED)
    principal = line[begin:end] if heads and end > begin else ""
    is_certain = ":" in principal and "\ufffd" not in principal and "\0" not in principal
    return AccessTrace(principal=principal if is_certain else None, decision=decision)


def _has_second_time(line: str) -> bool:
    """Return whether another line begins before the message: the principal is that of the second one, then."""
    return _LATER_TIME.search(line, 1, max(line.find(MESSAGE), 0)) is not None


_LATER_TIME = regex(r"\[[0-9]{4}-")


def _is_fragment(line: str) -> bool:
    """Return whether a line is the beginning of one in Apache's layout, up to its message, or the end of any."""
    if _END_OF_MESSAGE.search(line) is not None:
        return True
    if line.endswith(_TAIL_TEXT):
        return len(line) > len(_TAIL_TEXT) and _ANY_HEAD.match(line) is None
    if 1 < len(line) < len(_TAIL_TEXT) and _TAIL_TEXT.endswith(line):
        return True
    return bool(line) and len(line) < _LONGEST_BEGINNING and _is_beginning(re.sub("[0-9]", "0", line))


def _is_beginning(zeroed: str) -> bool:
    """Return whether a text, with 0 for every digit, is the beginning of a line up to its message."""
    head = _TIME_AND_LEVEL.match(zeroed)
    return "[0000-00-00 00:00:00,000]".startswith(zeroed) or (
        head is not None and " Principal =".startswith(zeroed[head.end() :])
    )


_END_OF_MESSAGE = regex(
    r" with resourceRefCount = [0-9]| based on rule (?:SuperUser|Default|MatchingAcl)"
    r"|permissionType=[A-Z]{4,5}[\])}]\).{0,99}?kafka\.authorizer\.logger",
    re.ASCII,
)
"""Texts that only messages about accesses have."""
_TAIL_TEXT = " (kafka.authorizer.logger)"
_LONGEST_BEGINNING = 50
_TIME_AND_LEVEL = regex(r"\[0000-00-00[ T]00:00:00[,.]000\] [A-Z]*+")


_FOR_REQUEST = " for request = "
_CUT_REQUEST = tuple(_FOR_REQUEST[:size] for size in range(1, len(_FOR_REQUEST)))


def _is_ambiguous(text: str) -> bool:
    """Return whether a part is repeated: by a name, or of two lines, if the text between them was lost."""
    return text.count(MESSAGE) > 1 or any(text.count(mark) > 1 and len(part.findall(text)) > 1 for mark, part in _PARTS)


def read_line(text: str) -> ParsedLine:
    """Parse the rest of a line after its time (`] INFO Principal = ...`)."""
    if _is_ambiguous(text):
        return ParsedLine(reason=_reason_by_tail(text) or Reason.AMBIGUOUS)
    match = _LINE.match(text)
    if match is None:
        return ParsedLine(reason=_reason_by_tail(text) or Reason.UNREADABLE)
    level, *parts = match.groups()
    return _parsed(level, parts)


def read_message(text: str, level: str | None = None) -> ParsedLine:
    """Parse a message without the text around it (`Principal = ...`), as another layout than the default has it."""
    if _is_ambiguous(text):
        return ParsedLine(reason=Reason.AMBIGUOUS)
    match = _MESSAGE.match(text)
    return ParsedLine(reason=Reason.UNREADABLE) if match is None else _parsed(level, match.groups())


def certain_end(text: str, *, by_rule: bool = False) -> int | None:
    """Return where a text's message ends according to its own words; None if only the layout can define that.

    Messages since Kafka 2.4 end with their request, since 3.2 with their rule; `by_rule` accepts only the latter.
    """
    match = _CERTAIN.match(text)
    return None if match is None or (by_rule and _BY_RULE.search(match[0]) is None) else match.end()


def is_cut(read: ParsedLine) -> bool:
    """Return whether an older message, whose end no text after it proves, may have lost its request."""
    return read.request is None and read.resource_name is not None and has_cut_request(read.resource_name)


def has_cut_request(text: str) -> bool:
    """Return whether a text may have a part of a message's request, and lack its end."""
    return _FOR_REQUEST in text or text.endswith(_CUT_REQUEST)


def _parsed(level: str | None, parts: Sequence[Any]) -> ParsedLine:
    """Return the line whose message has these parts."""
    principal, answer, case, operation, host, kind, name, request, count, rule = parts
    if "\0" in f"{principal}{host}{name}{rule}":  # of a damaged disk or a truncated file
        return ParsedLine(reason=Reason.UNREADABLE)
    literal = name.startswith(_LITERAL)
    if case == "O":
        if rule is not None or (request is None and _FIND_REQUEST.search(name)):
            return ParsedLine(reason=Reason.AMBIGUOUS)  # SimpleAclAuthorizer with such a name, or a forgery
    elif rule is None or not literal:
        return ParsedLine(reason=Reason.UNREADABLE)
    known_operation, known_type = operation_name(operation), resource_type_name(kind)
    if not principal or known_operation is None or known_type is None:
        return _bad_value(principal, operation, kind)
    return ParsedLine(
        principal=principal,
        host=host,
        operation=known_operation,
        resource_type=known_type,
        resource_name=name[len(_LITERAL) :] if literal else name,
        pattern_type="LITERAL" if literal else None,
        decision="ALLOWED" if answer == "Allowed" else "DENIED",
        rule=rule,
        request=request,
        reference_count=_count(count),
        level=level,
    )


def operation_name(text: str) -> str | None:
    """Return the name of an operation in any form that Kafka writes (ALTER_CONFIGS, AlterConfigs); None if unknown."""
    return _OPERATIONS.get(text) or _OPERATIONS.get(_normalized(text))


def resource_type_name(text: str) -> str | None:
    """Return the name of a resource type in any form that Kafka writes (TRANSACTIONAL_ID, TransactionalId)."""
    return _TYPES.get(text) or _TYPES.get(_normalized(text))


def _bad_value(principal: str, operation: str, kind: str) -> ParsedLine:
    if not principal:
        return ParsedLine(reason=Reason.MISSING_VALUE, detail="no principal")
    if _normalized(operation) not in _OPERATIONS:
        return ParsedLine(reason=Reason.BAD_OPERATION, detail=bad_value(Reason.BAD_OPERATION, operation))
    return ParsedLine(reason=Reason.BAD_RESOURCE_TYPE, detail=bad_value(Reason.BAD_RESOURCE_TYPE, kind))


def read_other(line: str) -> Reason:
    """Return why a line that does not begin with `[time] LEVEL Principal = ` is not an access."""
    if _BLANK.match(line):
        return Reason.BLANK
    if not _ANY_HEAD.match(line):
        return Reason.NO_HEAD
    return _reason_by_tail(line) or Reason.OTHER_MESSAGE


def _reason_by_tail(text: str) -> Reason | None:
    if _OUR_TAIL.search(text[-_TAIL_SIZE:]):
        return None
    tail = _ANY_TAIL.search(text)
    return Reason.OTHER_LOGGER if tail is not None and not _SHORT_TAIL.fullmatch(tail[0]) else Reason.TORN


_TAIL_SIZE = len(" (kafka.authorizer.logger)\r")


def _normalized(name: str) -> str:
    return name.replace("_", "").upper() if name.isascii() else name  # some other letters are ASCII ones in capitals


def _count(text: str | None) -> int | None:
    number = None if text is None else int(text)
    return number if number is None or number < 1 << 31 else None


def _names(kind: type[IntEnum]) -> dict[str, str]:
    """Return names by each form that Kafka writes (ALTER_CONFIGS, AlterConfigs), and by the normalized one."""
    forms = (str, _normalized, lambda name: name.title().replace("_", ""))
    return {form(name): name for name in known_names(kind) for form in forms}


_OPERATIONS, _TYPES = _names(AclOperation), _names(ResourceType)


# Request names by apiKey, as in Kafka 4.4.0 (org.apache.kafka.common.protocol.ApiKeys.name).


# fmt: off
API_NAMES = (
    "Produce", "Fetch", "ListOffsets", "Metadata", "LeaderAndIsr",
    "StopReplica", "UpdateMetadata", "ControlledShutdown", "OffsetCommit", "OffsetFetch",
    "FindCoordinator", "JoinGroup", "Heartbeat", "LeaveGroup", "SyncGroup",
    "DescribeGroups", "ListGroups", "SaslHandshake", "ApiVersions", "CreateTopics",
    "DeleteTopics", "DeleteRecords", "InitProducerId", "OffsetForLeaderEpoch", "AddPartitionsToTxn",
    "AddOffsetsToTxn", "EndTxn", "WriteTxnMarkers", "TxnOffsetCommit", "DescribeAcls",
    "CreateAcls", "DeleteAcls", "DescribeConfigs", "AlterConfigs", "AlterReplicaLogDirs",
    "DescribeLogDirs", "SaslAuthenticate", "CreatePartitions", "CreateDelegationToken", "RenewDelegationToken",
    "ExpireDelegationToken", "DescribeDelegationToken", "DeleteGroups", "ElectLeaders", "IncrementalAlterConfigs",
    "AlterPartitionReassignments", "ListPartitionReassignments", "OffsetDelete",
    "DescribeClientQuotas", "AlterClientQuotas", "DescribeUserScramCredentials", "AlterUserScramCredentials",
    "Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "DescribeQuorum", "AlterPartition", "UpdateFeatures", "Envelope",
    "FetchSnapshot", "DescribeCluster", "DescribeProducers", "BrokerRegistration", "BrokerHeartbeat",
    "UnregisterBroker", "DescribeTransactions", "ListTransactions", "AllocateProducerIds",
    "ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "ControllerRegistration", "GetTelemetrySubscriptions",
    "PushTelemetry", "AssignReplicasToDirs", "ListConfigResources", "DescribeTopicPartitions",
    "ShareGroupHeartbeat", "ShareGroupDescribe", "ShareFetch", "ShareAcknowledge",
    "AddRaftVoter", "RemoveRaftVoter", "UpdateRaftVoter", "InitializeShareGroupState", "ReadShareGroupState",
    "WriteShareGroupState", "DeleteShareGroupState", "ReadShareGroupStateSummary",
    "StreamsGroupHeartbeat", "StreamsGroupDescribe",
    "DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets",
    "StreamsGroupTopologyDescriptionUpdate", "UnregisterController",
)
# fmt: on


def api_name(api_key: int) -> str:
    """Return the name of a request.

    Raises:
        InvalidRequestError: Kafka 4.4.0 does not know the key; its ApiKeys.forId also throws.

    """
    if not 0 <= api_key < len(API_NAMES):
        raise InvalidRequestError(f"Unexpected api key: {api_key}")
    return API_NAMES[api_key]


# The audit log: Kafka's line for a decision, its level, and the same decision as a structured event.


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


@cache
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
