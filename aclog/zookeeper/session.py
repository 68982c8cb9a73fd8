"""A ZooKeeper session: kazoo behind our types, and reads of many znodes in one request."""

import logging
import ssl
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from attrs import field
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
    ZookeeperError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.interfaces import IAsyncResult
from kazoo.protocol.serialization import GetChildren2, read_buffer, stat_struct, write_string
from kazoo.protocol.states import Callback, ZnodeStat
from kazoo.security import CREATOR_ALL_ACL, READ_ACL_UNSAFE

from aclog.config.node_config import TlsSettings
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.metalog.values import define, frozen
from aclog.security.tls import client_context
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
    ZkTls,
)
from aclog.zookeeper.wire import CheckedHandler
from aclog.zookeeper.znodes import brief_json, is_sensitive, name_problem

# Reads of many znodes in one request: ZooKeeper's multiRead (opcode 22, since 3.6), which kazoo does not support.


ReadResult: TypeAlias = "tuple[bytes, ZnodeStat] | KazooException"
"""A znode's data and stat, or the error of its read."""

# Per request: far below the limit of jute.maxbuffer, 1 MiB by default, even for large ACL znodes.
MAX_PATHS, MAX_CHARACTERS = 64, 1 << 17

MAX_CHILDREN = 1 << 20
"""Names in a list of children."""
MAX_NAME = 100_000
"""Characters of a znode's name: those of the longest name in Kafka's protocol, all percent-encoded."""
MAX_DATA = 16 << 20
"""Bytes of a znode; ZooKeeper's own limit is 1 MiB by default (jute.maxbuffer)."""
MAX_CONTENTS = 256 << 20
"""Bytes of the znodes of one reading."""
_READING_S = 900.0
"""How long one reading may take."""

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

    def deserialize(self, data: bytes, offset: int) -> list[ReadResult]:
        """Return the results in the order of the paths. Raises DecodeError, struct.error."""
        results: list[ReadResult] = []
        while True:
            kind, done, _ = _HEADER.unpack_from(data, offset)
            offset += _HEADER.size
            if bool(done) is not (len(results) == len(self.paths)):
                raise DecodeError(f"{len(results)} results or more for {len(self.paths)} paths")
            if done:
                return results
            if kind == _ERROR:
                results.append(EXCEPTIONS[_CODE.unpack_from(data, offset)[0]]())
                offset += _CODE.size
            else:
                value, offset = read_buffer(data, offset)
                results.append((value or b"", ZnodeStat._make(stat_struct.unpack_from(data, offset))))
                offset += stat_struct.size


class ListChildren(GetChildren2):  # type: ignore[misc]  # kazoo has no types
    """kazoo's request for the names of children and the stat of their parent, with checks of the response."""

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> tuple[list[str], ZnodeStat]:
        """Return the names and the stat. Raises DecodeError, struct.error, UnicodeDecodeError."""
        (count,) = _CODE.unpack_from(data, offset)
        if not 0 <= count <= MAX_CHILDREN:
            raise DecodeError(f"{count} children: expected 0 to {MAX_CHILDREN}")
        names, stat = super().deserialize(data, offset)
        if count != stat.numChildren:
            raise DecodeError(f"{count} names of {stat.numChildren} children")
        if None in names or len(set(names)) != count:
            raise DecodeError("children without a name, or with the same")
        for name in names:
            if len(name) > MAX_NAME:
                raise DecodeError(f"a child with a name of {len(name)} characters: expected at most {MAX_NAME}")
            if problem := name_problem(name):
                raise DecodeError(f"a child named {brief_json(name)}: {problem}")
        return names, stat


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

_CLOSE_S = 5.0
"""How long a server may take to close a session."""
_LOOK_S = 0.05

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
    _handler: CheckedHandler
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
    def malformed(self) -> int:
        """How many connections a malformed response ended."""
        return self._handler.problems

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
        self._begin()
        return self._node(path, self._kazoo.get_async(path))[1]

    def get_many(
        self, paths: Iterable[str], watch: Callable[[str], None] | None = None
    ) -> Iterator[tuple[str, Node | None]]:
        """Read znodes in the order of their paths, with up to `in_flight` requests pipelined.

        Each existing znode gets a watch: `watch` is called once with its path when the znode is written or deleted, or
        the connection is lost.

        Raises:
            StoreError: also more than MAX_CONTENTS bytes, or more than 15 minutes.

        """
        size, end = 0, time.monotonic() + _READING_S
        for path, node in self._read_many(paths, watch):
            size += 0 if node is None else len(node.data)
            if size > MAX_CONTENTS:
                raise StoreError(f"{self.settings.where}: {path}: more than {MAX_CONTENTS >> 20} MiB in znodes")
            if time.monotonic() > end:
                raise StoreError(f"{self.settings.where}: {path}: reading takes more than {_READING_S:g} s")
            yield path, node

    def _read_many(
        self, paths: Iterable[str], watch: Callable[[str], None] | None
    ) -> Iterator[tuple[str, Node | None]]:
        waiting: deque[tuple[list[str], list[IAsyncResult]]] = deque()
        for portion in portions(paths):
            self._begin()
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
        except StoreError as e:
            if not isinstance(e.__cause__, UnimplementedError):
                raise
            # The client has reconnected to a server before 3.6, which also closes the connection on an unknown opcode.
            # The caller retries as after any disconnect, and then without multiRead.
            self._multi_read = False
            raise DisconnectedError(f"{e}: retry without multiRead") from e
        for path, each in zip(portion, responses, strict=True):
            if isinstance(each, NoNodeError):
                yield path, None
            elif isinstance(each, KazooException):
                raise self._error(each, path)
            else:
                yield path, self._checked(path, each)

    def _node(self, path: str, result: IAsyncResult) -> tuple[str, Node | None]:
        try:
            return path, self._checked(path, self._wait(result, path))
        except _MissingError:
            return path, None

    def _checked(self, path: str, read: tuple[bytes | None, ZnodeStat]) -> Node:
        """Return a znode. Raises StoreError: its stat is of another, or it is too large."""
        data, stat = read[0] or b"", read[1]
        if len(data) != stat.dataLength or len(data) > MAX_DATA:
            expected = f"the {stat.dataLength} of its stat, at most {MAX_DATA}"
            raise self._malformed(path, f"{len(data)} bytes: expected {expected}")
        return Node(data=data, version=stat.version, created_ms=stat.ctime, child_count=stat.numChildren)

    def children(self, path: str, watch: Callable[[], None] | None = None) -> Children | None:
        """Read a znode's children; None if the znode does not exist.

        `watch` is called once: when a child is created or deleted, the znode is deleted, or the connection is lost.
        Raises StoreError.
        """

        def watched(_event: object) -> None:
            if watch is not None:
                watch()

        self._begin()
        result = self._kazoo.handler.async_result()
        # As for multiRead; kazoo registers the watch of a request of its own type, and so of this one.
        self._kazoo._call(ListChildren(f"{self._kazoo.chroot}{path}", None if watch is None else watched), result)
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
        self._begin()
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
        self._begin()
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
        self._begin()
        transaction = self._kazoo.transaction()
        for operation in operations:
            _add(transaction, operation, self.settings)
        results = self._wait(transaction.commit_async(), operations[0].path)
        if len(results) != len(operations):
            raise self._malformed(operations[0].path, f"{len(results)} results of {len(operations)} operations")
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
        """Close the session; calls in flight fail. A server that does not respond expires it after its timeout."""
        _stop(self._kazoo, self._handler, _CLOSE_S)

    def _begin(self) -> None:
        # kazoo would queue the request and send it after a reconnect, when its caller has long given up: a write would
        # take effect after its error was reported.
        if not self._kazoo.connected:
            raise DisconnectedError(f"{self.settings.where}: {self._lost}")
        self._handler.reset_count()

    @property
    def _lost(self) -> str:
        problem = self._handler.problem
        return f"the connection is lost{f': {problem}' if problem else ''}"

    def find_multi_read(self) -> None:
        """Find out whether the server supports multiRead (3.6); an older one rejects it and closes the session.

        Raises StoreError.
        """
        result = self._kazoo.handler.async_result()
        self._kazoo._call(MultiRead(["/", "/"]), result)  # see _send_reads
        try:
            self._wait(result, "/")
        except StoreError as e:
            if not isinstance(e.__cause__, UnimplementedError):
                raise
            self._multi_read = False
            _stop(self._kazoo, self._handler, _CLOSE_S)
            _start(self._kazoo, self._handler, self.settings)

    def enter(self, chroot: str) -> None:
        """Set the chroot. Raises StoreError; ConfigError: it does not exist, and is not to be made."""
        if self.settings.make_chroot:
            self._wait(self._kazoo.ensure_path_async(chroot), chroot)
        elif not self._wait(self._kazoo.exists_async(chroot), chroot):
            raise ConfigError(f"{self.settings.where}: {chroot} does not exist: is the chroot correct?")
        self._kazoo.chroot = chroot

    def _wait(self, result: IAsyncResult, path: str) -> Any:
        try:
            return result.get(timeout=self._timeout)
        except NoNodeError:
            raise _MissingError(f"{self.settings.where}: {path} does not exist") from None
        except (KazooException, KazooTimeoutError) as e:
            raise self._error(e, path) from e
        except Exception as e:  # kazoo hands on what its decoding raises
            raise self._malformed(path, str(e) if isinstance(e, DecodeError) else f"{type(e).__name__}: {e}") from e

    def _malformed(self, path: str, problem: str) -> StoreError:
        return StoreError(f"{self.settings.where}: {path}: malformed response: {problem}")

    def _error(self, error: Exception, path: str) -> StoreError:
        if isinstance(error, _DISCONNECTED):
            reason = _reason(error) if isinstance(error, KazooTimeoutError) else self._lost
            return DisconnectedError(f"{self.settings.where}: {path}: {reason}")
        kind = ConflictError if isinstance(error, _CONFLICTS) else StoreError
        return kind(f"{self.settings.where}: {path}: {_reason(error)}")


def _watcher(watch: Callable[[str], None], path: str) -> Callable[[object], None]:
    return lambda _event: watch(path)


class _MissingError(ConflictError):
    """The znode does not exist."""


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
    hosts, slash, chroot = settings.connect.partition("/")
    handler = CheckedHandler(
        tls=None if settings.tls is None else _tls_context(settings.tls), frame_seconds=settings.session_timeout
    )
    kazoo = KazooClient(
        hosts=hosts,
        timeout=settings.session_timeout,
        handler=handler,
        default_acl=[*CREATOR_ALL_ACL, *READ_ACL_UNSAFE] if settings.secure_acls else None,
        logger=_quiet_logger(),
    )
    client = ZkClient(settings=settings, kazoo=kazoo, handler=handler)
    try:
        _start(kazoo, handler, settings)
        client.find_multi_read()
        if chroot:
            client.enter(f"{slash}{chroot}")
    except KeyboardInterrupt:
        # Its threads end once their server responds or the time is up: an interrupt waits for neither.
        threading.Thread(target=_stop, args=(kazoo, handler, 0.0), daemon=True).start()
        raise
    except BaseException as e:
        _stop(kazoo, handler, 0.0)
        if (
            isinstance(e, StoreError)
            and isinstance(e.__cause__, ZookeeperError)
            and not isinstance(e, DisconnectedError)
        ):
            raise ConfigError(str(e)) from e  # the server responds, and rejects the settings
        raise
    return client


def _tls_context(tls: ZkTls) -> ssl.SSLContext:
    """Return the context of connections. Raises ConfigError: a file that cannot be read, or without what it is for."""
    return client_context(
        TlsSettings(
            keystore=None if tls.keystore is None else Path(tls.keystore),
            keystore_type="PEM",
            key_password=tls.key_password,
            truststore=None if tls.truststore is None else Path(tls.truststore),
            truststore_type="PEM",
            endpoint_identification=tls.checks_host,
        )
    )


def _start(kazoo: KazooClient, handler: CheckedHandler, settings: ZkSettings) -> None:
    """Connect. Raises StoreError: no session in time, or each server's responses are malformed."""
    live, end = kazoo.start_async(), time.monotonic() + settings.connection_timeout
    while not live.wait(_LOOK_S):
        if handler.problems >= len(kazoo.hosts):
            raise StoreError(f"{settings.where}: {handler.problem}")
        if time.monotonic() > end:
            seconds = f"{settings.connection_timeout:g} s"
            raise StoreError(f"{settings.where}: no connection within {seconds}: {handler.problem or 'is it running?'}")


def _stop(kazoo: KazooClient, handler: CheckedHandler, seconds: float) -> None:
    """Close the session and end its threads; after these seconds, without a response of the server."""
    # kazoo waits for a connection's thread without end, and that thread for the rest of a response.
    timer = threading.Timer(seconds, handler.abort)
    timer.daemon = True
    timer.start()
    try:
        kazoo.stop()
        kazoo.close()
    finally:
        timer.cancel()


def _quiet_logger() -> logging.Logger:
    """Return the logger of kazoo, off unless configured: it would repeat errors that are reported here."""
    logger = logging.getLogger("aclog.zookeeper.kazoo")
    logger.setLevel(logging.CRITICAL if not logger.level else logger.level)
    return logger
