"""AclAuthorizer vs. the real AclAuthorizer of Kafka 3.9, with the same ZooKeeper.

Each runs in a process of its own; a third process makes the changes, all on one machine with one clock. The two are
polled alternately, every 50 us, whether a change is visible. Loading is the whole of configure(): connecting, reading
all ACLs, and building the image.
"""

import multiprocessing
import time
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from kazoo.client import KazooClient

from aclog.authorizer.acl import ResourcePattern, StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.zookeeper.acl_store import AclStore
from aclog.zookeeper.authorizer import AclAuthorizer
from aclog.zookeeper.client import zk_settings
from aclog.zookeeper.connect import open_client
from aclog.zookeeper.znodes import AclEntry, encode_acls, entry_of, resource_path
from benchmarks.report import Row
from tests.support.kafka.jvm import PRODUCTION
from tests.support.zookeeper.real_acl_authorizer import Ask, RealAclAuthorizer
from tests.support.zookeeper.server import ZooKeeperServer, zookeeper_client

ACLS_PER_RESOURCE = 2
"""ACLs per resource."""
WINDOW = 500
LOADS = 3
SECONDS = 120.0
HOST = "10.0.0.1"
ADMIN = RequestContext(principal="User:admin", host=HOST)


def _acl(topic: str, principal: str) -> StandardAcl:
    return StandardAcl(
        resource_type=ResourceType.TOPIC,
        resource_name=topic,
        pattern_type=PatternType.LITERAL,
        principal=principal,
        host="*",
        operation=AclOperation.READ,
        permission_type=AclPermissionType.ALLOW,
    )


def _path(topic: str) -> str:
    return resource_path(ResourcePattern(resource_type=ResourceType.TOPIC, name=topic))


def _ask(topic: str, principal: str) -> Ask:
    return Ask(
        principal=principal, host=HOST, operation=AclOperation.READ, resource_type=ResourceType.TOPIC, name=topic
    )


def _wait(authorizer: AclAuthorizer, ask: Ask) -> float:
    """Poll until the request is allowed; return the time, in seconds since 1970."""
    context = RequestContext(principal=ask.principal, host=ask.host)
    pattern = ResourcePattern(resource_type=ask.resource_type, name=ask.name or "")
    actions = [Action(operation=ask.operation, resource_pattern=pattern, log_if_denied=False)]
    deadline = time.monotonic() + SECONDS
    while authorizer.authorize(context, actions) != [AuthorizationResult.ALLOWED]:
        if time.monotonic() > deadline:
            raise TimeoutError(str(ask))
        time.sleep(50e-6)
    return time.time()


def _serve(connect: str, pipe: Connection) -> None:
    """Run our authorizer in a process of its own: send the seconds of configure(), then a reply to each request."""
    authorizer = AclAuthorizer()
    begin = time.perf_counter()
    authorizer.configure({"zookeeper.connect": connect})
    pipe.send(time.perf_counter() - begin)
    for kind, argument in iter(pipe.recv, None):
        if kind == "wait":
            pipe.send(_wait(authorizer, argument))
        else:
            (result,) = authorizer.create_acls(ADMIN, [argument]).result(SECONDS)
            pipe.send(None if result.error is None else str(result.error))
    authorizer.close()


class _Ours:
    """Handle of the process that runs `_serve`."""

    def __init__(self, connect: str) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(connect, theirs))
        self._process.start()
        theirs.close()
        self.loaded = self._pipe.recv()

    def begin(self, kind: str, argument: Ask | StandardAcl) -> None:
        self._pipe.send((kind, argument))

    def reply(self) -> Any:
        return self._pipe.recv()

    def end(self) -> None:
        self._pipe.send(None)
        self._process.join()


def _fill(client: KazooClient, rules: int) -> None:
    """Write ACLs without change events, as in a store that has not changed for a long time."""
    waiting: deque[Any] = deque()
    for number in range(rules // ACLS_PER_RESOURCE):
        topic = f"team{number % 500}.topic{number}"
        entries = [entry_of(_acl(topic, f"User:u{number % 2000 + extra}")) for extra in range(ACLS_PER_RESOURCE)]
        waiting.append(client.create_async(_path(topic), encode_acls(entries)))
        if len(waiting) >= WINDOW:
            waiting.popleft().get()
    for each in waiting:
        each.get()


def _seen(store: AclStore, observer: _Ours | RealAclAuthorizer, topic: str, principal: str) -> float:
    """Return the ms from the start of a third process's change until the observer authorizes by it."""
    asked = _ask(topic, principal)
    if isinstance(observer, _Ours):
        observer.begin("wait", asked)
    else:
        named = {"principal": principal, "host": HOST, "operation": asked.operation, "type": asked.resource_type}
        observer.begin("await", **named, name=topic, allowed=True, millis=int(SECONDS * 1000))
    time.sleep(0.01)  # until it polls
    entry: AclEntry = entry_of(_acl(topic, principal))
    begin = time.time()
    store.update(_path(topic), lambda held: held | {entry})
    answer = observer.reply()
    end = answer if isinstance(answer, float) else answer["micros"] / 1e6
    return 1000 * (end - begin)


def _made(writer: _Ours | RealAclAuthorizer, topic: str, principal: str) -> float:
    """Return the ms of one createAcls call, after which the writer itself authorizes by the new ACL."""
    acl = _acl(topic, principal)
    begin = time.perf_counter()
    if isinstance(writer, _Ours):
        writer.begin("create", acl)
        error = writer.reply()
    else:
        (error,) = writer.create([acl])
    took = 1000 * (time.perf_counter() - begin)
    if error is not None:
        raise RuntimeError(error)
    return took


def _rows(what: str, ours: Sequence[float], theirs: Sequence[float], target: float) -> Iterator[Row]:
    yield Row(what=f"{what}, p50", ours=median(ours), theirs=median(theirs), unit="ms", target=target)
    slow = [quantiles(each, n=100, method="inclusive")[98] for each in (ours, theirs)]
    yield Row(what=f"{what}, p99", ours=slow[0], theirs=slow[1], unit="ms")


def run(scratch: Path, rules: int, changes: int) -> Iterator[Row]:
    """Yield rows for a store with `rules` ACLs, and `changes` changes observed and made by each side."""
    with (
        ZooKeeperServer(scratch / "zookeeper", heap="1g") as server,
        RealAclAuthorizer(options=PRODUCTION) as real,
        zookeeper_client(server.connect) as client,
    ):
        store = AclStore(client=open_client(zk_settings({"zookeeper.connect": server.connect})))
        store.create_paths()
        _fill(client, rules)
        theirs, mine = [], []
        for turn in range(LOADS):
            if turn:
                real.close()
                ours.end()  # noqa: F821  # assigned in the previous turn
            theirs.append(real.configure({"zookeeper.connect": server.connect}))
            ours = _Ours(server.connect)
            mine.append(ours.loaded)
        yield Row(what=f"{rules:,} ACLs loaded", ours=min(mine), theirs=min(theirs), unit="s", target=0.5)
        for number in range(20):  # warm
            for observer in (ours, real):
                _seen(store, observer, f"warm{number}", f"User:{type(observer).__name__}")
        seen: dict[Any, list[float]] = {ours: [], real: []}
        made: dict[Any, list[float]] = {ours: [], real: []}
        for number in range(changes):
            for observer in (ours, real):
                name = type(observer).__name__
                seen[observer].append(_seen(store, observer, f"seen{number}", f"User:{name}"))
                made[observer].append(_made(observer, f"made{number}", f"User:{name}"))
        yield from _rows("a change by another process until it is visible", seen[ours], seen[real], 1)
        yield from _rows("a change of its own until it is visible", made[ours], made[real], 1)
        ours.end()
        store.client.close()
