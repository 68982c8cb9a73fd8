"""The checks of `aclog doctor`: the installation, a log, a running cluster."""

import asyncio
import os
import platform
import re
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from cryptography import x509

from aclog.authorizer.codes import AclOperation
from aclog.client.connection import Connection, Role, connect, role_of, shown_certificate
from aclog.client.requests import (
    BROKERS,
    CONTROLLERS,
    ClusterDescription,
    describe_cluster,
    describe_features,
    describe_quorum,
    has_authorizer,
)
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.installation import install_command
from aclog.metalog.errors import NO_SUCH_PATH, DecodeError, MetadataError, os_error_text
from aclog.metalog.filelog.files import list_checkpoints, list_segments
from aclog.metalog.filelog.locks import KAFKA_LOCK_FILE, LOCK_FILE, holder_of, kafka_log_dir
from aclog.metalog.filelog.verify import verify_checkpoint
from aclog.metalog.native import native, native_text
from aclog.metalog.values import frozen
from aclog.protocol.headers import RequestError
from aclog.snapshots.image import METADATA_VERSION, Image
from aclog.sources.choice import AclsSource, ChosenSource
from aclog.sources.contexts import choose_context, config_file
from aclog.sources.live import ClusterKafka, of_registrations
from aclog.terminal.output import time_text

# The findings of a check.


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    """Some commands do not work as expected, or soon will not."""
    FAIL = "fail"
    """The source cannot be used."""


@frozen
class Finding:
    """One line of the doctor: the check, its result, and the fix."""

    check: str
    level: Level
    text: str
    todo: str = ""


def ok(check: str, text: str, todo: str = "") -> Finding:
    """Return a passed check; `todo`: a remark."""
    return Finding(check, Level.OK, text, todo)


def warn(check: str, text: str, todo: str) -> Finding:
    """Return a result that may be intended, and the fix if it is not."""
    return Finding(check, Level.WARN, text, todo)


def fail(check: str, text: str, todo: str = "") -> Finding:
    """Return a failed check; without `todo` the text has the fix, as that of every MetadataError."""
    return Finding(check, Level.FAIL, text, todo)


def text_of(error: Exception) -> str:
    """Return an error as one line; one of the operating system has its file, and no number."""
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{error.filename}: {os_error_text(error)}" if error.filename else os_error_text(error)
    return str(error)


# The installation: versions, extras, Java, the clock, the file of contexts.


_LIBRARIES = ("numpy", "kio", "cryptography", "attrs", "click", "rich")
_EXTRAS = (
    ("kafka", "confluent-kafka", "the metadata log of aclog's nodes, or an access log, in a Kafka topic (kafka://...)"),
    ("zookeeper", "kazoo", "reading and migrating ACLs in ZooKeeper"),
    ("parquet", "pyarrow", "reading access logs in Parquet, and returning Arrow tables"),
    ("s3", "obstore", "an index of last use in S3 or Azure"),
    ("spark", "pyspark", "the `aclog spark` commands"),
)
_JAVA_SECONDS = 20
_LEAST_JAVA = 17
_JAVA_TODO = "`aclog spark` needs Java 17 or later: install one, and set JAVA_HOME or PATH"


def installation(context: str | None = None) -> Iterator[Finding]:
    """Yield the findings about this machine, for any source; `context` is the one that the command names."""
    yield ok("aclog", f"{version('aclog')}, {native_text}", "" if native else "`make native` makes decisions faster")
    yield ok("python", f"{platform.python_version()} ({platform.system()} {platform.machine()})")
    yield _libraries()
    for extra, package, purpose in _EXTRAS:
        yield _extra(extra, package, purpose)
    yield _java()
    yield _clock()
    yield _contexts(context)


def _libraries() -> Finding:
    versions = {name: _version(name) for name in _LIBRARIES}
    if missing := [name for name, number in versions.items() if number is None]:
        return fail("libraries", f"missing: {', '.join(missing)}", install_command())
    return ok("libraries", ", ".join(f"{name} {number}" for name, number in versions.items()))


def _extra(extra: str, package: str, purpose: str) -> Finding:
    number = _version(package)
    if number is None:
        return ok(f"extra {extra}", "not installed", f"for {purpose}: {install_command(extra)}")
    return ok(f"extra {extra}", f"{package} {number}, for {purpose}")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _java() -> Finding:
    if _version("pyspark") is None:
        return ok("java", "not needed without the extra spark")
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if command is None or not Path(command).exists():
        return warn("java", "not found" if command is None else f"{command}: no such file (JAVA_HOME)", _JAVA_TODO)
    try:
        done = subprocess.run(  # noqa: S603 - the Java that Spark would start
            [command, "-version"], capture_output=True, text=True, timeout=_JAVA_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return warn("java", f"{command}: {error}", _JAVA_TODO)
    return java_finding(command, done.stderr)


def java_finding(command: str, output: str) -> Finding:
    """Return whether Spark supports a Java, by the output of its `-version`."""
    match = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', output)
    if match is None:
        return warn("java", f"{command} -version does not print a version", _JAVA_TODO)
    if int(match[2]) < _LEAST_JAVA:
        return warn("java", f"{match[1]} at {command}", _JAVA_TODO)
    return ok("java", f"{match[1]} at {command}")


def _clock() -> Finding:
    local = datetime.now().astimezone()
    zone = os.environ.get("ACLOG_TIMEZONE") or "UTC, unless --timezone is given"
    text = f"{local:%Y-%m-%d %H:%M:%S %z} here; times without a zone are read as {zone}"
    if not time.get_clock_info("monotonic").monotonic:
        return warn("clock", f"{text}; this system has no monotonic clock", "do not set the clock while a node runs")
    return ok("clock", text)


def _contexts(name: str | None) -> Finding:
    try:
        path, context = config_file(), choose_context(name)
    except (MetadataError, OSError) as error:
        return fail("contexts", text_of(error))
    if context is not None:
        return ok("contexts", f"{context.context.name} of {path}, {context.by}: {context.context.address}")
    if path is None or not path.exists():
        return ok(
            "contexts",
            "no context is defined",
            "`aclog context add NAME` saves the address of a cluster or a log under a name",
        )
    return ok("contexts", f"no context of {path} is chosen", "`aclog context use NAME` chooses one")


# A log or a checkpoint on disk: whether it is readable, the state of its end, its writer, and the disk.


_LEAST_FREE_BYTES = 1 << 30
_CHECKED_CHECKPOINTS = 3
"""The newest ones: recovery falls back from one to the next."""


def log_health(directory: Path, source: ChosenSource, notes: list[str]) -> Iterator[Finding]:
    """Yield the findings about a directory of segments and checkpoints; `notes` collects the notes of reading it."""
    if not directory.is_dir():
        yield fail("log", f"{directory}: {'not a directory' if directory.exists() else NO_SUCH_PATH}")
        return
    if not os.access(directory, os.R_OK | os.X_OK):
        yield fail("log", f"{directory}: not readable by this user", "run as its owner, or copy the directory")
        return
    image = yield from state_health("log", str(directory), source, notes)
    if image is not None:
        yield from kafka_finding(of_registrations(image))
    yield from _checkpoints(directory)
    yield _holder(directory)
    yield _disk(directory)


def state_health(
    check: str, name: str, source: ChosenSource, notes: list[str]
) -> Generator[Finding, None, Image | None]:
    """Yield whether a source can be read as a whole, and its notes; return its state, if readable."""
    began = time.monotonic()
    try:
        image = source.image()
    except (MetadataError, OSError) as error:
        is_damage = check == "log" and isinstance(error, DecodeError)
        yield fail(check, text_of(error), f"`aclog log verify {name}` lists all errors" if is_damage else "")
        return None
    yield ok(check, f"{_contents(image)}; {name} was read in {time.monotonic() - began:.1f} s")
    for text in notes:
        yield warn(check, text, f"see `aclog log verify {name}`" if check == "log" else "see docs/operations.md")
    return image


def kafka_finding(kafka: ClusterKafka) -> Iterator[Finding]:
    """Yield the Kafka version of the nodes, if known, and whether they decide alike."""
    warning = kafka.warning()
    if warning is not None:
        todo = (
            "upgrade all nodes; `aclog diff SOURCE --to-kafka-version 4.4` shows the difference"
            if kafka.nodes.of_generation
            else "name it with --kafka-version, in a context or in aclog.toml"
        )
        yield warn("kafka", warning, todo)
    elif text := kafka.text():
        todo = "upgrade the others too" if kafka.nodes.difference() else ""
        yield ok("kafka", text, todo) if kafka.decides_alike else warn("kafka", text, "see docs/operations.md")


def _contents(image: Image) -> str:
    end = f", ends at offset {image.end_offset}, epoch {image.epoch}" if image.end_offset else ""
    last = f", last written {time_text(image.timestamp)}" if image.end_offset and image.timestamp > 0 else ""
    return f"{len(image.acls):,} ACLs, {len(image.scram):,} SCRAM credentials{end}{last}"


def _checkpoints(directory: Path) -> Iterator[Finding]:
    checkpoints = list_checkpoints(directory)
    if not checkpoints:
        segments = list_segments(directory)
        if segments and segments[0].base_offset == 0:
            yield ok("checkpoints", "none, and none needed: the log begins at offset 0")
        return
    for checkpoint in checkpoints[-_CHECKED_CHECKPOINTS:]:
        try:
            problem = next(iter(verify_checkpoint(checkpoint, None, 0)), None)
        except (MetadataError, OSError) as error:
            yield fail("checkpoints", text_of(error))
            continue
        if problem is None:
            yield ok("checkpoints", f"{checkpoint.path.name} is complete, all CRCs are valid")
        else:
            yield warn("checkpoints", str(problem), "delete it if the log or an older checkpoint covers its end")


def _holder(directory: Path) -> Finding:
    kafka = kafka_log_dir(directory)
    locks = [directory / LOCK_FILE, *([] if kafka is None else [kafka / KAFKA_LOCK_FILE])]
    for path in locks:
        if (process := holder_of(path)) is not None:
            return ok(
                "writer",
                f"process {process} holds {path}",
                "while it does, other processes can only read the log",
            )
    if not os.access(directory, os.W_OK):
        return ok("writer", "no process has locked this log; this user can read it, but not write it")
    if kafka is not None:
        return ok(
            "writer",
            f"no process has locked this log; it belongs to the Kafka node of {kafka}",
            "do not write here: aclog refuses it without --force",
        )
    return ok("writer", "no process has locked this log; this user can write it")


def _disk(directory: Path) -> Finding:
    free = shutil.disk_usage(directory).free
    text = f"{free / (1 << 30):,.1f} GiB free"
    if free < _LEAST_FREE_BYTES:
        return warn("disk", text, "make room before a node or a mirror writes here: it stops when the disk is full")
    return ok("disk", text)


# A running cluster: name, port, TLS, the listener, the login, its permissions, and the clock skew.


_SECONDS = 5.0
"""For a connection, and for each response."""
_EXPIRES_SOON = timedelta(days=30)
_APART_S = 2.0
_NEEDS = {
    Role.BROKER: (
        (AclOperation.DESCRIBE, "reading ACLs and SCRAM users"),
        (AclOperation.ALTER, "changing ACLs"),
    ),
    Role.CONTROLLER: (
        (AclOperation.CLUSTER_ACTION, "following the log"),
        (AclOperation.ALTER, "changing ACLs"),
    ),
}


def connections(servers: Sequence[HostPort], security: ClientSecurity, role: Role) -> Iterator[Finding]:
    """Yield the findings about each server; nothing is changed, and no login is sent to a server that is not Kafka."""
    for address in servers:
        yield from asyncio.run(_collected(_server(address, security, role)))


async def _collected(findings: AsyncIterator[Finding]) -> list[Finding]:
    return [each async for each in findings]


async def _server(address: HostPort, security: ClientSecurity, role: Role) -> AsyncIterator[Finding]:
    try:
        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        yield fail("name", f"{address.host}: {text_of(error)}", "check the host name, and this machine's DNS")
        return
    yield ok("name", f"{address.host} is {', '.join(dict.fromkeys(str(each[4][0]) for each in addresses))}")
    is_tls = security.security_protocol.tls
    certificate = await shown_certificate(address, _SECONDS) if is_tls else None
    if certificate is not None:
        yield certificate_finding(certificate, datetime.now(UTC))
    began = time.monotonic()
    try:
        connection = await connect(address, security, timeout=_SECONDS)
    except MetadataError as error:
        yield fail("connection", text_of(error))
        return
    async with connection:
        took = 1000 * (time.monotonic() - began)
        who = f"as {security.username} by {security.sasl_mechanism}" if security.username else "without SASL"
        yield ok("connection", f"{address}: {security.security_protocol.value}, {who}, in {took:.0f} ms")
        if security.username and not is_tls:
            yield warn("login", "the login goes over the network unencrypted", "use a SASL_SSL listener")
        if is_tls and certificate is None:
            text = f"unknown: no certificate within {_SECONDS:.0f} s"
            yield warn("certificate", text, "run this again")
        async for each in _role_findings(connection, role):
            yield each


def certificate_finding(certificate: x509.Certificate, now: datetime) -> Finding:
    """Return whether a server's certificate is valid now; the login checks whether it is trusted."""
    remaining, name = certificate.not_valid_after_utc - now, certificate.subject.rfc4514_string()
    text = f"{name}, issued by {certificate.issuer.rfc4514_string()}, until {certificate.not_valid_after_utc:%Y-%m-%d}"
    if remaining < timedelta(0) or certificate.not_valid_before_utc > now:
        return fail("certificate", f"{text}: not valid now", "renew it in the server's key store, or set the clock")
    if remaining < _EXPIRES_SOON:
        return warn("certificate", f"{text}: {remaining.days} days left", "renew it in the server's key store")
    return ok("certificate", text)


async def _role_findings(connection: Connection, role: Role) -> AsyncIterator[Finding]:
    actual = role_of(connection.apis)
    if actual not in (None, role):
        assert actual is not None  # noqa: S101 - the one before
        text = f"{connection.address} is a {actual.name.lower()}'s listener, not a {role.name.lower()}'s"
        yield fail("role", text, f"give it to {actual.value}")
        return
    try:
        features = await describe_features(connection)
        level = features.finalized.get(METADATA_VERSION)
        suffix = "" if level is None else f", metadata.version {level}"
        yield ok("role", f"a {role.name.lower()}'s listener, {len(connection.apis)} APIs{suffix}")
        if (warning := features.upgrade_warning(connection.address)) is not None:
            yield warn("role", warning, "upgrade aclog first")
    except (MetadataError, RequestError) as error:
        yield warn(
            "role", f"a {role.name.lower()}'s listener; its features are unknown: {error}", "see docs/operations.md"
        )
    for each in await _rights(connection, role):
        yield each
    yield await _server_clock(connection)


async def _rights(connection: Connection, role: Role) -> list[Finding]:
    try:
        cluster = await describe_cluster(
            connection, BROKERS if role is Role.BROKER else CONTROLLERS, with_operations=True
        )
    except (MetadataError, RequestError) as error:
        todo = "allow DESCRIBE on the cluster" if role is Role.BROKER else "allow ALTER on the cluster for more details"
        make = fail if role is Role.BROKER else warn
        return [make("rights", f"DescribeCluster: {error}", todo)]
    findings = [
        ok(
            "cluster",
            f"{cluster.cluster_id}, {len(cluster.nodes)} {role.name.lower()}{'s' * (len(cluster.nodes) != 1)}",
        )
    ]
    if await has_authorizer(connection) is False:
        todo = "expected authorizer.class.name on its nodes, unless the cluster is meant to be open"
        return [
            *findings,
            warn("rights", "no authorizer: every client may perform every operation, and there are no ACLs", todo),
        ]
    return findings + [_right(cluster, operation, purpose) for operation, purpose in _NEEDS[role]]


def _right(cluster: ClusterDescription, operation: AclOperation, purpose: str) -> Finding:
    may = cluster.may(operation)
    todo = f"allow it: --operation {operation.name} --cluster"
    if may:
        return ok("rights", f"{operation.name} on the cluster, for {purpose}")
    # Without DESCRIBE a broker returns no right at all.
    what = "is unknown" if may is None or not cluster.operations else "is denied"
    text = f"{operation.name} on the cluster {what}, which is needed for {purpose}"
    return (warn if operation is AclOperation.ALTER else fail)("rights", text, todo)


async def _server_clock(connection: Connection) -> Finding:
    """Compare this clock with the leader's, by the response to DescribeQuorum."""
    try:
        before = time.time()
        quorum = await describe_quorum(connection)
        between = (before + time.time()) / 2
    except (MetadataError, RequestError) as error:
        return ok("cluster clock", f"unknown: DescribeQuorum: {error}")
    leader = next((each for each in quorum.voters if each.replica_id == quorum.leader_id), None)
    if leader is None or leader.last_caught_up_timestamp < 0:
        return ok("cluster clock", "unknown: the leader does not return its time")
    apart = between - leader.last_caught_up_timestamp / 1000
    text = f"this one is {abs(apart):.1f} s {'ahead of' if apart > 0 else 'behind'} the quorum leader's"
    if abs(apart) < _APART_S:
        return ok("cluster clock", text)
    return warn("cluster clock", text, "run NTP on both: ages, --max-age and times of changes are off by as much")


# All checks that apply to a source, or to none.


def examination(
    choose: Callable[[Callable[[str], None]], ChosenSource | None], context: str | None = None
) -> Iterator[Finding]:
    """Yield the findings as they come: the installation's first, then those of the source that `choose` returns.

    `choose` takes a callback for notes, and raises a MetadataError if the source cannot even be named; `context` is the
    one that the command names.
    """
    yield from installation(context)
    notes: list[str] = []
    try:
        source = choose(notes.append)
    except (MetadataError, OSError) as error:
        yield fail("source", text_of(error))
        return
    if source is not None:
        yield from _source(source, notes)


def _source(source: ChosenSource, notes: list[str]) -> Iterator[Finding]:
    from aclog.sources.live import of_registrations

    if isinstance(source.source, AclsSource):
        yield from state_health("rules", source.source.name, source, notes)
        return
    from aclog.sources.checkpoint import CheckpointSource
    from aclog.sources.logs import LogSource

    if isinstance(source.source, LogSource):
        yield from log_health(source.source.directory, source, notes)
        return
    if isinstance(source.source, CheckpointSource):
        image = yield from state_health("checkpoint", source.source.name, source, notes)
        if image is not None:
            yield from kafka_finding(of_registrations(image))
        return
    yield from _running(source, notes)


def _running(source: ChosenSource, notes: list[str]) -> Iterator[Finding]:
    from aclog.client.connection import Role
    from aclog.sources.live import AdminSource, QuorumSource, cluster_kafka

    inner, usable = source.source, True
    if isinstance(inner, AdminSource | QuorumSource):
        is_admin = isinstance(inner, AdminSource)
        servers = inner.servers if isinstance(inner, AdminSource) else inner.controllers
        usable = False
        for finding in connections(servers, inner.security, Role.BROKER if is_admin else Role.CONTROLLER):
            usable |= finding.check == "role" and finding.level is not Level.FAIL
            yield finding
    if usable:  # otherwise the connection's finding has the reason
        image = yield from state_health("state", inner.name, source, notes)
        if image is not None and isinstance(inner, AdminSource | QuorumSource):
            try:
                kafka = cluster_kafka(inner, image)
            except MetadataError as error:
                yield warn("kafka", f"which one the nodes run is unknown: {text_of(error)}", "run this again")
            else:
                yield from kafka_finding(kafka)
