"""A session with ZooKeeper: kazoo's client with our values, our errors, and an end to every wait."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from attrs import define, field
from kazoo.client import KazooClient, KazooState, TransactionRequest
from kazoo.exceptions import (
    BadArgumentsError,
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    UnimplementedError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.interfaces import IAsyncResult
from kazoo.protocol.states import Callback, ZnodeStat
from kazoo.security import CREATOR_ALL_ACL, READ_ACL_UNSAFE

from aclog.metalog.errors import ConfigError
from aclog.zkstore.client.connect import ZkSettings
from aclog.zkstore.client.multi_read import MultiRead, portions
from aclog.zkstore.client.nodes import Children, CreateNode, DeleteNode, Node, Operation, SetNode
from aclog.zkstore.errors import ConflictError, DisconnectedError, StoreError
from aclog.zkstore.sensitive import is_sensitive

_log = logging.getLogger(__name__)

_CONFLICTS = (BadVersionError, NoNodeError, NodeExistsError, NotEmptyError)
_DISCONNECTED = (ConnectionClosedError, ConnectionLoss, KazooTimeoutError, SessionExpiredError)
_NOT_THIS_ONE = (RolledBackError, RuntimeInconsistency)
"""What an operation of a transaction says that fell with another one."""


@define(eq=False)
class ZkClient:
    """A connected client; any thread may call it, its watches and listeners are called in kazoo's threads.

    Whoever opened it closes it. While the connection is away, calls fail at once or when it breaks; kazoo connects
    again by itself, with a new session if the old one has expired.
    """

    settings: ZkSettings
    _kazoo: KazooClient
    _reads_many: bool = True
    """Whether the server is thought to know multiRead."""
    _timeout: float = field(init=False)
    """Longer than kazoo needs to find that a server is silent."""

    def __attrs_post_init__(self) -> None:
        self._timeout = self.settings.session_timeout + self.settings.connection_timeout

    @property
    def connected(self) -> bool:
        """Whether there is a session and a connection now."""
        return bool(self._kazoo.connected)

    @property
    def session(self) -> tuple[int, bytes]:
        """The session's id and password."""
        found: tuple[int, bytes] = self._kazoo.client_id
        return found

    def listen(self, changed: Callable[[bool], None]) -> None:
        """Call with True on each connection and with False on each loss of one; `changed` must not block."""

        def listener(state: str) -> None:
            changed(state == KazooState.CONNECTED)

        self._kazoo.add_listener(listener)

    def get(self, path: str) -> Node | None:
        """A node; None where there is none. Raises StoreError."""
        self._check_connected()
        return self._node(path, self._kazoo.get_async(path))[1]

    def get_many(
        self, paths: Iterable[str], watch: Callable[[str], None] | None = None
    ) -> Iterator[tuple[str, Node | None]]:
        """Nodes in the order of their paths, several on the way at a time.

        `watch` is called once with the path of each node that is there: when it is written or goes, or the connection
        is lost. Raises StoreError.
        """
        waiting: deque[tuple[list[str], list[IAsyncResult]]] = deque()
        for portion in portions(paths):
            self._check_connected()
            waiting.append((portion, self._asked(portion, watch)))
            if len(waiting) >= self.settings.in_flight:
                yield from self._nodes(*waiting.popleft())
        while waiting:
            yield from self._nodes(*waiting.popleft())

    def _asked(self, portion: list[str], watch: Callable[[str], None] | None) -> list[IAsyncResult]:
        """Ask for nodes: one result for all of them, or one for each."""
        if watch is None and len(portion) > 1 and self._reads_many:
            result = self._kazoo.handler.async_result()
            # kazoo sends what it is given here, whether it knows the request or not
            self._kazoo._call(MultiRead([f"{self._kazoo.chroot}{path}" for path in portion]), result)
            return [result]
        return [self._kazoo.get_async(path, watch=None if watch is None else _watcher(watch, path)) for path in portion]

    def _nodes(self, portion: list[str], results: list[IAsyncResult]) -> Iterator[tuple[str, Node | None]]:
        if len(results) == len(portion):
            yield from map(self._node, portion, results)
            return
        try:
            answers = self._wait(results[0], portion[0])
        except UnimplementedError as e:  # this time a server before 3.6, which ends the session with that
            self._reads_many = False
            raise DisconnectedError(f"{self.settings.where}: {_reason(e)}: to be asked again one by one") from e
        for path, answer in zip(portion, answers, strict=True):
            if isinstance(answer, NoNodeError):
                yield path, None
            elif isinstance(answer, KazooException):
                raise self._error(answer, path)
            else:
                yield path, _node(*answer)

    def _node(self, path: str, result: IAsyncResult) -> tuple[str, Node | None]:
        try:
            return path, _node(*self._wait(result, path))
        except _MissingError:
            return path, None

    def children(self, path: str, watch: Callable[[], None] | None = None) -> Children | None:
        """A node's children; None where there is no node.

        `watch` is called once: when a child comes or goes, the node goes, or the connection is lost. Raises StoreError.
        """

        def watched(_event: object) -> None:
            if watch is not None:
                watch()

        self._check_connected()
        result = self._kazoo.get_children_async(path, watch=None if watch is None else watched, include_data=True)
        try:
            names, stat = self._wait(result, path)
        except _MissingError:
            return None
        # A Stat counts children that came and that went; each one that came and is no more did both.
        return Children(names=names, ever_created=(stat.cversion + stat.numChildren) // 2)

    def sync(self) -> None:
        """Wait until the server is as new as the leader was at the call, and every watch of that time has been called.

        Watches are called in the order of the server's answers, in one thread of kazoo's. Raises StoreError.
        """
        self._check_connected()
        self._wait(self._kazoo.sync_async("/"), "/")
        handler = self._kazoo.handler
        called = handler.event_object()
        handler.dispatch_callback(Callback("fence", called.set, ()))
        if not called.wait(self._timeout):
            raise StoreError(f"{self.settings.where}: watches are not called in time")

    def ensure(self, path: str) -> None:
        """Make a node without data, and those above it, where they are missing. Raises StoreError."""
        self._check_connected()
        acl = _acl(path, self.settings)
        if acl is not None and path.rpartition("/")[0]:
            self.ensure(path.rpartition("/")[0])
        self._wait(self._kazoo.ensure_path_async(path, acl=acl), path)

    def commit(self, operations: Sequence[Operation]) -> list[int]:
        """Do all of these, or none; the versions that nodes have after it, 0 for what was made or removed.

        Raises:
            ConflictError: a version, a missing node or one too many; nothing happened.
            StoreError: anything else; after a lost connection it is not known whether all happened or nothing.

        """
        self._check_connected()
        transaction = self._kazoo.transaction()
        for operation in operations:
            _add(transaction, operation, self.settings)
        results = self._wait(transaction.commit_async(), operations[0].path)
        failed = [
            (operation.path, result)
            for operation, result in zip(operations, results, strict=True)
            if isinstance(result, Exception)
        ]
        for path, error in sorted(failed, key=lambda pair: isinstance(pair[1], _NOT_THIS_ONE)):
            raise self._error(error, path)
        return [result.version if isinstance(result, ZnodeStat) else 0 for result in results]

    def close(self) -> None:
        """End the session; calls that wait fail."""
        try:
            self._kazoo.stop()
            self._kazoo.close()
        except (KazooException, KazooTimeoutError) as e:  # the server ends the session when it has timed out
            _log.warning("%s: the session was not ended: %s", self.settings.where, _reason(e))

    def _check_connected(self) -> None:
        # kazoo would keep the call until there is a connection, and do it then, when nobody waits for it any more
        if not self._kazoo.connected:
            raise DisconnectedError(f"{self.settings.where}: the connection is lost")

    def _wait(self, result: IAsyncResult, path: str) -> Any:
        try:
            return result.get(timeout=self._timeout)
        except NoNodeError:
            raise _MissingError(f"{self.settings.where}: {path} is not there") from None
        except UnimplementedError:
            raise
        except (KazooException, KazooTimeoutError) as e:
            raise self._error(e, path) from e

    def _error(self, error: Exception, path: str) -> StoreError:
        if isinstance(error, _DISCONNECTED):
            return DisconnectedError(f"{self.settings.where}: {path}: {_reason(error)}")
        kind = ConflictError if isinstance(error, _CONFLICTS) else StoreError
        return kind(f"{self.settings.where}: {path}: {_reason(error)}")


def _watcher(watch: Callable[[str], None], path: str) -> Callable[[object], None]:
    return lambda _event: watch(path)


class _MissingError(ConflictError):
    """The node is not there."""


def _node(data: bytes, stat: ZnodeStat) -> Node:
    return Node(data=data, version=stat.version, created_ms=stat.ctime, child_count=stat.numChildren)


def _reason(error: Exception) -> str:
    if isinstance(error, KazooTimeoutError):
        return "no answer in time"
    if isinstance(error, _DISCONNECTED):
        return "the connection is lost"
    known = {
        BadArgumentsError: "a path that ZooKeeper does not take",
        NoAuthError: "not authorized: its ACL is for another login",
        InvalidACLError: "an ACL for a login, and this client has not logged in",
    }
    name = known.get(type(error), type(error).__name__)
    return f"{name}: {error}" if str(error) and type(error) not in known else name


def _acl(path: str, settings: ZkSettings) -> list[Any] | None:
    """The ACL of a new node where it is not the client's usual one: what is sensitive, only its owner reads."""
    return list(CREATOR_ALL_ACL) if settings.secure_acls and is_sensitive(path) else None


def _add(transaction: TransactionRequest, operation: Operation, settings: ZkSettings) -> None:
    match operation:
        case CreateNode(path=path):
            transaction.create(path, operation.data, acl=_acl(path, settings), sequence=operation.sequence)
        case SetNode():
            transaction.set_data(operation.path, operation.data, operation.version)
        case DeleteNode():
            transaction.delete(operation.path, operation.version)


def connected_client(settings: ZkSettings) -> ZkClient:
    """See aclog.zkstore.client.connect.open_client."""
    tls = settings.tls
    secured = {}
    if tls is not None:
        secured = {
            "use_ssl": True,
            "keyfile": tls.key_file,
            "keyfile_password": tls.key_password,
            "certfile": tls.certificate_file,
            "ca": tls.authorities_file,
        }
    hosts, slash, chroot = settings.connect.partition("/")
    kazoo = KazooClient(
        hosts=hosts,
        timeout=settings.session_timeout,
        default_acl=[*CREATOR_ALL_ACL, *READ_ACL_UNSAFE] if settings.secure_acls else None,
        logger=_quiet_logger(),
        **secured,
    )
    try:
        kazoo.start(timeout=settings.connection_timeout)
        reads_many = _knows_multi_read(kazoo, settings.session_timeout)
        if chroot:
            _enter(kazoo, f"{slash}{chroot}", settings)
    except BaseException as e:
        kazoo.stop()
        kazoo.close()
        if isinstance(e, KazooTimeoutError):
            seconds = f"{settings.connection_timeout:g} s"
            raise StoreError(f"{settings.where}: no connection within {seconds}: is it running there?") from e
        if isinstance(e, (KazooException, ValueError, OSError)):
            raise ConfigError(f"{settings.where}: {_reason(e)}") from e
        raise
    return ZkClient(settings=settings, kazoo=kazoo, reads_many=reads_many)


def _knows_multi_read(kazoo: KazooClient, seconds: float) -> bool:
    """Whether the server is of 3.6 or later; an older one says that it does not know it, and ends the session."""
    result = kazoo.handler.async_result()
    kazoo._call(MultiRead(["/", "/"]), result)  # as in ZkClient
    try:
        result.get(timeout=seconds)
    except UnimplementedError:
        kazoo.restart()
        return False
    return True


def _enter(kazoo: KazooClient, chroot: str, settings: ZkSettings) -> None:
    """Have all paths of a client begin below a node."""
    if settings.make_chroot:
        kazoo.ensure_path(chroot)
    elif not kazoo.exists(chroot):
        raise ConfigError(f"{settings.where}: there is no {chroot}: is the chroot right?")
    kazoo.chroot = chroot


def _quiet_logger() -> logging.Logger:
    """Where kazoo logs: its lines are for those who look for a fault in it; what matters of them, we say."""
    logger = logging.getLogger("aclog.zkstore.kazoo")
    logger.setLevel(logging.CRITICAL if not logger.level else logger.level)
    return logger
