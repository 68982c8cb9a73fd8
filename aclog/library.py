"""A log, its states and their decisions, for users of the library; see docs/library.md."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from enum import IntEnum
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias, TypeVar

from attrs import define, field, frozen

from aclog.authorizer.acl import (
    CLUSTER_NAME,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
    StandardAclWithId,
)
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.builder import build_authorizer
from aclog.authorizer.decision import Decision
from aclog.authorizer.enum_names import parse_name
from aclog.authorizer.explain import explain
from aclog.authorizer.explanation import Explanation
from aclog.authorizer.explanation_text import explanation_lines
from aclog.authorizer.hosts import host_address
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.authorizer.standard import StandardAuthorizer
from aclog.metalog.errors import ConfigError
from aclog.snapshots import image
from aclog.snapshots import rule_history as history
from aclog.snapshots.moments import Moment
from aclog.snapshots.state_source import StateSource
from aclog.sources.choice import SourceSelection, choose_source
from aclog.sources.paths import LogSource, open_path

_Enum = TypeVar("_Enum", bound=IntEnum)
Named: TypeAlias = str | _Enum | None
"""An enum value, or its name in any case; None for any."""

LOCALHOST = "127.0.0.1"


def topic(name: str) -> ResourcePattern:
    """A topic."""
    return ResourcePattern(resource_type=ResourceType.TOPIC, name=name)


def group(name: str) -> ResourcePattern:
    """A consumer group."""
    return ResourcePattern(resource_type=ResourceType.GROUP, name=name)


def cluster() -> ResourcePattern:
    """The cluster."""
    return ResourcePattern(resource_type=ResourceType.CLUSTER, name=CLUSTER_NAME)


def transactional_id(name: str) -> ResourcePattern:
    """A transactional id."""
    return ResourcePattern(resource_type=ResourceType.TRANSACTIONAL_ID, name=name)


def delegation_token(token_id: str) -> ResourcePattern:
    """A delegation token, by its id."""
    return ResourcePattern(resource_type=ResourceType.DELEGATION_TOKEN, name=token_id)


def user(principal: str) -> ResourcePattern:
    """A user as the resource (`User:alice`), for CREATE_TOKENS and DESCRIBE_TOKENS."""
    return ResourcePattern(resource_type=ResourceType.USER, name=principal)


@define(eq=False)
class Log:
    """Where states come from; made by open_log, for one thread. `notes` are what recovery had to say."""

    _source: StateSource
    notes: list[str] = field(factory=list)

    @property
    def name(self) -> str:
        """What was opened."""
        return self._source.name

    def image(self, as_of: Moment | None = None) -> "Image":
        """The newest state, or that at an end offset or a time (UTC where it has no zone).

        Raises:
            MetadataError: what was opened is damaged, or does not reach to the moment.

        """
        if as_of is None:
            return Image(self._source.image())
        if isinstance(as_of, datetime) and as_of.tzinfo is None:
            as_of = as_of.replace(tzinfo=UTC)
        return Image(self._source.image_at(as_of))

    def history(self) -> Iterator[history.Change]:
        """Every change of a rule, in the order of the log.

        Raises:
            ConfigError: what was opened is no log.
            MetadataError: it is damaged.

        """
        if not isinstance(self._source, LogSource):
            raise ConfigError(f"{self.name}: a history is in a log only")
        return history.history(self._source.directory)

    def close(self) -> None:
        """Let go of open files; images stay good. A second close is nothing."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def open_log(
    path: str | PathLike[str] | None = None,
    *,
    bootstrap_controller: str | None = None,
    bootstrap_server: str | None = None,
    command_config: str | PathLike[str] | None = None,
) -> Log:
    """Open a directory of segments and checkpoints, a checkpoint (`*.checkpoint`), or a file of rules as JSON lines.

    In the place of a path, `bootstrap_controller` ("host:port,...") follows the log of a running quorum, ours or
    Kafka's, and `bootstrap_server` asks a running cluster's admin API for its rules; `command_config` is a client
    properties file for both. Nothing is locked or changed, and what is being written is followed: each image() is the
    newest.

    Raises:
        ConfigError: none of the three is given, or more than one; an address that is none; a bad properties file.
        LogError: there is nothing at the path.

    """
    notes: list[str] = []
    if path is not None and bootstrap_controller is None and bootstrap_server is None:
        return Log(open_path(fspath(path), notes.append), notes)
    if path is not None:
        raise ConfigError(f"{fspath(path)}: expected either a path or a running cluster, not both")
    config = None if command_config is None else Path(command_config)
    selection = SourceSelection(
        bootstrap_controller=bootstrap_controller, bootstrap_server=bootstrap_server, command_config=config
    )
    return Log(choose_source(selection, notes.append).source, notes)


@frozen(repr=False)
class Image:
    """All rules, credentials, tokens and features at one offset; it never changes.

    Its length is the number of rules, `state` the whole of it.
    """

    state: image.Image

    @property
    def end_offset(self) -> int:
        """The offset after the last record that is in it; pass it as `as_of` to come back here."""
        return self.state.end_offset

    @property
    def timestamp(self) -> int:
        """When that record was written, in ms since 1970; -1 where it is not known."""
        return self.state.timestamp

    def __len__(self) -> int:
        return len(self.state.acls)

    def __repr__(self) -> str:
        return f"Image(end_offset={self.end_offset}, acls={len(self)})"

    def acls(
        self,
        *,
        resource_type: Named[ResourceType] = None,
        name: str | None = None,
        pattern: Named[PatternType] = None,
        principal: str | None = None,
        host: str | None = None,
        operation: Named[AclOperation] = None,
        permission: Named[AclPermissionType] = None,
    ) -> Iterator[StandardAclWithId]:
        """The rules that fit all that is given, lazily, in no order.

        `pattern="MATCH"` with a name takes every rule that affects the resource: literal, prefixes and `*`.

        Raises:
            ConfigError: a name of an enum that is none.

        """
        return self.state.acls.matching(
            AclBindingFilter(
                resource_type=_code(ResourceType, resource_type),
                resource_name=name,
                pattern_type=_code(PatternType, pattern),
                principal=principal,
                host=host,
                operation=_code(AclOperation, operation),
                permission_type=_code(AclPermissionType, permission),
            )
        )

    def authorizer(
        self,
        *,
        super_users: str | Iterable[str] = "",
        allow_everyone_if_no_acl_found: bool = False,
        semantics: Literal["kafka", "documented"] = "kafka",
        cidr: bool = False,
    ) -> "Authorizer":
        """Who decides on this state; `super_users` as the broker's property has it (`User:a;User:b`), or one by one.

        `semantics="documented"` turns off what Kafka 4.3.1 does against its documentation; `cidr` allows ranges of
        addresses as hosts (KIP-1276), which 4.3.1 does not know.

        Raises:
            ConfigError: a super user without colon, or other semantics.

        """
        if semantics not in {"kafka", "documented"}:
            raise ConfigError(f"semantics {semantics!r} is neither 'kafka' nor 'documented'")
        documented = semantics == "documented"
        standard = build_authorizer(
            self.state.acls,
            super_users=super_users if isinstance(super_users, str) else ";".join(super_users),
            allow_everyone=allow_everyone_if_no_acl_found,
            documented=documented,
            cidr=cidr,
        )
        acls = self.state.acls.with_options(documented=documented, cidr=cidr)
        return Authorizer(standard, acls, allow_everyone_if_no_acl_found)


@frozen
class Authorizer:
    """Decides on one state, from any number of threads. `standard` is the authorizer below, for a hot path."""

    standard: StandardAuthorizer = field(repr=False)
    _acls: AclsImage = field(repr=False)
    _allow_everyone: bool

    def check(
        self, principal: str, operation: str | AclOperation, resource: ResourcePattern, *, host: str = LOCALHOST
    ) -> "Answer":
        """The answer to one request; `host` is an address in any textual form.

        Raises:
            ConfigError: an operation or an address that is none.
            InvalidRequestError: a request on which Kafka's authorizer throws.

        """
        context = RequestContext(principal=principal, host=host_address(host))
        action = Action(operation=_code(AclOperation, operation), resource_pattern=resource)
        decision = self.standard.decide(context, action)
        return Answer(context, action, decision, self._acls, self._allow_everyone)

    def check_any(
        self,
        principal: str,
        operation: str | AclOperation,
        resource_type: str | ResourceType,
        *,
        host: str = LOCALHOST,
    ) -> bool:
        """Whether the operation is allowed on at least one resource of the type. Raises as `check`."""
        context = RequestContext(principal=principal, host=host_address(host))
        result = self.standard.authorize_by_resource_type(
            context, _code(AclOperation, operation), _code(ResourceType, resource_type)
        )
        return result is AuthorizationResult.ALLOWED


@frozen
class Answer:
    """A decision, and why."""

    context: RequestContext
    action: Action
    decision: Decision
    _acls: AclsImage = field(repr=False)
    _allow_everyone: bool = field(repr=False)

    @property
    def allowed(self) -> bool:
        """Whether the request is allowed."""
        return self.decision.result is AuthorizationResult.ALLOWED

    @property
    def rule(self) -> str:
        """What decided, as Kafka's audit log names it."""
        return self.decision.text

    @property
    def acl(self) -> StandardAclWithId | None:
        """The rule that decided, if it was one."""
        return self.decision.rule

    def explain(self) -> str:
        """Every rule that took part, which one decided, and what would have to change; a text for people."""
        return "\n".join(explanation_lines(self.explanation()))

    def explanation(self) -> Explanation:
        """The same as a value."""
        return explain(self._acls, self.decision, self.context, self.action, allow_everyone=self._allow_everyone)


def _code(kind: type[_Enum], value: Named[_Enum]) -> int:
    """The code of an enum value or its name; ANY for None."""
    if value is None:
        return int(kind["ANY"])
    return int(parse_name(kind, value)) if isinstance(value, str) else int(value)
