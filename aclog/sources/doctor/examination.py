"""All checks that apply to a source, or to none."""

from collections.abc import Callable, Iterator

from aclog.metalog.errors import MetadataError
from aclog.sources.acls_source import AclsSource
from aclog.sources.choice import ChosenSource
from aclog.sources.doctor.finding import Finding, fail, text_of, warn
from aclog.sources.doctor.installation import installation


def examination(
    choose: Callable[[Callable[[str], None]], ChosenSource | None], context: str | None = None
) -> Iterator[Finding]:
    """Yield the findings as they come: the installation's first, then those of the source that `choose` returns.

    `choose` takes what is told of notes, and raises a MetadataError if the source cannot even be named; `context` is
    the one that the command names.
    """
    yield from installation(context)
    notes: list[str] = []
    try:
        chosen = choose(notes.append)
    except (MetadataError, OSError) as error:
        yield fail("source", text_of(error))
        return
    if chosen is not None:
        yield from _source(chosen, notes)


def _source(chosen: ChosenSource, notes: list[str]) -> Iterator[Finding]:
    from aclog.sources.cluster_kafka import of_registrations
    from aclog.sources.doctor.log_health import kafka_finding, log_health, state_health

    if isinstance(chosen.source, AclsSource):
        yield from state_health("rules", chosen.source.name, chosen, notes)
        return
    from aclog.sources.paths import CheckpointSource, LogSource

    if isinstance(chosen.source, LogSource):
        yield from log_health(chosen.source.directory, chosen, notes)
        return
    if isinstance(chosen.source, CheckpointSource):
        image = yield from state_health("checkpoint", chosen.source.name, chosen, notes)
        if image is not None:
            yield from kafka_finding(of_registrations(image))
        return
    yield from _running(chosen, notes)


def _running(chosen: ChosenSource, notes: list[str]) -> Iterator[Finding]:
    from aclog.nodes.client.peer import Role
    from aclog.sources.admin import AdminSource
    from aclog.sources.cluster_kafka import cluster_kafka
    from aclog.sources.doctor.connection import connections
    from aclog.sources.doctor.finding import Level
    from aclog.sources.doctor.log_health import kafka_finding, state_health
    from aclog.sources.quorum import QuorumSource

    source, usable = chosen.source, True
    if isinstance(source, AdminSource | QuorumSource):
        is_admin = isinstance(source, AdminSource)
        servers = source.servers if isinstance(source, AdminSource) else source.controllers
        usable = False
        for finding in connections(servers, source.security, Role.BROKER if is_admin else Role.CONTROLLER):
            usable |= finding.check == "role" and finding.level is not Level.FAIL
            yield finding
    if usable:  # else the connection has said why
        image = yield from state_health("state", source.name, chosen, notes)
        if image is not None and isinstance(source, AdminSource | QuorumSource):
            try:
                kafka = cluster_kafka(source, image)
            except MetadataError as error:
                yield warn("kafka", f"which one the nodes run is unknown: {text_of(error)}", "run this again")
            else:
                yield from kafka_finding(kafka)
