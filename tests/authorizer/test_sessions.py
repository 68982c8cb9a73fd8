"""Sessions: every decision, count and audit line is that of `authorize`, natively and in Python, under change."""

import gc
import weakref
from random import Random
from types import SimpleNamespace

import pytest

from aclog.authorizer.acl import ResourcePattern, record_of
from aclog.authorizer.audit import ALLOWED_LOGGED, ANY_ALLOWED, DENIED_LOGGED, EVERY_OUTCOME
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.interface import (
    Action,
    AuthorizationResult,
    Authorizer,
    AuthorizerNotReadyError,
    InvalidRequestError,
    RequestContext,
)
from aclog.authorizer.standard import StandardAuthorizer, new_counts
from aclog.protocol.session import SecurityProtocol, Session
from aclog.server.apis.acls import AuthHelper
from tests.support.analysis.policies import distinct, entry_of, image_of, random_rule
from tests.support.builders.acls import acl
from tests.support.models.native_paths import PATHS, through


class Hook:
    """Notes what it wants to hear."""

    def __init__(self, wanted):
        self.wanted, self.lines = wanted, []

    def __call__(self, context, action, decision):
        self.lines.append((context, action, decision))


class Tally:
    """An observer of nothing."""

    def begin(self, _image):
        return self


def authorizer(path, image, *, allow_everyone=False, cidr=False, hook=None):
    made = StandardAuthorizer(cidr=cidr)
    made.configure({"super.users": "User:root", "allow.everyone.if.no.acl.found": str(allow_everyone).lower()})
    made.set_audit(hook)
    made.load(through(path, image))
    made.complete_initial_load()
    return made


def whole(authorizer, context, request):
    operation, resource_type, name, flags = request
    pattern = ResourcePattern(resource_type=resource_type, name=name)
    (result,) = authorizer.authorize(context, [Action(operation=operation, resource_pattern=pattern, **flags)])
    return result is AuthorizationResult.ALLOWED


def a_connection():
    return Session(
        listener_name="L", security_protocol=SecurityProtocol.PLAINTEXT, host="10.0.0.1", address=b"\x0a\0\0\1"
    )


def action(name):
    pattern = ResourcePattern(resource_type=ResourceType.TOPIC, name=name)
    return Action(operation=AclOperation.READ, resource_pattern=pattern)


def outcome(call):
    try:
        return call()
    except (InvalidRequestError, AuthorizerNotReadyError) as error:
        return type(error), str(error)


NAMES = ("a", "ab", "b.x", "*", "*a", "", "é", "kafka-cluster", "\ud800")
CLIENTS = [
    RequestContext(principal=principal, host=host)
    for principal in ("User:a", "User:b", "Group:g", "User:root", "User:*", "nocolon")
    for host in ("10.0.0.1", "10.0.0.9", "0:0:0:0:0:0:0:1")
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("seed", range(6))
def test_a_session_decides_counts_and_audits_as_authorize(path, seed):
    random, cidr = Random(seed), seed % 2 == 0
    image = image_of(distinct([random_rule(random, odd=(0, 10)[seed % 2], cidr=cidr) for _ in range(60)]))
    hooks = [Hook(random.choice((0, ALLOWED_LOGGED, DENIED_LOGGED, ANY_ALLOWED, EVERY_OUTCOME))) for _ in range(2)]
    for hook in hooks:
        hook.wanted = hooks[0].wanted
    settings = {"allow_everyone": seed % 3 == 0, "cidr": cidr}
    ours, theirs = (authorizer(path, image, hook=hook, **settings) for hook in hooks)
    counts, left = new_counts(), []
    sessions = {context: ours.session(context.principal, context.host, counts) for context in CLIENTS}

    def decided(context, request):
        known = sessions[context].decide(*request[:3], **request[3])
        if known is None:
            left.append(request)
            return whole(ours, context, request)
        return known

    asked = 0
    for turn in range(3):
        for _ in range(300):
            context = random.choice(CLIENTS)
            operation, kind = random.choice([*AclOperation, 99, -1]), random.choice(list(ResourceType))
            flags = {name: random.random() < 0.7 for name in ("log_if_allowed", "log_if_denied")}
            request = operation, kind, random.choice(NAMES), flags
            asked += 1
            expected = outcome(lambda c=context, r=request: whole(theirs, c, r))
            assert outcome(lambda c=context, r=request: decided(c, r)) == expected
        more = entry_of(random_rule(random, odd=0))
        if turn == 0 and image.find(more.acl) is None:
            image = image.apply([record_of(more.acl, more.id)])
            for each in (ours, theirs):
                each.load(through(path, image))
        elif turn == 1:
            hooks[0].wanted = hooks[1].wanted = (0, DENIED_LOGGED)[seed % 2]
    assert hooks[0].lines == hooks[1].lines
    assert sum(counts) + len(left) == asked
    assert seed % 2 or sum(counts) > 0


@pytest.mark.parametrize("path", PATHS)
def test_before_the_log_is_read_everything_is_left_to_authorize(path):
    made = StandardAuthorizer()
    made.load(through(path, image_of([random_rule(Random(1), odd=0)])))
    session = made.session("User:a", "10.0.0.1")
    assert session.decide(AclOperation.READ, ResourceType.TOPIC, "t") is None
    made.complete_initial_load()
    assert session.decide(AclOperation.READ, ResourceType.TOPIC, "no-rule-is-about-this") is False


@pytest.mark.parametrize("path", PATHS)
def test_a_pinned_authorizer_is_as_ready_as_it_was(path):
    made = StandardAuthorizer()
    made.load(through(path, image_of([random_rule(Random(1), odd=0)])))
    before, client = made.pinned(), ("User:a", "10.0.0.1")
    sessions = [before.session(*client), made.session(*client)]
    request = AclOperation.READ, ResourceType.TOPIC, "no-rule-is-about-this"
    assert [each.decide(*request) for each in sessions] == [None, None]
    made.complete_initial_load()
    sessions += [before.session(*client), made.pinned().session(*client)]
    assert [each.decide(*request) for each in sessions] == [None, False, None, False]
    assert (before.ready, made.ready) == (False, True)
    with pytest.raises(AuthorizerNotReadyError):
        before.decide(RequestContext(principal="User:a", host="10.0.0.1"), action(request[2]))


class Completing:
    """A context during whose reading the log is replayed: what a call began with must still decide all of it."""

    host = "10.0.0.1"

    def __init__(self, made, image):
        self.made, self.image = made, image

    @property
    def principal(self):
        self.made.load(self.image)
        self.made.complete_initial_load()
        return "User:a"


def test_a_call_that_began_before_readiness_decides_nothing_by_the_image_of_then():
    made = StandardAuthorizer()
    image = image_of([random_rule(Random(1), odd=0)])
    with pytest.raises(AuthorizerNotReadyError):
        made.authorize(Completing(made, image), [action("t")])
    assert made.ready


@pytest.mark.parametrize("path", PATHS)
def test_what_an_observer_is_to_see_is_left_to_authorize(path):
    made = authorizer(path, image_of([random_rule(Random(1), odd=0)]))
    session = made.session("User:a", "10.0.0.1")
    assert session.decide(AclOperation.READ, ResourceType.TOPIC, "no-rule-is-about-this") is False
    made.set_observer(Tally())
    assert session.decide(AclOperation.READ, ResourceType.TOPIC, "no-rule-is-about-this") is None


class Other(StandardAuthorizer):
    session = Authorizer.session


def test_another_authorizer_decides_everything_itself():
    assert Other().session("User:a", "10.0.0.1").decide(AclOperation.READ, ResourceType.TOPIC, "t") is None


class Refusing(StandardAuthorizer):
    def authorize(self, _context, actions):
        return [AuthorizationResult.DENIED for _ in actions]


def test_a_subclass_with_an_authorize_of_its_own_is_not_bypassed():
    made = Refusing()
    made.load(image_of([]))
    made.complete_initial_load()
    assert made.session("User:a", "10.0.0.1").decide(AclOperation.READ, ResourceType.TOPIC, "t") is None


@pytest.mark.parametrize("path", PATHS)
def test_a_connection_that_is_idle_keeps_no_image(path):
    made, counts = authorizer(path, image_of([random_rule(Random(1), odd=0)])), new_counts()
    sessions = [made.session(principal, "10.0.0.1", counts) for principal in ("User:a", "User:root")]
    request = AclOperation.READ, ResourceType.TOPIC, "no-rule-is-about-this"
    assert [each.decide(*request) for each in sessions] == [False, True]
    before = weakref.ref(made._view.image)
    gc.disable()  # what is in no cycle is gone at once
    try:
        made.load(through(path, image_of([])))
        assert before() is None
    finally:
        gc.enable()
    counts.append(0)  # nor does the core's part of a session, which exports the counts
    counts.pop()
    assert [each.decide(*request) for each in sessions] == [False, True]
    assert counts.tolist() == [2, 2]


def test_a_connection_that_is_closed_leaves_nothing_at_the_image():
    made = authorizer("python", image_of([]))
    for _ in range(3):
        made.session("User:a", "10.0.0.1").decide(AclOperation.READ, ResourceType.TOPIC, "t")
    assert not made._view.handles


def test_a_pinned_authorizer_leaves_nothing_at_the_connection():
    made, connection = authorizer("python", image_of([])), a_connection()
    request, helper = SimpleNamespace(session=connection, context=None), AuthHelper(made)
    handle = connection.decisions_by(made)
    pinned = helper.pinned(request)
    assert not pinned.on_topic(request, AclOperation.READ, "t")
    made.load(image_of([acl("t", "User:*")]))
    assert handle.decide(AclOperation.READ, ResourceType.TOPIC, "t")
    assert not pinned.on_topic(request, AclOperation.READ, "t")
    assert connection.decisions_by(made) is handle
    reference = weakref.ref(pinned.authorizer)
    del pinned
    assert reference() is None


def test_a_connection_has_one_handle_for_each_authorizer():
    one, other = authorizer("python", image_of([])), authorizer("python", image_of([]))
    connection = a_connection()
    first = connection.decisions_by(one)
    assert connection.decisions_by(one) is first
    assert connection.decisions_by(other) is not first
    assert first.decide(AclOperation.READ, ResourceType.TOPIC, "t") is False
