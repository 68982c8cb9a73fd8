"""What all worlds share: the rules that clients write, the committed states, the clients, and the checks."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress

from attrs import define, evolve, field, frozen

from aclog.authorizer.acl import AclBindingFilter, ResourcePattern, StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import Action, AuthorizationResult, AuthorizerNotReadyError, RequestContext
from aclog.client.connection import Connection, connect
from aclog.client.requests import create_acls, delete_acls, describe_acls
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.metalog.errors import MetadataError
from aclog.metalog.filelog.files import parse_checkpoint_name
from aclog.protocol.headers import RequestError
from aclog.server.node import Node
from aclog.snapshots.image import Image
from tests.simulation.history import Call, History, State
from tests.simulation.network import Network
from tests.simulation.processes import Host, Process
from tests.simulation.scheduler import Scheduler
from tests.simulation.tempo import Tempo

PATTERNS = (
    ("orders", PatternType.LITERAL),
    ("orders-eu", PatternType.LITERAL),
    ("orders", PatternType.PREFIXED),
    ("billing", PatternType.LITERAL),
    ("billing", PatternType.PREFIXED),
    ("*", PatternType.LITERAL),
)
PRINCIPALS = ("User:alice", "User:bob")
OPERATIONS = (AclOperation.READ, AclOperation.WRITE)
TOPICS = ("orders", "orders-eu", "orders-us", "billing", "billing-7", "other")
_PERMISSIONS = (AclPermissionType.ALLOW, AclPermissionType.DENY)

RULES: tuple[StandardAcl, ...] = tuple(
    StandardAcl(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=pattern_type,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=permission,
    )
    for name, pattern_type in PATTERNS
    for principal in PRINCIPALS
    for operation in OPERATIONS
    for permission in _PERMISSIONS
)
"""Every rule that a client may write; a rule is known by its number here."""
NUMBERS = {rule: number for number, rule in enumerate(RULES)}
REFUSED: State = frozenset({-1})
"""The answer of a request that got an error."""
UNSENT: State = frozenset({-2})
"""That of one for which there was no connection."""
_LATEST_SECONDS = 90.0
"""How long after it was sent a request may take effect whose outcome is unknown: no partition or pause is as long."""
_CALM_THINK_SECONDS = 900.0
"""The usual time between two requests of a client in a lull."""
_OF_PATTERN = len(PRINCIPALS) * len(OPERATIONS) * len(_PERMISSIONS)


def rules_of(pattern: int) -> range:
    """Return the numbers of a pattern's rules."""
    return range(pattern * _OF_PATTERN, (pattern + 1) * _OF_PATTERN)


def decision(state: State, principal: str, operation: int, topic: str) -> bool:
    """Return whether these rules allow an operation on a topic: the naive reference. DENY wins."""
    allowed = False
    for number in state:
        rule = RULES[number]
        name = rule.resource_name
        literal = rule.pattern_type == PatternType.LITERAL
        matches = name in ("*", topic) if literal else topic.startswith(name)
        if matches and rule.principal == principal and rule.operation == operation:
            if rule.permission_type == AclPermissionType.DENY:
                return False
            allowed = True
    return allowed


@frozen(kw_only=True)
class Committed:
    """A committed state: the epoch of its last record, and its rules."""

    epoch: int
    rules: State


@define(eq=False, kw_only=True)
class World:
    """The hosts of a cluster, what is known of its committed states, and the checks of every moment."""

    scheduler: Scheduler
    network: Network = field(init=False)
    tempo: Tempo = field(init=False)
    hosts: dict[str, Host] = field(factory=dict, init=False)
    committed: dict[int, Committed] = field(factory=dict, init=False)
    """By end offset: what any node has shown as committed."""
    newest: int = field(default=0, init=False)
    """The highest committed end offset that was shown, by any node at any time."""
    patterns: Sequence[int] = field(default=range(len(PATTERNS)), init=False)
    """Those that clients use."""
    histories: list[History] = field(factory=lambda: [History(latest=_LATEST_SECONDS) for _ in PATTERNS], init=False)
    done: dict[str, int] = field(factory=dict, init=False)
    """Successful requests of each client."""
    quiet: bool = field(default=False, init=False)
    """Whether the faults have ended."""
    closing: bool = field(default=False, init=False)
    """Whether clients send no more requests."""

    def __attrs_post_init__(self) -> None:
        self.network, self.tempo = Network(self.scheduler), Tempo(self.scheduler)

    def host(self, name: str) -> Host:
        """Add a host."""
        self.hosts[name] = host = Host(self.scheduler, self.network, name, len(self.hosts) + 1)
        return host

    # Checks

    def published(self, process: Process, image: Image) -> None:
        """A node shows an image: it is a committed one, the same as on every other node, and never an older one."""
        state = Committed(epoch=image.epoch, rules=frozenset(NUMBERS[each.acl] for each in image.acls))
        offset = image.end_offset
        known = self.committed.setdefault(offset, state)
        if known != state:
            self.scheduler.fail(
                f"{process} shows another state at offset {offset}: {self._difference(known, state)}; "
                "a committed record was lost, or an uncommitted one was visible"
            )
        before = getattr(process, "shown", -1)
        if offset < before:
            self.scheduler.fail(f"{process} went back from offset {before} to {offset}")
        process.shown = offset  # type: ignore[attr-defined]
        self.newest = max(self.newest, offset)

    @staticmethod
    def _difference(known: Committed, state: Committed) -> str:
        if known.rules == state.rules:
            return f"epoch {state.epoch}, expected {known.epoch}"
        missing, more = sorted(known.rules - state.rules), sorted(state.rules - known.rules)
        return f"without rules {missing}, with {more}"

    def check_checkpoint(self, path: str) -> None:
        """A controller names a checkpoint: it has no record beyond those that a node has shown as committed."""
        parsed = parse_checkpoint_name(path.rpartition("/")[2])
        if parsed is not None and parsed[0] > self.newest:
            self.scheduler.fail(f"{path}: a checkpoint beyond offset {self.newest}, up to which the log is committed")

    def check_readiness(self, process: Process, *, ready: bool) -> None:
        """A node is ready only with a state that is not older than the high-water mark that it has first received."""
        offset, mark = getattr(process, "shown", -1), getattr(process, "mark", 0)
        if ready and offset < mark:
            self.scheduler.fail(f"{process} is ready at offset {offset}, but it knew that {mark} was committed before")

    def check_decision(self, process: Process, node: Node) -> None:
        """A decision is that of one committed state: the one that the node shows."""
        random = self.scheduler.random
        principal, operation, topic = random.choice(PRINCIPALS), random.choice(OPERATIONS), random.choice(TOPICS)
        context = RequestContext(principal=principal, host="10.1.1.1")
        pattern = ResourcePattern(resource_type=ResourceType.TOPIC, name=topic, pattern_type=PatternType.LITERAL)
        authorizer = node._authorizer
        if authorizer is None:
            return
        image = node.publisher.current
        self.check_readiness(process, ready=node._replayed())
        try:
            (result,) = authorizer.authorize(context, [Action(operation=operation, resource_pattern=pattern)])
        except AuthorizerNotReadyError:
            if node.serving.is_set():
                self.scheduler.fail(f"{process} serves, and its authorizer is not ready")
            return
        known = self.committed.get(image.end_offset)
        if known is None:
            self.scheduler.fail(f"{process} decides on offset {image.end_offset}, which it has not shown")
            return
        expected = decision(known.rules, principal, operation, topic)
        self.scheduler.cover("decision")
        if (result is AuthorizationResult.ALLOWED) is not expected:
            self.scheduler.fail(
                f"{process} decides {result.name} for {principal} {operation} {topic} at offset {image.end_offset}; "
                f"the rules there say otherwise: {sorted(known.rules)}"
            )

    def check_histories(self) -> None:
        """The requests to each pattern are linearizable, and so is the final state."""
        for number, history in enumerate(self.histories):
            violation = history.first_violation()
            if history.was_split:
                self.scheduler.cover("history checked by ACL")
            if history.undecided:
                self.scheduler.cover("undecided history")
            if violation is not None:
                self.scheduler.fail(
                    f"pattern {PATTERNS[number]}: {violation.client} got {sorted(violation.answer or ())} for "
                    f"{violation.kind} of {sorted(violation.acls)} at {violation.begun:.3f}..{violation.ended:.3f}: "
                    "no order of the requests explains that"
                )

    def failure_is_final(self) -> bool:
        """Whether a request that got an error has no effect, also not later."""
        return True


@define(eq=False, kw_only=True)
class Client:
    """Creates, deletes and describes the rules of a pattern through one of several nodes, one request at a time."""

    world: World
    name: str
    servers: Sequence[HostPort]
    """Where it sends changes."""
    reads_at: HostPort | None = None
    """The only controller, if there is one: its answers are linearizable."""
    brokers: Sequence[HostPort] = ()
    """Where it reads what may be older than the newest state, but never older than what it has read there."""
    think: float = 2.0
    timeout: float = 8.0
    _connections: dict[HostPort, Connection] = field(factory=dict, init=False)
    _seen: dict[HostPort, int] = field(factory=dict, init=False)
    """The lowest offset that explains the last answer of each broker."""

    async def run(self, process: Process) -> None:
        """Send requests until the process ends."""
        scheduler = self.world.scheduler
        random = scheduler.random
        while not self.world.closing:
            await asyncio.sleep(
                self.world.tempo.pause(
                    lambda: random.expovariate(1 / self.think), lambda: random.expovariate(1 / _CALM_THINK_SECONDS)
                )
            )
            pattern = random.choice(self.world.patterns)
            if self.brokers and random.random() < 0.3:
                await self._read(random.choice(self.brokers), pattern)
            else:
                await self.request(process, random.choice(self.servers), pattern)

    async def request(self, process: Process, server: HostPort, pattern: int, kind: str | None = None) -> bool:
        """Send one request and record it; return whether it succeeded."""
        scheduler = self.world.scheduler
        random = scheduler.random
        kinds = ("create", "create", "create", "delete") + (("describe",) if server == self.reads_at else ())
        kind = kind or random.choice(kinds)
        chosen = random.sample(rules_of(pattern), random.choice((1, 1, 2)))
        principal = None if random.random() < 0.5 else random.choice(PRINCIPALS)
        if kind != "create":
            chosen = [each for each in rules_of(pattern) if principal in (None, RULES[each].principal)]
        call = Call(kind=kind, acls=frozenset(chosen), begun=scheduler.now, client=self.name)
        history = self.world.histories[pattern].calls
        history.append(call)
        at = len(history) - 1
        answer = await self._attempt(
            server, lambda connection: self._send(connection, kind, chosen, pattern, principal)
        )
        if answer is UNSENT or (answer is REFUSED and self.world.failure_is_final()):
            # It has no effect, now or after any recovery.
            history[at] = Call(kind="describe", acls=frozenset(), begun=call.begun, client=self.name)
            scheduler.cover("unsent request" if answer is UNSENT else "failed request")
        elif answer is not REFUSED and answer is not None:
            history[at] = evolve(call, ended=scheduler.now, answer=answer)
            self.world.done[self.name] = self.world.done.get(self.name, 0) + 1
        succeeded = answer is not None and answer is not REFUSED and answer is not UNSENT
        result = sorted(answer) if succeeded and answer is not None else "refused" if answer is REFUSED else "unknown"
        scheduler.note(process, kind, sorted(chosen), "at", server, "->", "unsent" if answer is UNSENT else result)
        return succeeded

    async def _send(
        self, connection: Connection, kind: str, chosen: list[int], pattern: int, principal: str | None
    ) -> State | None:
        if kind == "create":
            results = await create_acls(connection, [RULES[each] for each in chosen], self.timeout)
            return frozenset(chosen) if all(each.error is None for each in results) else REFUSED
        acl_filter = _filter(pattern, principal)
        if kind == "delete":
            (deletion,) = await delete_acls(connection, [acl_filter], self.timeout)
            if deletion.error is not None:
                return REFUSED
            return _numbers(each.acl for each in deletion.deleted)
        return _numbers(await describe_acls(connection, acl_filter, self.timeout))

    async def _read(self, broker: HostPort, pattern: int) -> None:
        """Read from a broker, and find the committed state that it has answered from."""
        world = self.world
        answer = await self._attempt(
            broker, lambda connection: self._send(connection, "describe", list(rules_of(pattern)), pattern, None)
        )
        if answer is None or answer is REFUSED or answer is UNSENT:
            return
        least = self._seen.get(broker, 0)
        all_rules = frozenset(rules_of(pattern))
        offset = min(
            (at for at, state in world.committed.items() if at >= least and state.rules & all_rules == answer),
            default=None,
        )
        world.scheduler.cover("read of a broker")
        if offset is None:
            world.scheduler.fail(
                f"{self.name} read {sorted(answer)} of pattern {pattern} at {broker}: no committed state since offset "
                f"{least}, which it has seen there, has these"
            )
            return
        self._seen[broker] = offset

    async def _attempt(self, server: HostPort, work: Callable[[Connection], Awaitable[State | None]]) -> State | None:
        """Return the answer; REFUSED if that is an error, UNSENT; None if there is none: the outcome is unknown."""
        scheduler = self.world.scheduler
        connection = self._connections.get(server)
        try:
            if connection is None or connection.failure is not None:
                try:
                    connection = await connect(server, ClientSecurity(), client_id=self.name, timeout=self.timeout)
                except MetadataError as error:
                    scheduler.note(self.name, "at", server, repr(error))
                    return UNSENT
                self._connections[server] = connection
            return await work(connection)
        except RequestError as error:
            scheduler.note(self.name, "at", server, repr(error))
            return REFUSED
        except MetadataError as error:
            scheduler.note(self.name, "at", server, repr(error))
            if connection is not None and connection.failure is not None:
                self._connections.pop(server, None)
                with suppress(MetadataError, OSError):
                    await connection.close()
            return None


def _filter(pattern: int, principal: str | None) -> AclBindingFilter:
    name, pattern_type = PATTERNS[pattern]
    return AclBindingFilter(
        resource_type=ResourceType.TOPIC, resource_name=name, pattern_type=pattern_type, principal=principal
    )


def _numbers(acls: Iterable[StandardAcl]) -> State:
    return frozenset(NUMBERS[each] for each in acls)
