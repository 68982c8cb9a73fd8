"""A node in this process, from its configuration to its shutdown."""

import asyncio
import logging
import sys
from pathlib import Path

from click.exceptions import Exit

from aclog.cli.signals import pause, stop_on_signals, unless
from aclog.client.requests import cluster_id_of
from aclog.config.node_config import NodeConfig
from aclog.config.server_properties import load_config
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.filelog.meta_properties import MetaProperties, read_meta_properties
from aclog.server.audit_log import AuditLog, JsonLines, KafkaLines
from aclog.server.controller.shared import check_installed
from aclog.server.loops import loop_for, prepare_collector
from aclog.server.node import Node, check_certificates
from aclog.server.node_log import configure_logging
from aclog.server.storage import ensure_formatted, require_formatted
from aclog.server.telemetry import Metrics
from aclog.terminal.output import say

FAILED = 1
_RETRY_S = 1.0

_log = logging.getLogger("aclog.serve")


def run_node(
    path: Path, *, strict: bool, json: bool, level: str, audit_level: str, format_if_empty: bool = False
) -> None:
    """Run the node that the file describes until SIGTERM or an interrupt.

    Raises:
        ConfigError: a bad file or certificate, or a missing package; nothing has been started.
        Exit: the node failed, or its directories are not formatted; the log has the reason.

    """
    config = load_config(path, strict=strict)
    check_certificates(config)
    if config.topic is not None:
        check_installed()
    configure_logging(node_id=config.node_id, json=json, level=level)
    for note in config.notes:
        _log.warning("%s", note)
    prepare_collector()
    kind = loop_for(config)
    _log.info("event loop: %s", kind.name)
    metrics = Metrics()
    lines = JsonLines(config.node_id) if json else KafkaLines()
    audit = AuditLog(sys.stderr, audit_level, format=lines.line, registry=metrics.registry)
    try:
        with audit, asyncio.Runner(loop_factory=kind.factory) as runner:
            runner.run(_run(config, audit, metrics, format_if_empty=format_if_empty))
    except MetadataError as error:
        _log.critical("stopped: %s", error)
        raise Exit(FAILED) from None
    _log.info("stopped")


async def _run(config: NodeConfig, audit: AuditLog, metrics: Metrics, *, format_if_empty: bool) -> None:
    stop = stop_on_signals()
    if format_if_empty and read_meta_properties(config.metadata_log_dir) is None:
        meta = await _format(config, stop)
    else:
        meta = require_formatted(config)
    if meta is not None:
        await Node(config=config, meta=meta, audit=audit, metrics=metrics).run(stop)


async def _format(config: NodeConfig, stop: asyncio.Event) -> MetaProperties | None:
    """Format empty directories and print the cluster's id; None if `stop` is set first."""
    cluster_id = None if config.is_controller else await _id_of_cluster(config, stop)
    if stop.is_set():
        return None
    meta = ensure_formatted(config, cluster_id=cluster_id)
    # On stdout at every --log-level: other nodes need it to be formatted.
    say(f"formatted {config.metadata_log_dir}: cluster id {meta.cluster_id}", flush=True)
    return meta


async def _id_of_cluster(config: NodeConfig, stop: asyncio.Event) -> str | None:
    """Query a broker's controllers for their cluster's id until one returns it; None if `stop` is set first."""
    last_warning = ""
    while not stop.is_set():
        try:
            cluster_id = await unless(stop, cluster_id_of(config.controller_quorum, config.controller_client))
        except ConfigError:  # a retry cannot fix the configuration
            raise
        except MetadataError as error:
            if last_warning != str(error):
                _log.warning("no controller returned the cluster id: %s; retrying", error)
            last_warning = str(error)
            await pause(stop, _RETRY_S)
        else:
            return cluster_id
    return None
