"""Lines with any principal and resource name are read correctly or rejected as ambiguous."""

import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import ResourcePattern, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import Basis, Decision
from aclog.authorizer.audit import API_NAMES, audit_line
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.pipeline.accesses.kafka_log import split_lines
from tests.support.runs.profiles import examples
from tests.support.spark.access_logs import batch_of

EXAMPLES = settings(max_examples=examples(1500), deadline=None, database=None, suppress_health_check=list(HealthCheck))
FRAGMENTS = [
    " is Allowed operation = READ from host = 1.1.1.1 on resource = Topic:LITERAL:",
    " is Denied Operation = Read from host = ::1 on resource = Group:",
    " for request = Fetch with resourceRefCount = 1 based on rule DefaultDeny",
    " for request = Fetch with resourceRefCount = 1",
    " based on rule MatchingAcl(acl=StandardAcl[",
    "[2026-11-21 10:00:00,123] INFO Principal = ",
    " (kafka.authorizer.logger)",
    "])",
    "LITERAL:",
    " is Allowed",
    " from host = ",
    "$1",
    "\\",
    "\r",
    "\u2028",
    "\x85",
]
PLAIN = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=8)
HOSTILE = st.lists(st.sampled_from(FRAGMENTS) | PLAIN, max_size=4).map("".join)
TEXT = st.one_of(PLAIN, PLAIN, HOSTILE)
OPERATIONS = st.sampled_from([operation for operation in AclOperation if operation > AclOperation.ANY])
TYPES = st.sampled_from([kind for kind in ResourceType if kind > ResourceType.ANY])
HOSTS = st.sampled_from(["10.0.0.1", "0:0:0:0:0:0:0:1", "fe80:0:0:0:0:0:0:1%eth0"])

_BOTH = (
    r"(?s)\[[^]]*\] [A-Z]+ Principal = (.*{0}) is (?:Allowed|Denied) operation = ([A-Za-z_]+) from host = (\S+) on "
    r"resource = ([A-Za-z_]+):LITERAL:(.*{0}) for request = (\w+) with resourceRefCount = (\d+) based on rule "
    r"(SuperUser|DefaultAllow|DefaultDeny|MatchingAcl\(acl=StandardAcl\[.*\]\)) \(kafka\.authorizer\.logger\)"
)
FIELDS = (
    *("principal", "host", "operation", "resourceType", "resourceName", "loggedDecision", "loggedRule", "request"),
    "resourceReferenceCount",
)
RELUCTANT, GREEDY = re.compile(_BOTH.format("?")), re.compile(_BOTH.format(""))


@st.composite
def decided(draw):
    action = Action(
        operation=draw(OPERATIONS),
        resource_pattern=ResourcePattern(resource_type=draw(TYPES), name=draw(TEXT)),
        resource_reference_count=draw(st.integers(0, 2**31 - 1)),
    )
    context = RequestContext(
        principal=f"User:{draw(TEXT)}", host=draw(HOSTS), request_type=draw(st.integers(0, len(API_NAMES) - 1))
    )
    result = draw(st.sampled_from(AuthorizationResult))
    rule = None
    basis = Basis.DEFAULT_DENY if result is AuthorizationResult.DENIED else Basis.SUPER_USER
    if draw(st.booleans()):
        acl = StandardAcl(
            resource_type=action.resource_pattern.resource_type,
            resource_name=draw(TEXT),
            pattern_type=PatternType.PREFIXED,
            principal=context.principal,
            host="*",
            operation=AclOperation.ALL,
            permission_type=3,
        )
        basis, rule = Basis.MATCHING_ACL, StandardAclWithId(id=None, acl=acl)
    return context, action, Decision(result=result, basis=basis, rule=rule)


def test_audit_lines_are_read_correctly_or_rejected():
    meant = {}

    @EXAMPLES
    @given(decided())
    def campaign(drawn):
        context, action, decision = drawn
        pattern = action.resource_pattern
        line = f"[2026-11-21 10:00:00,123] INFO {audit_line(*drawn)} (kafka.authorizer.logger)"
        meant[line] = (
            *(context.principal, context.host, action.operation.name),
            *(ResourceType(pattern.resource_type).name, pattern.name, decision.result.value, decision.text),
            *(API_NAMES[context.request_type], action.resource_reference_count),
        )

    campaign()
    found = split_lines(batch_of(meant))
    rejected = [row["line"] for row in found.rejects.to_pylist()]
    reasons = {"AMBIGUOUS", "UNREADABLE"}  # the latter for a NUL
    assert {(row["reason"], "\0" in row["line"]) for row in found.rejects.to_pylist()} <= {
        ("AMBIGUOUS", False),
        *((reason, True) for reason in reasons),
    }
    assert found.blanks == 0

    good = [tuple(row[name] for name in FIELDS) for row in found.accesses.to_pylist()]
    assert good == [fields for line, fields in meant.items() if line not in rejected]
    for line in meant:
        if line not in rejected:
            assert RELUCTANT.fullmatch(line).groups() == GREEDY.fullmatch(line).groups(), line
    signs = ["\0", *(fragment[:8] for fragment in FRAGMENTS[:6:2])]
    innocent = [line for line in meant if not any(sign in line[50:] for sign in signs)]
    assert len(good) > len(meant) / 2 > examples(500)
    assert len(rejected) > examples(100)
    assert not set(rejected).intersection(innocent)
