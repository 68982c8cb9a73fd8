"""The `aclog status` command."""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from aclog.authorizer.settings import generation_of_level
from aclog.cli.flags.common import Output, OutputFlags, format_option
from aclog.cli.flags.target import ClusterFlags
from aclog.cli.options import Group, Option
from aclog.client.connection import Role
from aclog.client.requests import ReplicaDescription, Status, describe_status
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.sources.live import AdminSource, ClusterKafka, QuorumSource, cluster_kafka, connect_to_first, level_text
from aclog.terminal.columns import ROW_FORMATS, Column, OutputFormat
from aclog.terminal.notices import progress
from aclog.terminal.output import emit, note

# The `aclog status` command.


app = Group()


@app.command()
def status(
    cluster: ClusterFlags,
    output: OutputFlags,
    json: Annotated[bool, Option("--json", metavar="", help="One JSON object, as --format json.")] = False,
    format_: Annotated[OutputFormat | None, format_option(*ROW_FORMATS, default="table")] = None,
) -> None:
    """Show the leader of a running cluster, its high-water mark, and its replicas.

    Needs DESCRIBE on the cluster, and ALTER with --bootstrap-controller.

    [bold]Examples[/]

      aclog status HOST:9092
      aclog status --bootstrap-controller HOST:9093
    """
    from aclog.metalog.errors import ConfigError
    from aclog.sources.server_flags import client_security, parse_servers

    servers = parse_servers("--bootstrap-server", cluster.bootstrap_server)
    controllers = parse_servers("--bootstrap-controller", cluster.bootstrap_controller)
    if bool(servers) is bool(controllers):
        raise ConfigError("exactly one must be given: --bootstrap-server HOST:PORT or --bootstrap-controller HOST:PORT")
    how = output.choose(OutputFormat.JSON if json and format_ is None else format_, pipe=OutputFormat.TABLE)
    security = client_security(cluster.command_config)
    print_status(servers or controllers, security, controller=bool(controllers), output=how)


# The report of `aclog status`: a table or one JSON object.


STATUS_COLUMNS = (Column(key="what"), Column(key="is", flows=True))


def print_status(servers: Sequence[HostPort], security: ClientSecurity, *, controller: bool, output: Output) -> None:
    """Print the status that the first responding server returns.

    Raises:
        MetadataError: no server responds, or one refuses.

    """
    source: AdminSource | QuorumSource
    if controller:
        source = QuorumSource(controllers=tuple(servers), security=security, notify=note)
    else:
        source = AdminSource(servers=tuple(servers), security=security, notify=note)
    with progress(f"querying {','.join(map(str, servers))}"):
        status = asyncio.run(_ask(servers, security, controller=controller))
        kafka = cluster_kafka(source)
    if output.form in (OutputFormat.JSON, OutputFormat.JSONL) and not output.columns:
        emit(json.dumps(_object(status, kafka)))
    else:
        rows = ({"what": what, "is": text} for what, text in _rows(status, kafka, time.time()))
        output.print_rows(STATUS_COLUMNS, rows)


async def _ask(servers: Sequence[HostPort], security: ClientSecurity, *, controller: bool) -> Status:
    role = Role.CONTROLLER if controller else Role.BROKER
    async with await connect_to_first(servers, security, role) as connection:
        return await describe_status(connection, security, controller=controller)


def _rows(status: Status, kafka: ClusterKafka, now: float) -> Iterator[tuple[str, str]]:
    quorum, features = status.quorum, status.features
    yield "cluster", status.cluster.cluster_id
    yield "server", f"{status.address}, a {'controller' if status.controller else 'broker'}"
    yield "leader", f"{quorum.leader_id}, in epoch {quorum.leader_epoch}"
    yield "high-water mark", str(quorum.high_watermark)
    for kind, replicas in (("voter", quorum.voters), ("observer", quorum.observers)):
        for each in replicas:
            yield kind, _replica(each, quorum.high_watermark, now)
    role, levels = ("controller", kafka.controllers) if status.controller else ("broker", kafka.brokers)
    for node in status.cluster.nodes:
        fenced = ", fenced: it sends no heartbeats" if node.fenced else ""
        software = f", {level_text(levels[node.node_id])}" if node.node_id in levels else ""
        yield role, f"{node.node_id} at {node.address}{fenced}{software}"
    others = kafka.brokers if status.controller else kafka.controllers
    for node_id, level in sorted(others.items()):
        how = " when it registered" if status.controller and level is not None else ""
        yield "broker" if status.controller else "controller", f"{node_id}, {level_text(level)}{how}"
    if software := kafka.text():
        yield "Kafka", software
    for name, level in sorted(features.finalized.items()):
        least, most = features.supported.get(name, (level, level))
        yield "feature", f"{name} {level} (of {least} to {most})"
    if status.open_nodes:
        yield "authorizer", f"none at {', '.join(map(str, status.open_nodes))}"
    yield from (("CIDR hosts", f"{text} at {', '.join(nodes)}") for text, nodes in _by_cidr(status).items())
    for warning in _warnings(status, kafka):
        yield "warning", warning


def _warnings(status: Status, kafka: ClusterKafka) -> list[str]:
    return [*status.warnings, *filter(None, [kafka.warning()])]


def _by_cidr(status: Status) -> dict[str, list[str]]:
    """Return the nodes by what they do with CIDR ranges; nothing if all are known not to use them."""
    if not any(cidr is not False for cidr in status.cidr.values()):
        return {}
    words = {True: "on", False: "off", None: "unknown"}
    nodes: dict[str, list[str]] = {}
    for address, cidr in status.cidr.items():
        nodes.setdefault(words[cidr], []).append(str(address))
    return nodes


def _replica(replica: ReplicaDescription, high_watermark: int, now: float) -> str:
    behind = max(high_watermark - replica.log_end_offset, 0)
    text = f"{replica.replica_id} at offset {replica.log_end_offset}, {behind} behind"
    if replica.last_fetch_timestamp < 0:
        return text
    return f"{text}, last fetch {max(now - replica.last_fetch_timestamp / 1000, 0):.1f} s ago"


def _object(status: Status, kafka: ClusterKafka) -> dict[str, Any]:
    quorum, features = status.quorum, status.features
    return {
        "clusterId": status.cluster.cluster_id,
        "asked": str(status.address),
        "controllerId": status.cluster.controller_id,
        "nodes": [
            {"nodeId": each.node_id, "address": str(each.address), "fenced": each.fenced}
            for each in status.cluster.nodes
        ],
        "leaderId": quorum.leader_id,
        "leaderEpoch": quorum.leader_epoch,
        "highWatermark": quorum.high_watermark,
        "voters": [_replica_object(each) for each in quorum.voters],
        "observers": [_replica_object(each) for each in quorum.observers],
        "features": dict(sorted(features.finalized.items())),
        "cidr": {str(address): cidr for address, cidr in status.cidr.items()},
        "authorizers": {str(address): has_one for address, has_one in status.authorizers.items()},
        "kafka": {
            "brokers": _versions(kafka.brokers),
            "controllers": _versions(kafka.controllers),
            "decideAlike": kafka.decides_alike,
            "text": kafka.text(),
        },
        "warnings": _warnings(status, kafka),
    }


def _versions(levels: Mapping[int, int | None]) -> list[dict[str, Any]]:
    return [
        {"nodeId": node_id, "version": None if level is None else generation_of_level(level).value}
        for node_id, level in sorted(levels.items())
    ]


def _replica_object(replica: ReplicaDescription) -> dict[str, int]:
    return {
        "replicaId": replica.replica_id,
        "logEndOffset": replica.log_end_offset,
        "lastFetchTimestamp": replica.last_fetch_timestamp,
    }
