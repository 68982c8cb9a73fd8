"""A running cluster: name, port, TLS, the listener, the login, what it may do, and how far the clocks are apart."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from cryptography import x509

from aclog.authorizer.acl import AclOperation
from aclog.metalog.errors import MetadataError
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.cluster_requests import (
    BROKERS,
    CONTROLLERS,
    ClusterDescription,
    describe_cluster,
    describe_features,
    describe_quorum,
)
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.login import connect
from aclog.nodes.client.node_features import has_authorizer
from aclog.nodes.client.peer import Role, role_of
from aclog.nodes.client.probe import shown_certificate
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.snapshots.features import METADATA_VERSION
from aclog.sources.doctor.finding import Finding, fail, ok, text_of, warn

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
    """Yield what is found about each server; nothing is changed, and no login is sent to who is no Kafka listener."""
    for address in servers:
        yield from asyncio.run(_collected(_server(address, security, role)))


async def _collected(found: AsyncIterator[Finding]) -> list[Finding]:
    return [each async for each in found]


async def _server(address: HostPort, security: ClientSecurity, role: Role) -> AsyncIterator[Finding]:
    try:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        yield fail("name", f"{address.host}: {text_of(error)}", "check the host name, and this machine's DNS")
        return
    yield ok("name", f"{address.host} is {', '.join(dict.fromkeys(str(each[4][0]) for each in found))}")
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
            text = f"not known: none was shown within {_SECONDS:.0f} s when it was asked for"
            yield warn("certificate", text, "run this again")
        async for each in _asked(connection, role):
            yield each


def certificate_finding(certificate: x509.Certificate, now: datetime) -> Finding:
    """Return whether a server's certificate is in its time; whether it is trusted, the login tells."""
    left, name = certificate.not_valid_after_utc - now, certificate.subject.rfc4514_string()
    text = f"{name}, issued by {certificate.issuer.rfc4514_string()}, until {certificate.not_valid_after_utc:%Y-%m-%d}"
    if left < timedelta(0) or certificate.not_valid_before_utc > now:
        return fail("certificate", f"{text}: not valid now", "renew it in the server's key store, or set the clock")
    if left < _EXPIRES_SOON:
        return warn("certificate", f"{text}: {left.days} days left", "renew it in the server's key store")
    return ok("certificate", text)


async def _asked(connection: Connection, role: Role) -> AsyncIterator[Finding]:
    found = role_of(connection.apis)
    if found not in (None, role):
        assert found is not None  # noqa: S101 - the one before
        text = f"{connection.address} is a {found.name.lower()}'s listener, not a {role.name.lower()}'s"
        yield fail("role", text, f"give it to {found.value}")
        return
    try:
        features = await describe_features(connection)
        level = features.finalized.get(METADATA_VERSION)
        told = "" if level is None else f", metadata.version {level}"
        yield ok("role", f"a {role.name.lower()}'s listener, {len(connection.apis)} APIs{told}")
        if (warning := features.upgrade_warning(connection.address)) is not None:
            yield warn("role", warning, "upgrade aclog first")
    except (MetadataError, RequestError) as error:
        yield warn(
            "role", f"a {role.name.lower()}'s listener; its features are unknown: {error}", "see docs/operations.md"
        )
    for each in await _rights(connection, role):
        yield each
    yield await _clock(connection)


async def _rights(connection: Connection, role: Role) -> list[Finding]:
    try:
        cluster = await describe_cluster(
            connection, BROKERS if role is Role.BROKER else CONTROLLERS, with_operations=True
        )
    except (MetadataError, RequestError) as error:
        todo = "allow DESCRIBE on the cluster" if role is Role.BROKER else "allow ALTER on the cluster to be told more"
        make = fail if role is Role.BROKER else warn
        return [make("rights", f"DescribeCluster: {error}", todo)]
    found = [
        ok(
            "cluster",
            f"{cluster.cluster_id}, {len(cluster.nodes)} {role.name.lower()}{'s' * (len(cluster.nodes) != 1)}",
        )
    ]
    if await has_authorizer(connection) is False:
        todo = "expected authorizer.class.name on its nodes, unless the cluster is meant to be open"
        return [*found, warn("rights", "no authorizer: everybody may do everything, and there are no ACLs", todo)]
    return found + [_right(cluster, operation, purpose) for operation, purpose in _NEEDS[role]]


def _right(cluster: ClusterDescription, operation: AclOperation, purpose: str) -> Finding:
    may = cluster.may(operation)
    todo = f"allow it: --operation {operation.name} --cluster"
    if may:
        return ok("rights", f"{operation.name} on the cluster, for {purpose}")
    # Without DESCRIBE a broker tells no right at all.
    what = "is not known" if may is None or not cluster.operations else "is denied"
    text = f"{operation.name} on the cluster {what}, which is needed for {purpose}"
    return (warn if operation is AclOperation.ALTER else fail)("rights", text, todo)


async def _clock(connection: Connection) -> Finding:
    """Compare this clock with the leader's, which DescribeQuorum tells of the leader's own log."""
    try:
        before = time.time()
        quorum = await describe_quorum(connection)
        between = (before + time.time()) / 2
    except (MetadataError, RequestError) as error:
        return ok("cluster clock", f"not known: DescribeQuorum: {error}")
    leader = next((each for each in quorum.voters if each.replica_id == quorum.leader_id), None)
    if leader is None or leader.last_caught_up_timestamp < 0:
        return ok("cluster clock", "not known: the leader does not tell its time")
    apart = between - leader.last_caught_up_timestamp / 1000
    text = f"this one is {abs(apart):.1f} s {'ahead of' if apart > 0 else 'behind'} the quorum leader's"
    if abs(apart) < _APART_S:
        return ok("cluster clock", text)
    return warn("cluster clock", text, "run NTP on both: ages, --max-age and times of changes are off by as much")
