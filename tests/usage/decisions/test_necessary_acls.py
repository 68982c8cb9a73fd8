"""The ACLs that decisions depend on, checked against the engine with one or many ACLs removed."""

from functools import lru_cache

import numpy as np
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import InvalidRequestError
from aclog.authorizer.settings import Settings
from aclog.usage.decisions.bulk_authorizer import MOST_IN_A_GROUP, BulkAuthorizer, NecessaryAcls
from aclog.usage.decisions.decisions import DecisionCode, ParsedAccess
from aclog.usage.decisions.intervals import AclIntervals
from tests.support.builders.acls import acl
from tests.support.builders.images import with_ids
from tests.support.models import estates
from tests.support.runs.profiles import examples
from tests.usage.decisions.test_bulk_authorizer import LAST, Interval, columns_of, histories, table_of

ANY_REQUEST = estates.requests().filter(lambda r: r.resource_name is not None)
FEW = st.builds(
    StandardAcl,
    resource_type=st.just(ResourceType.TOPIC),
    resource_name=st.sampled_from(["f", "foo", "*"]),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    principal=st.sampled_from(["User:a", "User:*", "User:b"]),
    host=st.sampled_from(["*", "*", "10.0.0.1", "10.0.0.0/8"]),
    operation=st.sampled_from([AclOperation.READ, AclOperation.ALL]),
    permission_type=st.sampled_from([*[AclPermissionType.ALLOW] * 2, AclPermissionType.DENY]),
)
"""ACLs on few names, so that many match one access."""
ASKED = st.one_of(
    ANY_REQUEST,
    st.builds(
        estates.Request,
        principal=st.just("User:a"),
        host=st.just("10.0.0.1"),
        operation=st.sampled_from([AclOperation.READ, AclOperation.DESCRIBE]),
        resource_type=st.just(ResourceType.TOPIC),
        resource_name=st.sampled_from(["f", "foo", "*", "x"]),
    ),
)


@st.composite
def meeting(draw) -> list[Interval]:
    found = []
    for each in with_ids(draw(st.lists(FEW, max_size=6, unique_by=str)), first=100):
        start, length = draw(st.sampled_from([(None, None), (None, None), (None, 3), (2, None), (1, 2)]))
        found.append(Interval(each, start, None if length is None else (start or 0) + length))
    return found


HISTORIES = st.one_of(meeting(), meeting(), histories())


def parsed(request) -> ParsedAccess:
    return ParsedAccess(
        request.principal, request.host, request.operation, request.resource_type, request.resource_name
    )


@lru_cache(1000)
def image_of(rules, asked_as) -> AclsImage:
    return AclsImage.from_acls(rules).with_options(documented=asked_as.documented, cidr=asked_as.cidr)


def allowed(intervals, time, request, asked_as, without=()) -> str:
    """The decision at a time with some ACLs removed: A, D or E."""
    kept = [interval.rule for at, interval in enumerate(intervals) if interval.holds(time) and at not in without]
    image = image_of(tuple(kept), asked_as)
    try:
        verdict = image.verdict(*parsed(request))
    except InvalidRequestError:
        return "E"
    if verdict.name == "NO_CANDIDATE":
        return "A" if asked_as.allow_everyone else "D"
    return "A" if verdict.name == "ALLOW" else "D"


def matches(rule, request, asked_as) -> bool:
    """Whether an ACL matches a request, by deciding with it alone."""
    image = image_of((rule,), asked_as)
    try:
        return image.verdict(*parsed(request)).name in {"ALLOW", "DENY"}
    except InvalidRequestError:
        return False


def found(intervals, rows, asked_as):
    """(Request, time, matched, needed, group) of each access that is decided without an error."""
    spans = AclIntervals.of_table(table_of(intervals))
    authorizer = BulkAuthorizer.of(spans, asked_as)
    acls = NecessaryAcls.of(spans, asked_as)
    micros = np.array([time * 1000 for _, time in rows], np.int64)
    codes = authorizer.decide(columns_of([request for request, _ in rows]), micros)
    good = np.flatnonzero(codes >= DecisionCode.DEFAULT_ALLOW)
    accesses = [parsed(rows[at][0]) for at in good]
    told = acls.find(accesses, acls.intervals.versions.at(micros[good]), codes[good])
    again = NecessaryAcls.of(spans, asked_as, like=authorizer)
    same = again.find(accesses, again.intervals.versions.at(micros[good]), codes[good])
    for pairs, others in ((told.matched, same.matched), (told.needed, same.needed), (told.groups, same.groups)):
        assert all(map(np.array_equal, pairs, others))
    sets = [
        [set(pairs.ordinal[pairs.access == at].tolist()) for pairs in (told.matched, told.needed, told.groups)]
        for at in range(len(good))
    ]
    return [(*rows[row], *each) for row, each in zip(good.tolist(), sets, strict=True)]


SETTINGS = st.builds(Settings, allow_everyone=st.booleans(), documented=st.booleans(), cidr=st.booleans())
TIMES = range(-1, LAST + 2)


@settings(max_examples=examples(50))
@given(intervals=HISTORIES, requests=st.lists(ASKED, max_size=8), asked_as=SETTINGS, data=st.data())
def test_decisions_with_some_acls_removed(intervals, requests, asked_as, data):
    rows = [(request, time) for request in requests for time in TIMES]
    # ACLs that make Kafka throw have a test of their own
    intervals = [each for each in intervals if ":" in each.rule.acl.principal]
    told = found(intervals, rows, asked_as)
    assert len(told) == len(rows)
    for request, time, matched, needed, group in told:
        standing = {at for at, interval in enumerate(intervals) if interval.holds(time)}
        assert matched == {at for at in standing if matches(intervals[at].rule, request, asked_as)}
        before = allowed(intervals, time, request, asked_as)
        without = {at: allowed(intervals, time, request, asked_as, {at}) for at in standing}
        assert needed == {at for at, decision in without.items() if decision != before}
        gone = data.draw(st.sets(st.sampled_from(sorted(standing)))) if standing else set()
        if not group or group - gone:
            assert allowed(intervals, time, request, asked_as, gone) == before


@settings(max_examples=examples(40))
@given(
    rules=st.lists(estates.rules(odd=True), max_size=15, unique_by=str),
    requests=st.lists(ASKED, max_size=10),
    asked_as=SETTINGS,
)
def test_acls_without_a_colon(rules, requests, asked_as):
    rules += [evolve(rule, principal="nocolon") for rule in rules[:2] if rule.principal != "nocolon"]
    intervals = [Interval(rule, None, None) for rule in with_ids(list(dict.fromkeys(rules)))]
    for request, time, _, needed, _ in found(intervals, [(request, 0) for request in requests], asked_as):
        before = allowed(intervals, time, request, asked_as)
        for at in range(len(intervals)):
            if intervals[at].rule.acl.principal != "nocolon":
                assert at in needed or allowed(intervals, time, request, asked_as, {at}) == before


@settings(max_examples=examples(40))
@given(intervals=HISTORIES, requests=st.lists(ASKED, max_size=8), asked_as=SETTINGS)
def test_dependencies_change_only_at_changes(intervals, requests, asked_as):
    rows = [(request, time) for request in requests for time in TIMES]
    acls = NecessaryAcls.of(AclIntervals.of_table(table_of(intervals)), asked_as)
    changes = acls.changes([parsed(request) for request in requests])
    seen = {}
    for request, time, *told in found(intervals, rows, asked_as):
        (version,) = acls.intervals.versions.at(np.array([time * 1000])).tolist()
        at = requests.index(request)
        step = int(np.searchsorted(changes.version[changes.access == at], version, "right"))
        assert seen.setdefault((at, step), told) == told


def rule(principal: str, permission=AclPermissionType.ALLOW, name="t") -> StandardAcl:
    return acl(name, principal, permission_type=permission)


def test_the_last_acl_on_a_resource_is_needed_with_allow_everyone():
    """It does not match the request, which would nevertheless be allowed without it."""
    request = estates.Request(
        principal="User:b", host="10.0.0.1", operation=AclOperation.READ, resource_type=ResourceType.TOPIC,
        resource_name="t",
    )  # fmt: skip
    one, other = (Interval(each, None, None) for each in with_ids([rule("User:a"), rule("User:c")]))
    ((_, _, matched, needed, _),) = found([one], [(request, 0)], Settings(allow_everyone=True))
    assert (matched, needed) == (set(), {0})
    ((_, _, matched, needed, group),) = found([one, other], [(request, 0)], Settings(allow_everyone=True))
    assert (matched, needed, group) == (set(), set(), {0, 1})


def test_groups_are_truncated():
    request = estates.Request(
        principal="User:b", host="10.0.0.1", operation=AclOperation.READ, resource_type=ResourceType.TOPIC,
        resource_name="t",
    )  # fmt: skip
    intervals = [Interval(each, None, None) for each in with_ids([rule(f"User:x{n}") for n in range(200)])]
    ((*_, group),) = found(intervals, [(request, 0)], Settings(allow_everyone=True))
    assert len(group) == MOST_IN_A_GROUP


def test_an_acl_added_and_removed_ten_thousand_times():
    (acl,) = with_ids([rule("User:b")])
    intervals = [Interval(acl, time, time + 1) for time in range(0, 20_000, 2)]
    acls = NecessaryAcls.of(AclIntervals.of_table(table_of(intervals)), Settings())
    asked = [ParsedAccess("User:b", "10.0.0.1", int(AclOperation.READ), int(ResourceType.TOPIC), "t")]
    changes = acls.changes(asked).version
    assert changes.tolist() == list(range(20_001))
    codes = np.where(changes % 2 == 1, changes // 2, DecisionCode.DEFAULT_DENY).astype(np.int32)
    told = acls.find(asked * len(changes), changes, codes)
    assert told.needed.ordinal.tolist() == list(range(10_000))
