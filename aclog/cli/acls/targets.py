"""Where `acls add` and `acls remove` change rules: in a log, as its one writer, or through a server that runs."""

import asyncio
import secrets
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from attrs import define, field, frozen

from aclog.authorizer.acl import AclBindingFilter, PatternType, ResourcePattern, StandardAcl
from aclog.authorizer.control import create_acls, delete_acls
from aclog.authorizer.interface import AclCreateResult, AclDeleteResult
from aclog.cli.acls.flags import TargetFlags
from aclog.cli.log_writer import LogWriter, open_writer
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import ConfigError
from aclog.metalog.records import MetadataRecord
from aclog.metalog.uuids import random_uuid
from aclog.nodes.client import acl_requests
from aclog.nodes.client.connection import Connection
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.sources.bootstrap import client_security, connect_to_first, parse_servers
from aclog.sources.zookeeper import open_store, read_everything, store_properties
from aclog.zkstore.acl_store import AclStore
from aclog.zkstore.authorizer.acl_cache import AclCache
from aclog.zkstore.authorizer.changes import StoreChanges
from aclog.zkstore.znodes.paths import name_problem

_T = TypeVar("_T")


class RuleTarget(Protocol):
    """What changes rules, for the time of one command."""

    def standing(self, patterns: Sequence[ResourcePattern]) -> set[StandardAcl]:
        """The rules that stand on these very resource patterns."""
        ...

    def create(self, acls: Sequence[StandardAcl]) -> Sequence[AclCreateResult]:
        """Create rules, committed when it returns; one result a rule, in order."""
        ...

    def delete(self, filters: Sequence[AclBindingFilter]) -> Sequence[AclDeleteResult]:
        """Delete what the filters take, committed when it returns; one result a filter, in order."""
        ...


@frozen(kw_only=True)
class ChosenTarget:
    """The parsed values of TargetFlags, of which exactly one of the first four must be given."""

    log: Path | None = None
    servers: tuple[HostPort, ...] = ()
    controllers: tuple[HostPort, ...] = ()
    store: Mapping[str, str] = field(factory=dict)
    """Properties of AclAuthorizer, whose ACLs are in ZooKeeper."""
    security: ClientSecurity = field(factory=ClientSecurity)


def choose_target(flags: TargetFlags) -> ChosenTarget:
    """Return the target that the flags name.

    Raises:
        ConfigError: an invalid address, a bad properties file, or a property that is not KEY=VALUE.

    """
    return ChosenTarget(
        log=flags.log,
        servers=parse_servers("--bootstrap-server", flags.bootstrap_server),
        controllers=parse_servers("--bootstrap-controller", flags.bootstrap_controller),
        store=store_properties(flags.authorizer_properties),
        security=client_security(flags.command_config),
    )


@contextmanager
def open_target(chosen: ChosenTarget, *, force: bool) -> Iterator[RuleTarget]:
    """The target that is named.

    Raises:
        ConfigError: none is named, or more than one; or the security settings cannot be used.
        LockedError, LogError, DecodeError: the log cannot be written, or is damaged; or no server can be reached.

    """
    if sum(map(bool, (chosen.log, chosen.servers, chosen.controllers, chosen.store))) != 1:
        raise ConfigError(
            "exactly one place must be given: --log DIR, --bootstrap-server HOST:PORT, "
            "--bootstrap-controller HOST:PORT or --authorizer-properties zookeeper.connect=HOST:PORT"
        )
    if chosen.log is not None:
        with open_writer(chosen.log, force=force) as writer:
            yield _LogTarget(writer)
        return
    if chosen.store:
        with open_store(chosen.store) as store:
            yield _ZooKeeperTarget(store)
        return
    with asyncio.Runner() as runner:
        connection = runner.run(connect_to_first(chosen.servers or chosen.controllers, chosen.security))
        try:
            yield _ServerTarget(runner, connection)
        finally:
            runner.run(connection.close())


@define
class _LogTarget:
    """A log; nothing of a request is written where a part of it is refused."""

    _writer: LogWriter

    def standing(self, patterns: Sequence[ResourcePattern]) -> set[StandardAcl]:
        """See RuleTarget."""
        filters = [_exactly(pattern) for pattern in patterns]
        return {rule.acl for wanted in filters for rule in self._writer.image.acls.matching(wanted)}

    def create(self, acls: Sequence[StandardAcl]) -> Sequence[AclCreateResult]:
        """See RuleTarget."""
        creation = create_acls(self._writer.image.acls, acls, lambda: random_uuid(secrets.token_bytes))
        if not any(result.error for result in creation.results):
            self._append(creation.records)
        return creation.results

    def delete(self, filters: Sequence[AclBindingFilter]) -> Sequence[AclDeleteResult]:
        """See RuleTarget."""
        deletion = delete_acls(self._writer.image.acls, filters)
        if not any(result.error for result in deletion.results):
            self._append(deletion.records)
        return deletion.results

    def _append(self, records: Sequence[MetadataRecord]) -> None:
        if records:
            self._writer.append([encode_record(record) for record in records])


@define
class _ServerTarget:
    """A server, which takes the good parts of a request and refuses the others."""

    _runner: asyncio.Runner
    _connection: Connection

    def standing(self, patterns: Sequence[ResourcePattern]) -> set[StandardAcl]:
        """See RuleTarget."""
        ask = acl_requests.describe_acls
        return {acl for pattern in patterns for acl in self._run(ask(self._connection, _exactly(pattern)))}

    def create(self, acls: Sequence[StandardAcl]) -> Sequence[AclCreateResult]:
        """See RuleTarget."""
        return self._run(acl_requests.create_acls(self._connection, acls))

    def delete(self, filters: Sequence[AclBindingFilter]) -> Sequence[AclDeleteResult]:
        """See RuleTarget."""
        return self._run(acl_requests.delete_acls(self._connection, filters))

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return self._runner.run(work)


@define(eq=False)
class _ZooKeeperTarget:
    """A store, in which each resource's rules change in one step."""

    _store: AclStore

    def standing(self, patterns: Sequence[ResourcePattern]) -> set[StandardAcl]:
        """See RuleTarget."""
        found: set[StandardAcl] = set()
        for pattern in patterns:
            if name_problem(pattern.name) is None:
                for node in self._store.read_all(pattern):
                    found.update(entry.on(pattern) for entry in node.entries)
        return found

    def create(self, acls: Sequence[StandardAcl]) -> Sequence[AclCreateResult]:
        """See RuleTarget."""
        self._store.create_paths()
        return self._changes(AclCache()).create(acls)

    def delete(self, filters: Sequence[AclBindingFilter]) -> Sequence[AclDeleteResult]:
        """See RuleTarget; only for what filters do not name, the whole store is read."""
        rules = AclCache()
        if any(wanted.pattern_type == PatternType.MATCH for wanted in filters):
            rules.replace(read_everything(self._store).resources)
        return self._changes(rules).delete(filters)

    def _changes(self, rules: AclCache) -> StoreChanges:
        return StoreChanges(store=self._store, cache=rules, updated=rules.put, lock=threading.RLock())


def _exactly(pattern: ResourcePattern) -> AclBindingFilter:
    return AclBindingFilter(
        resource_type=pattern.resource_type, resource_name=pattern.name, pattern_type=pattern.pattern_type
    )
