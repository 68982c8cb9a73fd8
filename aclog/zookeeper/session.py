"""A ZooKeeper session: kazoo behind our types, and reads of many znodes in one request."""

import logging
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, TypeAlias

from attrs import define, field, frozen
from kazoo.client import KazooClient, KazooState, TransactionRequest
from kazoo.exceptions import (
    EXCEPTIONS,
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
from kazoo.protocol.serialization import read_buffer, stat_struct, write_string
from kazoo.protocol.states import Callback, ZnodeStat
from kazoo.security import CREATOR_ALL_ACL, READ_ACL_UNSAFE

from aclog.metalog.errors import ConfigError
from aclog.zookeeper.client import (
    Children,
    ConflictError,
    CreateNode,
    DeleteNode,
    DisconnectedError,
    Node,
    Operation,
    SetNode,
    StoreError,
    ZkSettings,
)
from aclog.zookeeper.znodes import is_sensitive

# Reads of many znodes in one request: ZooKeeper's multiRead (opcode 22, since 3.6), which kazoo does not support.


ReadResult: TypeAlias = "tuple[bytes, ZnodeStat] | KazooException"
"""A znode's data and stat, or the error of its read."""

# Per request: far below the limit of jute.maxbuffer, 1 MiB by default, even for large ACL znodes.
MAX_PATHS, MAX_CHARACTERS = 64, 1 << 17

_GET_DATA, _ERROR = 4, -1
_HEADER = struct.Struct("!iBi")
"""MultiHeader: operation type, whether it is the end marker, error code."""
_CODE = struct.Struct("!i")


@frozen
class MultiRead:
    """A multiRead request, which kazoo sends and dispatches like its own request types."""

    type: ClassVar[int] = 22
    paths: Sequence[str]
    """With the chroot."""

    def serialize(self) -> bytearray:
        """Return the bytes after the request header: a getData without a watch for each path, then the end marker."""
        data = bytearray()
        for path in self.paths:
            data += _HEADER.pack(_GET_DATA, 0, -1) + write_string(path) + b"\0"
        return data + _HEADER.pack(_ERROR, 1, -1)

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[ReadResult]:
        """Return the results in the order of the paths."""
        results: list[ReadResult] = []
        while True:
            kind, done, _ = _HEADER.unpack_from(data, offset)
            offset += _HEADER.size
            if done:
                return results
            if kind == _ERROR:
                results.append(EXCEPTIONS[_CODE.unpack_from(data, offset)[0]]())
                offset += _CODE.size
            else:
                value, offset = read_buffer(data, offset)
                results.append((value or b"", ZnodeStat._make(stat_struct.unpack_from(data, offset))))
                offset += stat_struct.size


def portions(paths: Iterable[str]) -> Iterator[list[str]]:
    """Split paths, in order, into the portions of single requests; the paths are consumed lazily."""
    portion: list[str] = []
    characters = 0
    for path in paths:
        if portion and (len(portion) == MAX_PATHS or characters + len(path) > MAX_CHARACTERS):
            yield portion
            portion, characters = [], 0
        portion.append(path)
        characters += len(path)
    if portion:
        yield portion


# ZooKeeper client of one session: kazoo behind our types and errors, with a timeout on every wait.


_log = logging.getLogger(__name__)

_CONFLICTS = (BadVersionError, NoNodeError, NodeExistsError, NotEmptyError)
_DISCONNECTED = (ConnectionClosedError, ConnectionLoss, KazooTimeoutError, SessionExpiredError)
_ROLLED_BACK = (RolledBackError, RuntimeInconsistency)
"""Results of operations that failed only because another operation of their transaction did."""


@define(eq=False)
class ZkClient:
    """A connected client. It is thread-safe; watches and listeners run in kazoo's threads.

    The caller of `open_client` closes it. Calls without a connection fail at once, and calls in flight fail when the
    connection breaks. kazoo reconnects by itself, with a new session if the old one has expired.
    """

    settings: ZkSettings
    _kazoo: KazooClient
    _multi_read: bool = True
    """Whether the server supports multiRead, as far as known."""
    _timeout: float = field(init=False)
    """Seconds; longer than kazoo takes to detect an unresponsive server."""

    def __attrs_post_init__(self) -> None:
        self._timeout = self.settings.session_timeout + self.settings.connection_timeout

    @property
    def connected(self) -> bool:
        """Whether the client has a session and a connection now."""
        return bool(self._kazoo.connected)

    @property
    def session(self) -> tuple[int, bytes]:
        """The session id and password."""
        client_id: tuple[int, bytes] = self._kazoo.client_id
        return client_id

    def listen(self, changed: Callable[[bool], None]) -> None:
        """Call `changed` with True on every connect and False on every disconnect; it must not block."""

        def listener(state: str) -> None:
            changed(state == KazooState.CONNECTED)

        self._kazoo.add_listener(listener)

    def get(self, path: str) -> Node | None:
        """Read a znode; None if it does not exist. Raises StoreError."""
        self._check_connected()
        return self._node(path, self._kazoo.get_async(path))[1]

    def get_many(
        self, paths: Iterable[str], watch: Callable[[str], None] | None = None
    ) -> Iterator[tuple[str, Node | None]]:
        """Read znodes in the order of their paths, with up to `in_flight` requests pipelined.

        Each existing znode gets a watch: `watch` is called once with its path when the znode is written or deleted, or
        the connection is lost. Raises StoreError.
        """
        waiting: deque[tuple[list[str], list[IAsyncResult]]] = deque()
        for portion in portions(paths):
            self._check_connected()
            waiting.append((portion, self._send_reads(portion, watch)))
            if len(waiting) >= self.settings.in_flight:
                yield from self._nodes(*waiting.popleft())
        while waiting:
            yield from self._nodes(*waiting.popleft())

    def _send_reads(self, portion: list[str], watch: Callable[[str], None] | None) -> list[IAsyncResult]:
        """Send the reads of a portion; one result for all of them (multiRead), or one for each."""
        # multiRead cannot set watches.
        if watch is None and len(portion) > 1 and self._multi_read:
            result = self._kazoo.handler.async_result()
            # kazoo's internal call serializes any request object, including types that it does not define itself.
            self._kazoo._call(MultiRead([f"{self._kazoo.chroot}{path}" for path in portion]), result)
            return [result]
        return [self._kazoo.get_async(path, watch=None if watch is None else _watcher(watch, path)) for path in portion]

    def _nodes(self, portion: list[str], results: list[IAsyncResult]) -> Iterator[tuple[str, Node | None]]:
        if len(results) == len(portion):
            yield from map(self._node, portion, results)
            return
        try:
            responses = self._wait(results[0], portion[0])
        except UnimplementedError as e:
            # The client has reconnected to a server before 3.6, which also closes the connection on an unknown opcode.
            # The caller retries as after any disconnect, and then without multiRead.
            self._multi_read = False
            raise DisconnectedError(f"{self.settings.where}: {_reason(e)}: retry without multiRead") from e
        for path, each in zip(portion, responses, strict=True):
            if isinstance(each, NoNodeError):
                yield path, None
            elif isinstance(each, KazooException):
                raise self._error(each, path)
            else:
                yield path, _node(*each)

    def _node(self, path: str, result: IAsyncResult) -> tuple[str, Node | None]:
        try:
            return path, _node(*self._wait(result, path))
        except _MissingError:
            return path, None

    def children(self, path: str, watch: Callable[[], None] | None = None) -> Children | None:
        """Read a znode's children; None if the znode does not exist.

        `watch` is called once: when a child is created or deleted, the znode is deleted, or the connection is lost.
        Raises StoreError.
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
        # A Stat's cversion counts creations and deletions of children, and numChildren is their difference. The number
        # of creations is the number that ZooKeeper appends to sequence nodes.
        return Children(names=names, ever_created=(stat.cversion + stat.numChildren) // 2)

    def sync(self) -> None:
        """Wait until the server has caught up with the leader, and the watches triggered until then have been called.

        Raises StoreError.
        """
        self._check_connected()
        self._wait(self._kazoo.sync_async("/"), "/")
        # The server sends watch events before the response to sync, and kazoo calls them in that order in one thread:
        # a callback of ours in that queue runs after all events.
        handler = self._kazoo.handler
        called = handler.event_object()
        handler.dispatch_callback(Callback("fence", called.set, ()))
        if not called.wait(self._timeout):
            raise StoreError(f"{self.settings.where}: watch callbacks did not finish within {self._timeout:g} s")

    def ensure(self, path: str) -> None:
        """Create a znode without data, and its parents, if they do not exist. Raises StoreError."""
        self._check_connected()
        acl = _acl(path, self.settings)
        # ensure_path() gives missing parents the same ACL: those of a sensitive znode are created on their own first.
        if acl is not None and path.rpartition("/")[0]:
            self.ensure(path.rpartition("/")[0])
        self._wait(self._kazoo.ensure_path_async(path, acl=acl), path)

    def commit(self, operations: Sequence[Operation]) -> list[int]:
        """Run a transaction (multi); return each znode's new version, 0 for created and deleted ones.

        Raises:
            ConflictError: another version, a missing znode, or one that already exists; nothing was applied.
            StoreError: anything else; after a lost connection, either everything or nothing was applied.

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
        # The operation that failed comes first; the others only report that they were rolled back with it.
        for path, error in sorted(failed, key=lambda pair: isinstance(pair[1], _ROLLED_BACK)):
            raise self._error(error, path)
        return [result.version if isinstance(result, ZnodeStat) else 0 for result in results]

    def close(self) -> None:
        """Close the session; calls in flight fail."""
        try:
            self._kazoo.stop()
            self._kazoo.close()
        except (KazooException, KazooTimeoutError) as e:  # the server expires the session after its timeout
            _log.warning("%s: the session was not closed: %s", self.settings.where, _reason(e))

    def _check_connected(self) -> None:
        # kazoo would queue the request and send it after a reconnect, when its caller has long given up: a write would
        # take effect after its error was reported.
        if not self._kazoo.connected:
            raise DisconnectedError(f"{self.settings.where}: the connection is lost")

    def _wait(self, result: IAsyncResult, path: str) -> Any:
        try:
            return result.get(timeout=self._timeout)
        except NoNodeError:
            raise _MissingError(f"{self.settings.where}: {path} does not exist") from None
        except UnimplementedError:  # handled by callers that use multiRead
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
    """The znode does not exist."""


def _node(data: bytes, stat: ZnodeStat) -> Node:
    return Node(data=data, version=stat.version, created_ms=stat.ctime, child_count=stat.numChildren)


def _reason(error: Exception) -> str:
    if isinstance(error, KazooTimeoutError):
        return "no response in time"
    if isinstance(error, _DISCONNECTED):
        return "the connection is lost"
    reasons = {
        BadArgumentsError: "invalid path",
        NoAuthError: "not authorized: its ZooKeeper ACL is for another identity",
        InvalidACLError: "zookeeper.set.acl needs an authenticated client, and this one is not",
    }
    name = reasons.get(type(error), type(error).__name__)
    return f"{name}: {error}" if str(error) and type(error) not in reasons else name


def _acl(path: str, settings: ZkSettings) -> list[Any] | None:
    """Return the ZooKeeper ACL of a new sensitive znode; None for the client's default."""
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
    """Connect; see aclog.zookeeper.connect.open_client."""
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
        multi_read = _supports_multi_read(kazoo, settings.session_timeout)
        if chroot:
            _enter(kazoo, f"{slash}{chroot}", settings)
    except KeyboardInterrupt:
        # Its threads end once their server responds or the time is up: an interrupt waits for neither.
        threading.Thread(target=_stopped, args=(kazoo,), daemon=True).start()
        raise
    except BaseException as e:
        _stopped(kazoo)
        if isinstance(e, KazooTimeoutError):
            seconds = f"{settings.connection_timeout:g} s"
            raise StoreError(f"{settings.where}: no connection within {seconds}: is it running?") from e
        if isinstance(e, (KazooException, ValueError, OSError)):
            raise ConfigError(f"{settings.where}: {_reason(e)}") from e
        raise
    return ZkClient(settings=settings, kazoo=kazoo, multi_read=multi_read)


def _stopped(kazoo: KazooClient) -> None:
    kazoo.stop()
    kazoo.close()


def _supports_multi_read(kazoo: KazooClient, seconds: float) -> bool:
    """Return whether the server supports multiRead (3.6); an older one rejects the request and closes the session."""
    result = kazoo.handler.async_result()
    kazoo._call(MultiRead(["/", "/"]), result)  # see ZkClient._send_reads
    try:
        result.get(timeout=seconds)
    except UnimplementedError:
        kazoo.restart()
        return False
    return True


def _enter(kazoo: KazooClient, chroot: str, settings: ZkSettings) -> None:
    """Set the chroot of a client."""
    if settings.make_chroot:
        kazoo.ensure_path(chroot)
    elif not kazoo.exists(chroot):
        raise ConfigError(f"{settings.where}: {chroot} does not exist: is the chroot correct?")
    kazoo.chroot = chroot


def _quiet_logger() -> logging.Logger:
    """Return the logger of kazoo, off unless configured: it would repeat errors that are reported here."""
    logger = logging.getLogger("aclog.zookeeper.kazoo")
    logger.setLevel(logging.CRITICAL if not logger.level else logger.level)
    return logger
