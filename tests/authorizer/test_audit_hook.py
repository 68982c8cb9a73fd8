"""What an audit hook is told: what it wants, of the image of the call, with the ACL that Kafka names."""

import io
from logging import WARNING

import pytest
from attrs import define, evolve, field

from aclog.authorizer.acl import ResourcePattern, StandardAcl
from aclog.authorizer.acls_image import AclsImage, Basis
from aclog.authorizer.audit import (
    ALLOWED_LOGGED,
    ALLOWED_UNLOGGED,
    DEBUG,
    DENIED_LOGGED,
    DENIED_UNLOGGED,
    EVERY_OUTCOME,
    INFO,
    TRACE,
    audit_level,
    outcome_of,
)
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.interface import Action, InvalidRequestError, RequestContext
from aclog.authorizer.standard import StandardAuthorizer, build_authorizer
from aclog.server.audit_log import AuditLog
from tests.support.builders.acls import record_of
from tests.support.builders.images import with_ids
from tests.support.models import golden

ALICE = RequestContext(principal="User:alice", host="10.0.0.1")
READ = StandardAcl(
    resource_type=ResourceType.TOPIC,
    resource_name="orders",
    pattern_type=PatternType.LITERAL,
    principal="User:alice",
    host="*",
    operation=AclOperation.READ,
    permission_type=3,
)


def action(name: str, **other) -> Action:
    pattern = ResourcePattern(resource_type=ResourceType.TOPIC, name=name)
    return Action(operation=AclOperation.READ, resource_pattern=pattern, **other)


@define
class Hook:
    """Keeps what it is told."""

    wanted: int
    told: list = field(factory=list)

    def __call__(self, context, action, decision):
        self.told.append((context, action, decision))


FOUR = [
    action("orders"),
    action("orders", log_if_allowed=False),
    action("paid"),
    action("paid", log_if_denied=False),
]
OUTCOMES = [ALLOWED_LOGGED, ALLOWED_UNLOGGED, DENIED_LOGGED, DENIED_UNLOGGED]


@pytest.mark.parametrize("wanted", range(16))
def test_it_is_told_what_it_wants(wanted):
    hook = Hook(0)
    authorizer = build_authorizer(AclsImage.from_acls(with_ids([READ])))
    authorizer.set_audit(hook)
    for _ in range(2):
        results = authorizer.authorize(ALICE, FOUR)
        assert not hook.told
        assert [outcome_of(*each) for each in zip(FOUR, results, strict=True)] == OUTCOMES
    hook.wanted = wanted  # from now on, without another word
    expected = [each for each, outcome in zip(FOUR, OUTCOMES, strict=True) if wanted & outcome]
    for _ in range(2):
        hook.told.clear()
        authorizer.authorize(ALICE, FOUR)
        assert [told for _, told, _ in hook.told] == expected
        for each in FOUR:
            authorizer.authorize(ALICE, [each])
        assert [told for _, told, _ in hook.told] == expected * 2
        for _, told, decision in hook.told:
            named = told.resource_pattern.name == "orders"
            assert (decision.basis, decision.rule and decision.rule.acl) == (
                (Basis.MATCHING_ACL, READ) if named else (Basis.DEFAULT_DENY, None)
            )


def test_a_rule_is_looked_for_once_and_only_if_it_is_wanted(monkeypatch):
    asked, real = [], AclsImage.rule
    monkeypatch.setattr(AclsImage, "rule", lambda image, *request: asked.append(request) or real(image, *request))
    hook = Hook(DENIED_LOGGED)
    image = AclsImage.from_acls(with_ids([READ]))
    authorizer = build_authorizer(image)
    authorizer.set_audit(hook)
    for _ in range(3):
        authorizer.authorize(ALICE, FOUR[:2])
        authorizer.authorize_by_resource_type(ALICE, AclOperation.READ, ResourceType.TOPIC)
    assert not asked
    hook.wanted = EVERY_OUTCOME
    for _ in range(3):
        authorizer.authorize(ALICE, FOUR[:2])
    assert len(asked) == 1
    authorizer.load(image.apply([record_of(rule) for rule in with_ids([evolve(READ, permission_type=2)], first=9)]))
    authorizer.authorize(ALICE, FOUR[:1])
    assert len(asked) == 2
    assert hook.told[-1][2].rule.acl.permission_type == 2


def test_what_was_decided_before_an_error_is_told():
    told = []
    authorizer = build_authorizer(AclsImage.from_acls(with_ids([READ])))
    authorizer.set_audit(lambda *each: told.append(each))
    prefixed = evolve(FOUR[0], resource_pattern=evolve(FOUR[0].resource_pattern, pattern_type=PatternType.PREFIXED))
    with pytest.raises(InvalidRequestError):
        authorizer.authorize(ALICE, [*FOUR, prefixed, FOUR[0]])
    assert [each for _, each, _ in told] == FOUR


def test_a_decision_and_its_rule_are_of_one_image():
    """The hook of the first action loads another image; the second one still has the rule of the first image."""
    other = AclsImage.from_acls(with_ids([evolve(READ, permission_type=2)]))
    authorizer = build_authorizer(AclsImage.from_acls(with_ids([READ, evolve(READ, resource_name="paid")])))
    told = []

    def hook(_context, asked, decision):
        told.append((asked, decision))
        authorizer.load(other)

    authorizer.set_audit(hook)
    results = authorizer.authorize(ALICE, [FOUR[0], FOUR[2]])
    assert [decision.result for _, decision in told] == results
    assert [decision.rule.acl.resource_name for _, decision in told] == ["orders", "paid"]


@pytest.mark.parametrize("number", golden.NUMBERS[::6])
def test_the_lines_are_those_of_a_hook_that_is_told_everything(number):
    """With and without memory, each request twice, on the golden sets: level and text of every line."""
    estate = golden.load(number)
    image = AclsImage.from_acls(with_ids(estate.acls))
    properties = {"super.users": estate.super_users, "allow.everyone.if.no.acl.found": estate.allow_everyone}
    for level, lowest in (("WARNING", WARNING), ("INFO", INFO), ("DEBUG", DEBUG), ("TRACE", TRACE)):
        texts = []
        for cache in (True, False):
            out = io.StringIO()
            with AuditLog(out, level, clock=lambda: 0.0) as log:
                authorizer = StandardAuthorizer(cache=cache, audit=log if cache else at_level(log, lowest))
                authorizer.configure({key: value for key, value in properties.items() if value is not None})
                authorizer.load(image)
                authorizer.complete_initial_load()
                for position, request in enumerate(estate.requests[:200] * 2):
                    ask(authorizer, request, position)
            texts.append(out.getvalue())
        assert texts[0] == texts[1]
        assert bool(texts[0]) is (lowest < WARNING)


def at_level(log: AuditLog, lowest: int):
    """Return a hook that receives every decision, and logs those of the levels from this one on."""

    def hook(context, asked, decision):
        if audit_level(asked, decision.result) >= lowest:
            log(context, asked, decision)

    return hook


def ask(authorizer: StandardAuthorizer, request: golden.GoldenRequest, position: int) -> None:
    context = RequestContext(principal=request.principal, host=request.host, request_type=request.api)
    try:
        if request.resource_name is None:
            authorizer.authorize_by_resource_type(context, request.operation, request.resource_type)
            return
        pattern = ResourcePattern(resource_type=request.resource_type, name=request.resource_name)
        asked = Action(
            operation=request.operation,
            resource_pattern=pattern,
            log_if_allowed=position % 3 > 0,
            log_if_denied=position % 4 > 0,
        )
        authorizer.authorize(context, [asked])
    except InvalidRequestError:
        pass
