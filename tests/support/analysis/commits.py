"""Estates as teams keep them in a repository, and years of commits to them: apps that produce, consume and stream.

Everything follows from the seed. A style says which rules an app gets for what it does; a commit changes what apps do.
"""

from collections.abc import Callable, Iterator
from random import Random

from attrs import define, evolve, field, frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.index.acl_index import Change
from tests.support.analysis.policies import entry_of
from tests.support.builders.acls import record_of, removal_of


def _split(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_WORDS = _split(
    "orders payments billing ledger stock parcels routes pricing offers carts search ranking clicks sessions profiles "
    "consent fraud risk claims quotes invoices refunds loyalty coupons returns suppliers fleet meters sensors alerts"
)
_NOUNS = _split("created updated deleted events commands state snapshot audit dead-letter retries enriched raw")
_JOBS = _split("api worker loader enricher exporter indexer mailer sync gateway monitor")


@frozen(kw_only=True)
class Style:
    """Which rules an estate has for what apps do."""

    describes: bool
    """Whether DESCRIBE stands beside READ and WRITE, though they imply it."""
    group_prefixed: bool
    """Whether an app reads with any group that begins with its name."""
    idempotent: bool
    """Whether producers have IDEMPOTENT_WRITE on the cluster, as before Kafka 2.8."""
    owner: tuple[AclOperation, ...]
    """What a team may do on all that begins with its prefix; () if it has no such rule."""
    pii: bool
    """Whether commits deny everyone to read some topics, and lift that again."""
    transactional: bool


@frozen(kw_only=True)
class App:
    """A service account, and what it does; topics may be prefixes (`orders.*`)."""

    name: str
    team: str
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    is_stream: bool = False
    admin: bool = False


@frozen(kw_only=True)
class Commit:
    """What one commit changes."""

    kind: str
    added: tuple[StandardAcl, ...]
    removed: tuple[StandardAcl, ...]

    def changed(self) -> list[tuple[bool, StandardAcl]]:
        """The rules, with True if they were added."""
        return [*((True, rule) for rule in self.added), *((False, rule) for rule in self.removed)]

    def rules(self) -> list[StandardAcl]:
        """The rules that were added or removed."""
        return [*self.added, *self.removed]

    def records(self) -> list[Change]:
        """The commit as records of a log."""
        removals = [removal_of(entry_of(rule)) for rule in self.removed]
        return [*removals, *(record_of(entry_of(rule)) for rule in self.added)]


@define
class _Repository:
    style: Style
    random: Random
    apps: dict[str, App] = field(factory=dict)
    topics: dict[str, list[str]] = field(factory=dict)
    """By team."""
    denied: set[str] = field(factory=set)
    """Prefixes that nobody may read."""
    open_to_all: set[str] = field(factory=set)
    """Topics that everyone may read."""

    def rules(self) -> set[StandardAcl]:
        """All rules of the moment."""
        acls: set[StandardAcl] = set()
        for app in self.apps.values():
            acls |= set(_rules_of(app, self.style))
        for team in self.topics:
            for operation in self.style.owner:
                acls.add(_rule(ResourceType.TOPIC, f"{team}.*", f"User:{team}-owner", operation))
        for prefix in self.denied:
            acls.add(
                evolve(
                    _rule(ResourceType.TOPIC, prefix, "User:*", AclOperation.READ),
                    permission_type=AclPermissionType.DENY,
                )
            )
        for topic in self.open_to_all:
            acls.add(_rule(ResourceType.TOPIC, topic, "User:*", AclOperation.READ))
        return acls

    def any_topic(self) -> str:
        return self.random.choice([topic for topics in self.topics.values() for topic in topics])

    def any_app(self) -> App:
        return self.random.choice(list(self.apps.values()))

    def put(self, app: App) -> None:
        self.apps[app.name] = app

    def new_topic(self, team: str) -> str:
        """Add a topic of a team and return its name."""
        stem = f"{team}.{self.random.choice(_WORDS)}.{self.random.choice(_NOUNS)}"
        version = 1 + sum(topic.startswith(stem) for topic in self.topics[team])
        self.topics[team].append(f"{stem}.v{version}")
        return self.topics[team][-1]

    def new_app(self, team: str) -> App:
        """Add an app that does nothing yet."""
        stem = f"{team}-{self.random.choice(_JOBS)}"
        number = 1 + sum(name.startswith(stem) for name in self.apps)
        app = App(name=stem if number == 1 else f"{stem}-{number}", team=team)
        self.put(app)
        return app


def _rule(kind: ResourceType, name: str, principal: str, operation: AclOperation) -> StandardAcl:
    """A rule that allows; a name that ends with `*` is a prefix."""
    prefixed = name.endswith("*")
    return StandardAcl(
        resource_type=kind,
        resource_name=name[:-1] if prefixed else name,
        pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=AclPermissionType.ALLOW,
    )


def _rules_of(app: App, style: Style) -> Iterator[StandardAcl]:
    principal, describe = f"User:{app.name}", [AclOperation.DESCRIBE] if style.describes else []
    for topic in app.reads:
        for operation in (AclOperation.READ, *describe):
            yield _rule(ResourceType.TOPIC, topic, principal, operation)
    for topic in app.writes:
        for operation in (AclOperation.WRITE, *describe):
            yield _rule(ResourceType.TOPIC, topic, principal, operation)
    if app.reads:
        group = f"{app.name}*" if style.group_prefixed else app.name
        yield _rule(ResourceType.GROUP, group, principal, AclOperation.READ)
    if app.writes and style.idempotent:
        yield _rule(ResourceType.CLUSTER, "kafka-cluster", principal, AclOperation.IDEMPOTENT_WRITE)
    if app.is_stream:
        yield _rule(ResourceType.TOPIC, f"{app.name}*", principal, AclOperation.ALL)
        if style.transactional:
            yield _rule(ResourceType.TRANSACTIONAL_ID, f"{app.name}*", principal, AclOperation.WRITE)
            yield _rule(ResourceType.TRANSACTIONAL_ID, f"{app.name}*", principal, AclOperation.DESCRIBE)
    if app.admin:
        for operation in (AclOperation.CREATE, AclOperation.DELETE, AclOperation.ALTER, AclOperation.DESCRIBE_CONFIGS):
            yield _rule(ResourceType.TOPIC, f"{app.team}.*", principal, operation)


# --- what a commit can do --------------------------------------------------------------------------------------------


def _one_more_reader(at: _Repository) -> None:
    app = at.any_app()
    at.put(evolve(app, reads=app.reads | {at.any_topic()}))


def _one_more_writer(at: _Repository) -> None:
    app = at.any_app()
    topics = at.topics[app.team]
    at.put(evolve(app, writes=app.writes | {at.random.choice(topics)}))


def _a_topic_and_its_users(at: _Repository) -> None:
    topic = at.new_topic(at.random.choice(list(at.topics)))
    writer = at.any_app()
    at.put(evolve(writer, writes=writer.writes | {topic}))
    for _ in range(at.random.choice([0, 1, 1, 2, 2, 3, 5])):
        reader = at.any_app()
        at.put(evolve(reader, reads=reader.reads | {topic}))


def _an_app(at: _Repository) -> None:
    app, random = at.new_app(at.random.choice(list(at.topics))), at.random
    at.put(
        evolve(
            app,
            reads=frozenset(at.any_topic() for _ in range(random.choice([0, 1, 1, 2, 3, 6]))),
            writes=frozenset(random.choices(at.topics[app.team], k=random.choice([0, 1, 1, 2]))),
            is_stream=random.random() < 0.2,
        )
    )


def _apps_of_a_team(at: _Repository) -> None:
    for _ in range(at.random.randint(2, 5)):
        _an_app(at)


def _a_team(at: _Repository) -> None:
    names = [word for word in _WORDS if word not in at.topics]
    if names:
        team = at.random.choice(names)
        at.topics[team] = []
        for _ in range(at.random.randint(1, 4)):
            at.new_topic(team)
        app = at.new_app(team)
        at.put(evolve(app, writes=frozenset(at.topics[team])))


def _less(at: _Repository) -> None:
    app = at.any_app()
    if app.reads:
        at.put(evolve(app, reads=app.reads - {at.random.choice(sorted(app.reads))}))
    else:
        at.put(evolve(app, writes=app.writes - {at.random.choice(sorted(app.writes) or [""])}))


def _an_app_goes(at: _Repository) -> None:
    if len(at.apps) > 5:
        del at.apps[at.any_app().name]


def _an_account_is_renamed(at: _Repository) -> None:
    app = at.any_app()
    del at.apps[app.name]
    at.put(evolve(at.new_app(app.team), reads=app.reads, writes=app.writes, is_stream=app.is_stream))


def _a_topic_is_renamed(at: _Repository) -> None:
    old = at.any_topic()
    team = old.partition(".")[0]
    new = at.new_topic(team)
    at.topics[team].remove(old)
    for app in list(at.apps.values()):
        at.put(evolve(app, reads=_instead(app.reads, old, new), writes=_instead(app.writes, old, new)))


def _a_next_version(at: _Repository) -> None:
    old = at.any_topic()
    new = at.new_topic(old.partition(".")[0])
    for app in list(at.apps.values()):
        reads = app.reads | {new} if old in app.reads else app.reads
        at.put(evolve(app, reads=reads, writes=app.writes | {new} if old in app.writes else app.writes))


def _instead(names: frozenset[str], old: str, new: str) -> frozenset[str]:
    return names - {old} | {new} if old in names else names


def _a_prefix_for_topics(at: _Repository) -> None:
    """An app that reads some topics of a team reads all from now on."""
    app = at.any_app()
    if app.reads:
        team = at.random.choice(sorted(app.reads)).partition(".")[0]
        rest = {topic for topic in app.reads if not topic.startswith(f"{team}.")}
        at.put(evolve(app, reads=frozenset({*rest, f"{team}.*"})))


def _an_administrator(at: _Repository) -> None:
    app = at.any_app()
    at.put(evolve(app, admin=not app.admin))


def _a_stream(at: _Repository) -> None:
    app = at.any_app()
    at.put(evolve(app, is_stream=not app.is_stream))


def _personal_data(at: _Repository) -> None:
    if not at.style.pii:
        return _one_more_reader(at)
    topic = at.any_topic()
    prefix = ".".join(topic.split(".")[:2]) + ".*"
    at.denied ^= {prefix}
    return None


def _a_public_topic(at: _Repository) -> None:
    at.open_to_all ^= {at.any_topic()}


def _describes(at: _Repository) -> None:
    at.style = evolve(at.style, describes=not at.style.describes)


def _idempotence(at: _Repository) -> None:
    at.style = evolve(at.style, idempotent=not at.style.idempotent)


KINDS: dict[Callable[[_Repository], None], float] = {
    _one_more_reader: 30,
    _one_more_writer: 12,
    _a_topic_and_its_users: 14,
    _an_app: 12,
    _less: 8,
    _a_next_version: 4,
    _an_app_goes: 4,
    _an_account_is_renamed: 3,
    _a_topic_is_renamed: 3,
    _a_prefix_for_topics: 2,
    _apps_of_a_team: 2,
    _a_team: 2,
    _an_administrator: 2,
    _a_stream: 2,
    _personal_data: 1,
    _a_public_topic: 1,
    _describes: 0.1,
    _idempotence: 0.1,
}
"""What commits do, by how often."""


def commits(seed: int, count: int) -> Iterator[Commit]:
    """Yield that many commits that change a rule; the first one sets up the estate."""
    random = Random(seed)
    style = Style(
        describes=random.random() < 0.5,
        group_prefixed=random.random() < 0.5,
        idempotent=random.random() < 0.3,
        owner=random.choice([(), (AclOperation.ALL,), (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE)]),
        pii=random.random() < 0.4,
        transactional=random.random() < 0.5,
    )
    at = _Repository(style, random)
    for team in random.sample(_WORDS, random.randint(3, 8)):
        at.topics[team] = []
        for _ in range(random.randint(3, 10)):
            at.new_topic(team)
    for _ in range(random.randint(10, 40)):
        _an_app(at)
    rules = at.rules()
    yield Commit(kind="initial", added=tuple(sorted(rules, key=str)), removed=())
    done = 1
    while done < count:
        kinds = random.choices(list(KINDS), list(KINDS.values()), k=random.choice([1, 1, 1, 1, 1, 2, 2, 3]))
        for kind in kinds:
            kind(at)
        before, rules = rules, at.rules()
        if rules != before:
            done += 1
            names = "+".join(kind.__name__.strip("_") for kind in kinds)
            added, removed = (tuple(sorted(each, key=str)) for each in (rules - before, before - rules))
            yield Commit(kind=names, added=added, removed=removed)
