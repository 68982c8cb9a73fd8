"""The index that a node keeps: the same as a brute force over its audit lines, and nothing that fails reaches it."""

import time
from collections import Counter
from functools import cache
from random import Random
from uuid import UUID

import pytest
from prometheus_client import CollectorRegistry

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.audit import EITHER_LOGGED
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import Action, AuthorizerNotReadyError, RequestContext
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import StandardAuthorizer
from aclog.server.usage_index import AccessRecorder, ImageAccesses, IntervalJudge, UsageKeeper, hourly_coverage
from aclog.usage.index.usage_index import Run, UsageIndex
from aclog.usage.unused import ANSWERS, Answer, StateRules, Unjudged
from aclog.usage.unused_report import UnusedQuestion, UnusedReport
from aclog.usage.window import DAY, EARLIEST, LATEST, LOST_DECISIONS
from tests.support.builders import acls
from tests.support.models.engine_answers import decided, engine
from tests.support.models.estates import Request
from tests.support.processes.waiting import wait_until
from tests.usage.decisions.test_necessary_acls import matches

USERS = ["User:a", "User:b", "User:c"]
NAMES = ["orders", "orders.eu", "pay", "*"]
OPERATIONS = [AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE]
SETTINGS = Settings(super_users=frozenset({"User:root"}))
ALWAYS = 0, 60_000
"""Days since 1970."""


class Node:
    """An authorizer whose index is kept, and whose audit lines are remembered."""

    wanted = EITHER_LOGGED

    def __init__(self, directory, *, settings=SETTINGS, ready=True, interval=0.02, most_bytes=64 << 20, start=True):
        self.settings, self.image, self.lines = settings, AclsImage.empty(), []
        self.authorizer = StandardAuthorizer()
        self.authorizer.configure(
            {
                "super.users": ";".join(settings.super_users),
                "allow.everyone.if.no.acl.found": str(settings.allow_everyone).lower(),
            }
        )
        self.recorder = AccessRecorder(lambda: self.authorizer.ready, most_bytes=most_bytes)
        self.authorizer.set_audit(self)
        self.authorizer.set_observer(self.recorder)
        self.registry = CollectorRegistry()
        self.keeper = UsageKeeper(
            directory=directory,
            broker="7",
            cluster_id="c2FtZS1zY3JpcHQtMDAwMQ",
            settings=settings,
            recorder=self.recorder,
            registry=self.registry,
            brokers=lambda: self.brokers,
            interval=interval,
        )
        self.brokers = ["7"]
        if ready:
            self.authorizer.complete_initial_load()
        if start:
            self.keeper.start()

    def __call__(self, context, action, _decision):
        self.lines.append((context.principal, context.host, action.operation, action.resource_pattern.name, self.image))

    def load(self, image):
        self.image = image
        self.authorizer.load(image)

    def asks(self, principal, operation, *names, host="10.0.0.1", logged=True):
        actions = [
            Action(
                operation=operation,
                resource_pattern=ResourcePattern(resource_type=ResourceType.TOPIC, name=name),
                log_if_allowed=logged,
                log_if_denied=logged,
            )
            for name in names
        ]
        return self.authorizer.authorize(RequestContext(principal=principal, host=host), actions)

    def metric(self, name, **labels):
        return self.registry.get_sample_value(name, labels) or 0

    def count(self, kind):
        return self.metric("aclog_usage_index_accesses_total", kind=kind)

    def wait_for_writes(self):
        """Until all that was asked so far is in the index."""
        begun = time.time()
        wait_until(lambda: time.time() - self.metric("aclog_usage_index_age_seconds") > begun)


def random_rule(random):
    return acls.acl(
        random.choice(NAMES),
        random.choice([*USERS, "User:*"]),
        operation=random.choice([AclOperation.READ, AclOperation.WRITE, AclOperation.ALL]),
        pattern_type=random.choice([PatternType.LITERAL, PatternType.PREFIXED]),
        permission_type=AclPermissionType.DENY if random.random() < 0.25 else AclPermissionType.ALLOW,
    )


def changed(image, random, number):
    """Another image: one rule is added or removed, now and then all are merged into a new base."""
    present = list(image)
    if random.random() < 0.1:
        return image.merged()
    rule = random_rule(random)
    if len(present) < 12 and image.find(rule) is None:
        return image.apply([acls.acl_record(UUID(int=(1 << 100) + number), rule)])
    return image.apply([acls.removal_of(random.choice(present))]) if present else image


def by_hand(node):
    """How often each rule (by id) was matched and needed, by asking the engine without it for each audit line."""
    matched, needed = Counter(), Counter()
    for principal, host, operation, name, image in node.lines:
        if principal in node.settings.super_users:
            continue
        request = Request(
            principal=principal, host=host, operation=operation, resource_type=ResourceType.TOPIC, resource_name=name
        )
        rules = frozenset(rule for rule in image)
        for rule in rules:
            if not matched_by(rule, request, node.settings) and not node.settings.allow_everyone:
                continue  # then it does not matter
            matched[rule.id] += matched_by(rule, request, node.settings)
            needed[rule.id] += (
                answer(rules - {rule}, request, node.settings)[0] != answer(rules, request, node.settings)[0]
            )
    return +matched, +needed


matched_by = cache(matches)


@cache
def answer(rules, request, settings):
    operation = AclOperation(request.operation).name
    return decided(
        of_rules(rules, settings), request.principal, request.host, operation, "TOPIC", request.resource_name
    )


@cache
def of_rules(rules, settings):
    return engine(AclsImage.from_acls(rules), settings)


def indexed(directory):
    with UsageIndex.open(directory) as index:
        used, lives = index.used(*ALWAYS), index.lives()
        ids = [UUID(bytes=lives.keys[number].tobytes()) for number in used.numbers.tolist()]
        counts = (dict(zip(ids, column.tolist(), strict=True)) for column in (used.matched, used.needed))
        return tuple(Counter({key: count for key, count in each.items() if count}) for each in counts)


@pytest.mark.parametrize(("seed", "allow_everyone"), [(1, False), (2, True)])
def test_the_index_is_what_a_brute_force_over_the_audit_lines_says(tmp_path, seed, allow_everyone):
    random = Random(seed)
    node = Node(tmp_path / "index", settings=Settings(super_users=SETTINGS.super_users, allow_everyone=allow_everyone))
    for number in range(80):
        if random.random() < 0.4:
            node.load(changed(node.image, random, number))
        names = random.sample(NAMES[:3], random.randint(1, 2))
        node.asks(random.choice([*USERS, "User:root"]), random.choice(OPERATIONS), *names)
        if number % 25 == 0:
            node.wait_for_writes()
    node.keeper.close()
    assert indexed(tmp_path / "index") == by_hand(node)
    assert node.count("judged") == sum(line[0] != "User:root" for line in node.lines)
    assert node.count("super_user") == sum(line[0] == "User:root" for line in node.lines) > 0


def test_checks_that_ask_for_no_line_are_no_use(tmp_path):
    node = Node(tmp_path / "index")
    node.load(node.image.apply([acls.acl_record(UUID(int=5), acls.acl("pay", "User:a"))]))
    node.asks("User:a", AclOperation.READ, "pay", logged=False)
    node.wait_for_writes()  # the first one imports what it needs, which may take longer than a node waits at its end
    node.keeper.close()
    assert indexed(tmp_path / "index") == ({}, {})
    with UsageIndex.open(tmp_path / "index") as index:
        assert len(index.lives().keys) == 1


def test_what_no_acl_decides_is_told_apart(tmp_path):
    node = Node(tmp_path / "index", ready=False)
    with pytest.raises(AuthorizerNotReadyError):
        node.asks("User:a", AclOperation.READ, "pay", "orders")
    node.asks("User:root", AclOperation.READ, "pay")
    assert not (tmp_path / "index").exists()
    node.authorizer.complete_initial_load()
    wait_until(lambda: node.count("not_ready"))
    node.asks("User:root", AclOperation.READ, "pay")
    node.asks("User:a", AclOperation.READ, "pay")
    node.keeper.close()
    kinds = ("judged", "super_user", "early", "not_ready", "dropped")
    assert [node.count(kind) for kind in kinds] == [1, 1, 1, 2, 0]


def test_rules_of_an_image_that_is_not_whole_end_no_life(tmp_path):
    """At a restart a node replays its log: meanwhile rules that it has not come to yet are not gone."""
    image = AclsImage.empty().apply([acls.acl_record(UUID(int=n), acls.acl(f"t{n}", "User:a")) for n in (5, 6)])
    for _ in range(2):
        node = Node(tmp_path / "index", ready=False)
        for whole in (False, True):
            node.load(image.apply([acls.removal_of(next(iter(image)))]) if not whole else image)
            node.asks("User:root", AclOperation.READ, "t5")
        node.authorizer.complete_initial_load()
        node.asks("User:a", AclOperation.READ, "t5", "t6")
        node.keeper.close()
    with UsageIndex.open(tmp_path / "index") as index:
        assert index.lives().is_open.tolist() == [True, True]
    assert indexed(tmp_path / "index") == ({UUID(int=5): 2, UUID(int=6): 2},) * 2


def test_a_request_goes_on_with_the_image_that_it_began_with(tmp_path):
    node = Node(tmp_path / "index")
    rule = acls.acl_record(UUID(int=5), acls.acl("pay", "User:a"))
    node.load(node.image.apply([rule]))
    pinned = node.authorizer.pinned()
    node.load(AclsImage.empty())
    node.wait_for_writes()
    action = Action(
        operation=AclOperation.READ, resource_pattern=ResourcePattern(resource_type=ResourceType.TOPIC, name="pay")
    )
    pinned.authorize(RequestContext(principal="User:a", host="10.0.0.1"), [action])
    node.asks("User:a", AclOperation.READ, "pay")
    node.keeper.close()
    assert indexed(tmp_path / "index") == ({UUID(int=5): 1}, {UUID(int=5): 1})


def test_an_index_that_cannot_be_written_stops_nothing_and_loses_nothing(tmp_path, caplog):
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "somebody's").touch()
    node = Node(tmp_path / "index")
    node.load(node.image.apply([acls.acl_record(UUID(int=5), acls.acl("pay", "User:a"))]))
    for _ in range(3):
        failures = node.metric("aclog_usage_index_failures_total")
        node.asks("User:a", AclOperation.READ, "pay")
        wait_until(lambda before=failures: node.metric("aclog_usage_index_failures_total") > before)
    assert sum("expected an index, or a new or empty directory" in line for line in caplog.messages) == 1
    (tmp_path / "index" / "somebody's").unlink()
    node.wait_for_writes()
    node.keeper.close()
    assert indexed(tmp_path / "index") == ({UUID(int=5): 3}, {UUID(int=5): 3})


def test_the_index_of_another_cluster_is_left_alone(tmp_path, caplog):
    node = Node(tmp_path / "index")
    node.wait_for_writes()
    node.keeper.close()
    other = Node(tmp_path / "index", start=False)
    other.keeper.cluster_id = "YW5vdGhlci1jbHVzdGVyMg"
    other.keeper.start()
    wait_until(lambda: other.metric("aclog_usage_index_failures_total"))
    other.keeper.close()
    assert "an index of cluster c2FtZS1zY3JpcHQtMDAwMQ" in caplog.text
    with UsageIndex.open(tmp_path / "index") as index:
        assert index.cluster_id == node.keeper.cluster_id


def test_without_memory_accesses_are_lost_and_not_covered(tmp_path, caplog):
    node = Node(tmp_path / "index", most_bytes=5_000, interval=3600, start=False)
    node.load(node.image.apply([acls.acl_record(UUID(int=5), acls.acl("pay", "User:a"))]))
    node.asks("User:a", AclOperation.READ, *(f"name {n}" for n in range(100)))
    node.asks("User:b", AclOperation.READ, "pay")
    node.keeper.start()
    wait_until(lambda: node.count("judged"))
    node.keeper.close()
    assert node.count("judged") + node.count("dropped") == 101
    assert node.count("dropped") > 80
    assert "no memory for" in caplog.text
    with UsageIndex.open(tmp_path / "index") as index:
        assert index.runs()[0].accesses == node.count("judged")
        assert sum(len(index.coverage().of_broker(each)) for each in index.coverage().brokers) <= 1


def test_a_rule_that_a_lost_decision_may_have_used_is_not_judged(tmp_path):
    image = AclsImage.empty().apply([acls.acl_record(UUID(int=5), acls.acl("pay", "User:a"))])
    now = time.time_ns() // 1000
    rules = IntervalJudge(SETTINGS).judged([ImageAccesses(1, now - 3 * DAY, image, [])])[0]
    with UsageIndex.create(tmp_path / "index") as index:
        index.take(
            Run(rules=rules, source="node 7", settings={}, at=0, coverage=hourly_coverage("7", now - 3 * DAY, now, 0)),
            [],
        )
    node = Node(tmp_path / "index", most_bytes=5_000, interval=3600, start=False)
    node.load(image)
    node.asks("User:b", AclOperation.READ, *(f"name {n}" for n in range(100)))
    node.asks("User:a", AclOperation.READ, "pay")  # no memory is left for it
    node.keeper.start()
    wait_until(lambda: node.count("dropped"))
    node.keeper.close()
    with UsageIndex.open(tmp_path / "index") as index:
        unread = index.unread(now, LATEST)
        report = UnusedReport.of(index, StateRules.of(image), UnusedQuestion(days=1, gap=DAY)).unused
    assert unread.by_reason() == {LOST_DECISIONS: node.count("dropped")}
    assert not unread.between(0, now - DAY)
    assert ANSWERS[report.judgement.answer[0]] is Answer.NOT_JUDGED
    assert report.judgement.unjudged.tolist() == [Unjudged.UNREAD]


def test_decisions_that_cannot_be_judged_are_recorded_by_the_next_run(tmp_path, monkeypatch):
    node, judged = Node(tmp_path / "index", start=False), IntervalJudge.judged
    node.load(node.image.apply([acls.acl_record(UUID(int=5), acls.acl("pay", "User:a"))]))
    node.asks("User:a", AclOperation.READ, "pay")

    def failing(judge, images):
        monkeypatch.setattr(IntervalJudge, "judged", judged)
        raise MemoryError

    monkeypatch.setattr(IntervalJudge, "judged", failing)
    node.keeper.start()
    wait_until(lambda: node.metric("aclog_usage_index_failures_total"))
    node.wait_for_writes()
    node.keeper.close()
    with UsageIndex.open(tmp_path / "index") as index:
        assert index.unread(EARLIEST, LATEST).by_reason() == {LOST_DECISIONS: 1}


def test_other_brokers_are_expected(tmp_path):
    node = Node(tmp_path / "index")
    node.brokers = ["7", "8"]
    node.wait_for_writes()
    node.wait_for_writes()
    node.keeper.close()
    with UsageIndex.open(tmp_path / "index") as index:
        coverage = index.coverage()
    assert coverage.brokers == ("7", "8")
    eight = coverage.of_broker("8")
    assert (eight.rows.tolist(), eight.first.tolist()) == ([0], eight.last.tolist())
    seven = coverage.of_broker("7")
    assert seven.last[-1] > seven.first[0]
