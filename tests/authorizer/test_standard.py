"""StandardAuthorizer: readiness, super users, image swaps, the cache, invalid requests, audit."""

import gc
import threading
import tracemalloc

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import AclBindingFilter, ResourcePattern, StandardAcl
from aclog.authorizer.acls_image import AclsImage, Basis
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import (
    Action,
    AuthorizationResult,
    AuthorizerNotReadyError,
    InvalidRequestError,
    RequestContext,
)
from aclog.authorizer.standard import StandardAuthorizer, View
from aclog.metalog.errors import ConfigError
from tests.support.builders.acls import record_of, removal_of
from tests.support.builders.images import with_ids
from tests.support.models import estates
from tests.support.runs.profiles import examples

ALLOWED, DENIED = AuthorizationResult.ALLOWED, AuthorizationResult.DENIED
ALICE = RequestContext(principal="User:alice", host="10.0.0.1")
ADMIN = RequestContext(principal="User:admin", host="10.0.0.1")
READ = StandardAcl(
    resource_type=ResourceType.TOPIC,
    resource_name="orders",
    pattern_type=PatternType.LITERAL,
    principal="User:alice",
    host="*",
    operation=AclOperation.READ,
    permission_type=AclPermissionType.ALLOW,
)


def action(name: str, operation: int = AclOperation.READ, **pattern) -> Action:
    return Action(
        operation=operation, resource_pattern=ResourcePattern(resource_type=ResourceType.TOPIC, name=name, **pattern)
    )


def ready(*acls: StandardAcl, **options) -> StandardAuthorizer:
    authorizer = StandardAuthorizer(**options)
    authorizer.load(AclsImage.from_acls(with_ids(acls)))
    authorizer.complete_initial_load()
    return authorizer


def test_only_super_users_are_decided_before_the_load_is_complete():
    authorizer = StandardAuthorizer()
    authorizer.configure({"super.users": "User:admin", "allow.everyone.if.no.acl.found": "true"})
    authorizer.load(AclsImage.from_acls(with_ids([READ])))
    assert not authorizer.ready
    for ask in (
        lambda: authorizer.authorize(ALICE, [action("orders")]),
        lambda: authorizer.authorize_by_resource_type(ALICE, AclOperation.READ, ResourceType.TOPIC),
        lambda: authorizer.decide(ALICE, action("orders")),
    ):
        with pytest.raises(AuthorizerNotReadyError):
            ask()
    assert authorizer.authorize(ADMIN, [action("x"), action("y")]) == [ALLOWED, ALLOWED]
    assert authorizer.authorize_by_resource_type(ADMIN, AclOperation.READ, ResourceType.TOPIC) is ALLOWED
    authorizer.complete_initial_load()
    authorizer.configure({})
    authorizer.load(AclsImage.empty())
    assert authorizer.ready
    assert authorizer.authorize(ALICE, [action("orders")]) == [DENIED]


def test_several_actions_are_answered_in_order():
    authorizer = ready(READ, evolve(READ, resource_name="paid"))
    asked = [action("orders"), action("x"), action("paid"), action("orders", AclOperation.WRITE)]
    for _ in range(2):
        assert authorizer.authorize(ALICE, asked) == [ALLOWED, DENIED, ALLOWED, DENIED]
    assert authorizer.authorize(ALICE, []) == []
    assert authorizer.acl_count() == 2


@pytest.mark.parametrize("cache", [False, True])
def test_what_it_refuses(cache):
    authorizer = ready(READ, cache=cache)
    authorizer.authorize(ALICE, [action("orders")])
    prefixed = action("orders", pattern_type=PatternType.PREFIXED)
    for context, asked in (
        (ALICE, prefixed),
        (ALICE, action("orders", pattern_type=4)),
        (RequestContext(principal="User:*", host="10.0.0.1"), action("orders")),
        (RequestContext(principal="alice", host="10.0.0.1"), action("orders")),
    ):
        with pytest.raises(InvalidRequestError):
            authorizer.authorize(context, [asked])
    for operation, kind in ((0, 2), (1, 2), (99, 2), (3, 0), (3, 1), (3, 99)):
        with pytest.raises(InvalidRequestError):
            authorizer.authorize_by_resource_type(ALICE, operation, kind)


def test_codes_unknown_to_kafka_are_unknown():
    authorizer = ready(evolve(READ, operation=99), evolve(READ, resource_type=77, operation=AclOperation.ALL))
    for operation in (0, 16, 31, 99, -1):
        assert authorizer.authorize(ALICE, [action("orders", operation)]) == [ALLOWED]
    assert authorizer.authorize(ALICE, [action("orders")]) == [DENIED]
    odd = Action(operation=3, resource_pattern=ResourcePattern(resource_type=88, name="orders"))
    assert authorizer.authorize(ALICE, [odd]) == [ALLOWED]


@pytest.mark.parametrize("cache", [False, True])
def test_a_swap_is_seen_at_once(cache):
    authorizer = ready(READ, cache=cache)
    image = AclsImage.from_acls(with_ids([READ]))
    denied = image.apply([record_of(with_ids([evolve(READ, permission_type=2)], first=50)[0])])
    for _ in range(3):
        assert authorizer.authorize(ALICE, [action("orders")]) == [ALLOWED]
        authorizer.load(denied)
        assert authorizer.authorize(ALICE, [action("orders")]) == [DENIED]
        authorizer.load(image)
    authorizer.configure({"super.users": "User:alice"})
    assert authorizer.authorize(ALICE, [action("nothing")]) == [ALLOWED]
    authorizer.configure({})
    assert authorizer.authorize(ALICE, [action("nothing")]) == [DENIED]


@settings(max_examples=examples(40), deadline=None)
@given(estate=estates.estates(), data=st.data())
def test_remembered_answers_are_those_of_the_image(estate, data):
    """Two authorizers see the same changes, one with and one without a cache."""
    rules = with_ids(estate.acls)
    image = AclsImage.from_acls(rules[::2])
    pair = [StandardAuthorizer(cache=cache) for cache in (True, False)]
    requests = [
        r for r in data.draw(st.lists(estates.requests(), min_size=6, max_size=6)) if r.resource_name is not None
    ]
    for authorizer in pair:
        authorizer.complete_initial_load()
    for rule in [None, *rules]:
        if rule is not None:
            image = image.apply([removal_of(rule) if image.get(rule.id) else record_of(rule)])
        for authorizer in pair:
            authorizer.load(image)
        for r in requests * 2:
            context = RequestContext(principal=r.principal, host=r.host)
            asked = [
                Action(
                    operation=r.operation,
                    resource_pattern=ResourcePattern(resource_type=r.resource_type, name=r.resource_name),
                )
            ]
            assert pair[0].authorize(context, asked) == pair[1].authorize(context, asked)


def test_what_is_remembered_of_names_and_subjects_is_bounded(monkeypatch):
    monkeypatch.setattr("aclog.authorizer.index.base._MAX_LOOKUPS", 8)
    monkeypatch.setattr("aclog.authorizer.index.base._MAX_MASKS", 8)
    monkeypatch.setattr("aclog.authorizer.index.base._MAX_SUBJECTS", 8)
    prefixed = [evolve(READ, resource_name="o" * n, pattern_type=PatternType.PREFIXED) for n in range(1, 20)]
    authorizer = ready(*prefixed, cache=False)
    memo = authorizer._view.image.index.base.memo
    for n in range(1, 60):
        context = RequestContext(principal=f"User:{n}", host="10.0.0.1")
        assert authorizer.authorize(ALICE, [action("o" * n)]) == [ALLOWED]
        assert authorizer.authorize(context, [action("o" * n)]) == [DENIED]
        for lookups in memo.lookups, memo.older_lookups:
            assert sum(map(len, lookups.values())) <= 8
        kept = [memo.subjects.young, memo.subjects.old]
        assert max(map(len, kept)) <= 8
        # A walk adds up to 19 masks at once; a subject that is asked again leaves its masks behind.
        assert all(sum(len(s.prefix_masks) for s in subjects.values()) <= 8 + 2 * 20 for subjects in kept)


def test_every_decision_is_audited_with_its_reason():
    lines = []
    authorizer = ready(READ, audit=lambda *line: lines.append(line))
    authorizer.configure({"super.users": "User:admin"})
    asked = [action("orders"), action("x")]
    for _ in range(2):
        lines.clear()
        assert authorizer.authorize(ALICE, asked) == [ALLOWED, DENIED]
        assert [(c, a, d.result, d.basis) for c, a, d in lines] == [
            (ALICE, asked[0], ALLOWED, Basis.MATCHING_ACL),
            (ALICE, asked[1], DENIED, Basis.DEFAULT_DENY),
        ]
        assert lines[0][2].rule.acl == READ
    authorizer.authorize(ADMIN, asked[:1])
    assert lines[-1][2].text == "SuperUser"
    authorizer.configure({"allow.everyone.if.no.acl.found": "true"})
    authorizer.authorize(ALICE, asked[1:])
    assert lines[-1][2].text == "DefaultAllow"
    assert authorizer.authorize_by_resource_type(ALICE, AclOperation.READ, ResourceType.TOPIC) is ALLOWED
    _, probe, decision = lines[-1]
    assert (probe.resource_pattern.name, probe.resource_reference_count) == ("hardcode", 0)
    assert not probe.log_if_denied
    assert decision.basis is Basis.DEFAULT_ALLOW
    lines.clear()
    authorizer.set_audit(None)
    authorizer.authorize(ALICE, asked)
    assert lines == []


class Mutator:
    """Records its calls."""

    def create_acls(self, context, acls):
        return ("create", context, acls)

    def delete_acls(self, context, filters):
        return ("delete", context, filters)


def test_changes_go_to_the_mutator():
    authorizer = ready(READ)
    with pytest.raises(ConfigError):
        authorizer.create_acls(ALICE, [READ])
    with pytest.raises(ConfigError):
        authorizer.delete_acls(ALICE, [AclBindingFilter()])
    authorizer.set_acl_mutator(Mutator())
    assert authorizer.create_acls(ALICE, [READ]) == ("create", ALICE, [READ])
    assert authorizer.delete_acls(ALICE, [AclBindingFilter()]) == ("delete", ALICE, [AclBindingFilter()])
    assert [rule.acl for rule in authorizer.acls(AclBindingFilter(principal="User:alice"))] == [READ]


def test_ranges_are_texts_unless_they_are_enabled():
    rules = [evolve(READ, host="10.0.0.0/8"), evolve(READ, resource_name="paid", host="10.0.0.0/8", permission_type=2)]
    off, on = ready(*rules), ready(*rules, cidr=True)
    assert off.authorize(ALICE, [action("orders")]) == [DENIED]
    assert on.authorize(ALICE, [action("orders")]) == [ALLOWED]
    far = RequestContext(principal="User:alice", host="11.0.0.1")
    assert on.authorize(far, [action("orders")]) == [DENIED]
    image = AclsImage.from_acls(with_ids([evolve(READ, resource_name="paid")]))
    added = image.apply([record_of(rule) for rule in with_ids(rules, first=9)])
    for then in (added, added.merged()):
        on.load(then)
        assert on.authorize(ALICE, [action("orders"), action("paid")]) == [ALLOWED, DENIED]
        assert on.authorize(far, [action("orders"), action("paid")]) == [DENIED, ALLOWED]
    on.load(added.apply([removal_of(rule) for rule in with_ids(rules, first=9)]))
    assert on.authorize(ALICE, [action("orders"), action("paid")]) == [DENIED, ALLOWED]


def test_documented_semantics_let_the_wildcard_match_names_that_begin_with_it():
    star = evolve(READ, resource_name="*")
    kafka, documented = ready(star), ready(star, documented=True)
    assert kafka.authorize(ALICE, [action("*foo"), action("*"), action("foo")]) == [DENIED, ALLOWED, ALLOWED]
    assert documented.authorize(ALICE, [action("*foo"), action("*"), action("foo")]) == [ALLOWED] * 3
    kafka.configure({"allow.everyone.if.no.acl.found": "true"})
    bob = RequestContext(principal="User:bob", host="10.0.0.1")
    assert kafka.authorize(bob, [action("*foo"), action("foo")]) == [ALLOWED, DENIED]


def test_a_load_during_configure_is_not_lost(monkeypatch):
    """configure() makes a new view of the current image and must not undo a concurrent load()."""
    new = AclsImage.from_acls(with_ids([READ, evolve(READ, resource_name="other")]))
    authorizer, real, entered, loaders = StandardAuthorizer(), StandardAuthorizer._new_view, [], []

    def slow(self, image, **readiness):
        if not entered:
            entered.append(True)
            loader = threading.Thread(target=self.load, args=(new,))
            loader.start()
            loaders.append(loader)
            loader.join(0.2)
        return real(self, image, **readiness)

    monkeypatch.setattr(StandardAuthorizer, "_new_view", slow)
    authorizer.configure({})
    loaders[0].join(30)
    assert authorizer.acl_count() == 2


def test_long_names_are_not_remembered():
    """Clients choose names: 65,536 memoised names of 32 kB would take 2 GB, with or without the cache."""
    context = RequestContext(principal="User:a", host="h")
    for cache in (True, False):
        authorizer = StandardAuthorizer(cache=cache)
        authorizer.complete_initial_load()
        tracemalloc.start()
        for n in range(500):
            authorizer.authorize(context, [action(f"{n:05}" + "y" * 30_000)])
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert kept < 2_000_000


def test_a_decision_is_of_one_configuration(monkeypatch):
    """A decision and its reason come from one view, even if super.users changes in between."""
    authorizer = StandardAuthorizer()
    authorizer.complete_initial_load()
    authorizer.configure({"super.users": "User:a"})
    real = View.result

    def result(view, *arguments, **options):
        found = real(view, *arguments, **options)
        authorizer.configure({})
        return found

    monkeypatch.setattr(View, "result", result)
    decision = authorizer.decide(RequestContext(principal="User:a", host="h"), action("t"))
    assert (decision.result.name, decision.basis.value) == ("ALLOWED", "SuperUser")
