"""Adding and removing ACLs, as kafka-acls.sh does: the ACLs that flags name, and the targets that change."""

import asyncio
import secrets
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from attrs import evolve, field

from aclog.authorizer.acl import AclBindingFilter, ResourcePattern, StandardAcl, acl_text, code_name, resource_of
from aclog.authorizer.codes import SUPPORTED_OPERATIONS, AclOperation, PatternType, ResourceType
from aclog.authorizer.control import create_acls, delete_acls
from aclog.authorizer.interface import AclCreateResult, AclDeleteResult
from aclog.authorizer.settings import RANGES_LEVEL
from aclog.cli.flags.question import CLUSTER, ResourceFlags, parse_principal
from aclog.cli.flags.target import Entry, RuleFlags, TargetFlags, entry_of, resource_filter
from aclog.cli.images import matches_ranges, warn_of_unmatched
from aclog.client import requests
from aclog.client.connection import Connection, Role
from aclog.client.requests import describe_features
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import ConfigError, MetadataError, plural
from aclog.metalog.primitives import random_uuid
from aclog.metalog.records import MetadataRecord
from aclog.metalog.values import define, frozen
from aclog.snapshots.image import METADATA_VERSION
from aclog.sources.live import connect_to_first
from aclog.sources.server_flags import client_security, parse_servers
from aclog.sources.zookeeper import open_store, read_everything, store_properties
from aclog.targets.log import LogWriter, open_writer
from aclog.terminal.output import confirms, emit, note, value_formatter, warn
from aclog.zookeeper.acl_store import AclStore
from aclog.zookeeper.authorizer import AclCache, StoreChanges, takes_prefixed
from aclog.zookeeper.znodes import name_problem


def adding(pattern: ResourcePattern, entries: Iterable[Entry]) -> str:
    """Return the message for ACLs that are added."""
    return f"Adding ACLs for resource `{value_formatter()(pattern)}`: \n {_indented(entries)}\n"


def already_there(pattern: ResourcePattern, entry: Entry) -> str:
    """Return the message for an ACL that exists."""
    return f"Acl (pattern={value_formatter()(pattern)}, entry={value_formatter()(entry)}) already exists."


def question(pattern: ResourcePattern, entries: list[Entry]) -> str:
    """Return the question before ACLs are removed."""
    name = value_formatter()(pattern)
    if not entries:
        return f"Are you sure you want to delete all ACLs for resource filter `{name}`? (y/n)"
    return f"Are you sure you want to remove ACLs: \n {_indented(entries)}\n from resource filter `{name}`? (y/n)"


def _indented(entries: Iterable[Entry]) -> str:
    show = value_formatter()
    return "\n".join(f"\t{show(entry)}" for entry in entries)


# The ACLs to add or remove (org.apache.kafka.tools.AclCommand). Error messages are Kafka's.


Plan: TypeAlias = dict[ResourcePattern, list[Entry]]
"""Entries by resource; when removing, no entries means every ACL of the resource."""

_PRODUCER_TOPIC = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
_PRODUCER_TRANSACTIONAL_ID = (AclOperation.WRITE, AclOperation.DESCRIBE)
_PRODUCER_CLUSTER = (AclOperation.IDEMPOTENT_WRITE,)
_CONSUMER_TOPIC = (AclOperation.READ, AclOperation.DESCRIBE)
_CONSUMER_GROUP = (AclOperation.READ,)


def plan_to_add(resources: ResourceFlags, entries: RuleFlags) -> Plan:
    """Return the ACLs to add.

    Raises:
        ConfigError: incompatible flags, no resource, no principal, or an operation that the resource type lacks.

    """
    if resources.pattern_type in {PatternType.ANY, PatternType.MATCH}:
        name = code_name(PatternType, resources.pattern_type)
        raise ConfigError(f"A '--resource-pattern-type' value of '{name}' is not valid when adding acls")
    plan = plan_to_remove(resources, entries)
    if not all(plan.values()):
        raise ConfigError("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs")
    return plan


def plan_to_remove(resources: ResourceFlags, entries: RuleFlags) -> Plan:
    """Return the ACLs to remove. Without a principal, `--operation` and hosts are ignored, as in Kafka.

    Raises:
        ConfigError: as plan_to_add, but principals are optional and the pattern type may be ANY or MATCH.

    """
    _check_convenience_flags(resources, entries)
    plan: Plan = {}
    if not entries.producer and not entries.consumer:
        _merge(plan, _named(resources), entries.entries(entries.operations or (AclOperation.ALL,)))
    if entries.producer:
        _plan_producer(plan, _named(resources), entries)
    if entries.consumer:
        patterns = _named(resources)
        _merge(plan, _of_type(patterns, ResourceType.TOPIC), entries.entries(_CONSUMER_TOPIC))
        _merge(plan, _of_type(patterns, ResourceType.GROUP), entries.entries(_CONSUMER_GROUP))
    _check_operations(plan)
    return plan


def _plan_producer(plan: Plan, patterns: Sequence[ResourcePattern], entries: RuleFlags) -> None:
    _merge(plan, _of_type(patterns, ResourceType.TOPIC), entries.entries(_PRODUCER_TOPIC))
    transactional_ids = _of_type(patterns, ResourceType.TRANSACTIONAL_ID)
    _merge(plan, transactional_ids, entries.entries(_PRODUCER_TRANSACTIONAL_ID))
    if entries.idempotent:
        _merge(plan, [CLUSTER], entries.entries(_PRODUCER_CLUSTER))


def _named(resources: ResourceFlags) -> list[ResourcePattern]:
    patterns = resources.patterns()
    if not patterns:
        raise ConfigError(
            "You must provide at least one resource: --topic, --group, --cluster, --transactional-id, "
            "--delegation-token or --user-principal"
        )
    return patterns


def _of_type(patterns: Sequence[ResourcePattern], resource_type: ResourceType) -> list[ResourcePattern]:
    return [pattern for pattern in patterns if pattern.resource_type == resource_type]


def _merge(plan: Plan, patterns: Sequence[ResourcePattern], entries: Sequence[Entry]) -> None:
    for pattern in patterns:
        plan[pattern] = list(dict.fromkeys([*plan.get(pattern, []), *entries]))


def _check_convenience_flags(resources: ResourceFlags, entries: RuleFlags) -> None:
    """Check what --producer, --consumer and --idempotent require and exclude."""
    for flag, enabled in (("producer", entries.producer), ("consumer", entries.consumer)):
        excluded = {
            "operation": entries.operations,
            "deny-principal": entries.deny_principals,
            "deny-host": entries.deny_hosts,
        }
        for other, values in excluded.items():
            if enabled and values:
                raise ConfigError(f'Option "[{other}]" can\'t be used with option "[{flag}]"')
    if entries.producer and not resources.topics:
        raise ConfigError("With --producer you must specify a --topic")
    if entries.idempotent and not entries.producer:
        raise ConfigError("The --idempotent option is only available if --producer is set")
    if entries.consumer and not _fits_consumer(resources, entries):
        raise ConfigError(
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option "
            "should be specified"
        )


def _fits_consumer(resources: ResourceFlags, entries: RuleFlags) -> bool:
    others = resources.cluster or bool(resources.transactional_ids)
    return bool(resources.topics and resources.groups) and (entries.producer or not others)


def _check_operations(plan: Plan) -> None:
    for pattern, entries in plan.items():
        supported = (*SUPPORTED_OPERATIONS[ResourceType(pattern.resource_type)], AclOperation.ALL)
        if any(entry.operation not in supported for entry in entries):
            kind = code_name(ResourceType, pattern.resource_type)
            names = ", ".join(operation.name for operation in sorted(supported))
            raise ConfigError(f"ResourceType {kind} only supports operations [{names}]")


def rule_of(pattern: ResourcePattern, entry: Entry) -> StandardAcl:
    """Return the ACL of an entry on a resource."""
    return StandardAcl(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )


def filters_of(pattern: ResourcePattern, entries: Sequence[Entry]) -> Iterator[AclBindingFilter]:
    """Yield filters that match these entries of the resource; without entries, one that matches all entries."""
    if not entries:
        yield resource_filter(pattern)
    for entry in entries:
        yield AclBindingFilter(
            resource_type=pattern.resource_type,
            resource_name=pattern.name,
            pattern_type=pattern.pattern_type,
            principal=entry.principal,
            host=entry.host,
            operation=entry.operation,
            permission_type=entry.permission_type,
        )


# Targets of `acls add` and `acls remove`: a log, a running server, or a ZooKeeper.


_T = TypeVar("_T")


class AclTarget(Protocol):
    """Where one command reads and changes ACLs."""

    def existing(self, patterns: Sequence[ResourcePattern]) -> set[StandardAcl]:
        """Return the ACLs of exactly these resource patterns."""
        ...

    def of_principal(self, principal: str) -> set[StandardAcl]:
        """Return all ACLs of exactly this principal."""
        ...

    def create(self, acls: Sequence[StandardAcl]) -> Sequence[AclCreateResult]:
        """Create ACLs and wait until they are committed; return one result per ACL, in order."""
        ...

    def delete(self, filters: Sequence[AclBindingFilter]) -> Sequence[AclDeleteResult]:
        """Delete the ACLs that match and wait until that is committed; return one result per filter, in order."""
        ...

    def matches_ranges(self) -> bool:
        """Return whether all nodes that decide are known to take hosts for ranges (Kafka 4.4)."""
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
def open_target(target: ChosenTarget, *, force: bool) -> Iterator[AclTarget]:
    """Open the target.

    Raises:
        ConfigError: not exactly one is given, or the security settings cannot be used.
        LockedError, LogError, DecodeError: the log cannot be written, or is damaged; or no server can be reached.

    """
    if sum(map(bool, (target.log, target.servers, target.controllers, target.store))) != 1:
        raise ConfigError(
            "exactly one target must be given: --log DIR, --bootstrap-server HOST:PORT, "
            "--bootstrap-controller HOST:PORT or --authorizer-properties zookeeper.connect=HOST:PORT; or a context: "
            "-c NAME"
        )
    if target.log is not None:
        with open_writer(target.log, force=force) as writer:
            yield _LogTarget(writer)
        return
    if target.store:
        with open_store(target.store) as store:
            yield _ZooKeeperTarget(store, takes_prefixed(target.store))
        return
    with asyncio.Runner() as runner:
        role = Role.BROKER if target.servers else Role.CONTROLLER
        connection = runner.run(connect_to_first(target.servers or target.controllers, target.security, role))
        try:
            yield _ServerTarget(runner, connection)
        finally:
            runner.run(connection.close())


@define
class _LogTarget:
    """A log; a request is written whole or, if any part of it is refused, not at all."""

    _writer: LogWriter

    def existing(self, patterns: Sequence[ResourcePattern]) -> set[StandardAcl]:
        """See AclTarget."""
        filters = [_exactly(pattern) for pattern in patterns]
        return {rule.acl for acl_filter in filters for rule in self._writer.image.acls.matching(acl_filter)}

    def of_principal(self, principal: str) -> set[StandardAcl]:
        """See AclTarget."""
        return {rule.acl for rule in self._writer.image.acls.matching(AclBindingFilter(principal=principal))}

    def create(self, acls: Sequence[StandardAcl]) -> Sequence[AclCreateResult]:
        """See AclTarget."""
        creation = create_acls(self._writer.image.acls, acls, lambda: random_uuid(secrets.token_bytes))
        if not any(result.error for result in creation.results):
            self._append(creation.records)
        return creation.results

    def delete(self, filters: Sequence[AclBindingFilter]) -> Sequence[AclDeleteResult]:
        """See AclTarget."""
        deletion = delete_acls(self._writer.image.acls, filters)
        if not any(result.error for result in deletion.results):
            self._append(deletion.records)
        return deletion.results

    def matches_ranges(self) -> bool:
        """See AclTarget."""
        return matches_ranges(self._writer.image)

    def _append(self, records: Sequence[MetadataRecord]) -> None:
        if records:
            self._writer.append([encode_record(record) for record in records])


@define
class _ServerTarget:
    """A server, which accepts the valid parts of a request and refuses the others."""

    _runner: asyncio.Runner
    _connection: Connection

    def existing(self, patterns: Sequence[ResourcePattern]) -> set[StandardAcl]:
        """See AclTarget."""
        describe = requests.describe_acls
        return {acl for pattern in patterns for acl in self._run(describe(self._connection, _exactly(pattern)))}

    def of_principal(self, principal: str) -> set[StandardAcl]:
        """See AclTarget."""
        return set(self._run(requests.describe_acls(self._connection, AclBindingFilter(principal=principal))))

    def create(self, acls: Sequence[StandardAcl]) -> Sequence[AclCreateResult]:
        """See AclTarget."""
        return self._change(requests.create_acls(self._connection, acls))

    def delete(self, filters: Sequence[AclBindingFilter]) -> Sequence[AclDeleteResult]:
        """See AclTarget."""
        return self._change(requests.delete_acls(self._connection, filters))

    def matches_ranges(self) -> bool:
        """See AclTarget. No older node can be part of a cluster that is finalized at a level of Kafka 4.4."""
        try:
            finalized = self._run(describe_features(self._connection)).finalized
        except MetadataError:
            return False
        return finalized.get(METADATA_VERSION, 0) >= RANGES_LEVEL

    def _change(self, request: Coroutine[Any, Any, _T]) -> _T:
        try:
            return self._run(request)
        except KeyboardInterrupt:
            warn(
                f"{self._connection.address}: the request was sent, and may be carried out: look with `aclog acls list`"
            )
            raise

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return self._runner.run(work)


@define(eq=False)
class _ZooKeeperTarget:
    """A ZooKeeper, which changes the ACLs of each resource atomically."""

    _store: AclStore
    _takes_prefixed: bool

    def existing(self, patterns: Sequence[ResourcePattern]) -> set[StandardAcl]:
        """See AclTarget."""
        acls: set[StandardAcl] = set()
        for pattern in patterns:
            if name_problem(pattern.name) is None:
                for node in self._store.read_all(pattern):
                    acls.update(entry.on(pattern) for entry in node.entries)
        return acls

    def of_principal(self, principal: str) -> set[StandardAcl]:
        """See AclTarget. Reads the whole store."""
        resources = read_everything(self._store).resources.values()
        rules = (entry.on(acls.pattern) for acls in resources for entry in acls.entries)
        return {acl for acl in rules if acl.principal == principal}

    def create(self, acls: Sequence[StandardAcl]) -> Sequence[AclCreateResult]:
        """See AclTarget."""
        self._store.create_paths()  # a ZooKeeper that no AclAuthorizer has used has no root nodes yet
        return self._changes(AclCache()).create(acls)

    def delete(self, filters: Sequence[AclBindingFilter]) -> Sequence[AclDeleteResult]:
        """See AclTarget. Only a MATCH filter requires reading the whole store."""
        rules = AclCache()
        if any(acl_filter.pattern_type == PatternType.MATCH for acl_filter in filters):
            rules.replace(read_everything(self._store).resources)
        return self._changes(rules).delete(filters)

    def matches_ranges(self) -> bool:
        """See AclTarget."""
        return False

    def _changes(self, rules: AclCache) -> StoreChanges:
        return StoreChanges(
            store=self._store,
            cache=rules,
            updated=rules.put,
            lock=threading.RLock(),
            takes_prefixed=self._takes_prefixed,
        )


def _exactly(pattern: ResourcePattern) -> AclBindingFilter:
    return AclBindingFilter(
        resource_type=pattern.resource_type, resource_name=pattern.name, pattern_type=pattern.pattern_type
    )


# Adding and removing ACLs, with the output of kafka-acls.sh.


_NO_ANSWER = "no answer on stdin: nothing was removed; use --force to remove without confirmation"


def add_acls(target: ChosenTarget, resources: ResourceFlags, entries: RuleFlags, *, force: bool) -> None:
    """Add the ACLs of the flags, in one batch, and print what kafka-acls.sh prints; warn if one matches no principal.

    Raises:
        ConfigError: incompatible flags.
        AclRequestError, RequestError: an ACL that the controller refuses; in a log, none is added then.
        LockedError, LogError, DecodeError: the log cannot be written, or is damaged; or the server is unreachable.

    """
    plan = plan_to_add(resources, entries)
    with open_target(target, force=force) as rules:
        _add(rules, plan)


def _additions(rules: AclTarget, plan: Plan) -> Iterable[str]:
    existing = rules.existing(list(plan))
    for pattern, entries in plan.items():
        new = []
        for entry in entries:
            if rule_of(pattern, entry) in existing:
                yield already_there(pattern, entry)
            else:
                new.append(entry)
        if new:
            yield adding(pattern, new)


def copy_acls(target: ChosenTarget, original: str, principals: Sequence[str], *, force: bool) -> None:
    """Add the ACLs of one principal for others, in one batch, and print what add_acls prints.

    Raises as add_acls; ConfigError: a principal without a colon, the same one twice, or one that has no ACL.
    """
    copied, receivers = parse_principal(original), list(dict.fromkeys(map(parse_principal, principals)))
    if copied in receivers:
        raise ConfigError(f"--to-principal {copied}: that is whose ACLs are copied: expected another principal")
    with open_target(target, force=force) as rules:
        acls = sorted(rules.of_principal(copied), key=acl_text)
        if not acls:
            raise ConfigError(f"--from-principal {copied}: no ACL is of this principal; names are compared exactly")
        plan: Plan = {}
        for acl in (evolve(each, principal=principal) for principal in receivers for each in acls):
            plan.setdefault(resource_of(acl), []).append(entry_of(acl))
        _add(rules, plan)


def _add(rules: AclTarget, plan: Plan) -> None:
    acls = [rule_of(pattern, entry) for pattern, listed in plan.items() for entry in listed]
    lines = list(_additions(rules, plan))  # before they are added: which ones exist already
    _raise_first(rules.create(acls))
    for line in lines:
        emit(line)
    warn_of_unmatched(acls, rules.matches_ranges)


def remove_acls(target: ChosenTarget, resources: ResourceFlags, entries: RuleFlags, *, force: bool) -> None:
    """Remove the ACLs that the flags name, in one batch; without `force`, confirm each resource on stdin.

    Raises as add_acls; and ConfigError if stdin ends without an answer.
    """
    plan = plan_to_remove(resources, entries)
    confirmed = {
        pattern: listed for pattern, listed in plan.items() if force or confirms(question(pattern, listed), _NO_ANSWER)
    }
    if not confirmed:
        return
    with open_target(target, force=force) as rules:
        results = rules.delete([each for pattern, listed in confirmed.items() for each in filters_of(pattern, listed)])
        _raise_first(results)
    removed = {rule for result in results for rule in result.deleted}
    note(f"{plural(len(removed), 'ACL')} removed")


def _raise_first(results: Iterable[AclCreateResult | AclDeleteResult]) -> None:
    for result in results:
        if result.error is not None:
            raise result.error
