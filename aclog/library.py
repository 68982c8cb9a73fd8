"""The public API: logs, images and authorizers (docs/library.md)."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import IntEnum
from os import PathLike, fspath
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from attrs import define, evolve, field, frozen

from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
    StandardAclWithId,
    parse_name,
)
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.change_place import ChangePlace
from aclog.authorizer.config import parse_super_users
from aclog.authorizer.decision import Decision
from aclog.authorizer.explain import explain
from aclog.authorizer.explain_options import ExplainOptions
from aclog.authorizer.explanation import Explanation
from aclog.authorizer.explanation_text import explanation_lines
from aclog.authorizer.hosts import host_address
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.authorizer.origin import NO_ORIGINS, Origins, TwoOrigins
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import StandardAuthorizer, build_authorizer
from aclog.metalog.closeable import Closeable
from aclog.metalog.errors import ConfigError, LogError
from aclog.snapshots import image
from aclog.snapshots import rule_history as history
from aclog.snapshots.moments import Moment, moment_text
from aclog.snapshots.state_source import StateSource
from aclog.sources.choice import SourceSelection, choose_source
from aclog.sources.formats.format import AclsFormat
from aclog.sources.git.git_place import parse_git_place
from aclog.sources.paths import AclsSource, LogSource, open_path
from aclog.sources.rule_files import ReadOptions

_Enum = TypeVar("_Enum", bound=IntEnum)
Named: TypeAlias = str | _Enum | None
"""An enum value or its name, in any case; None for ANY."""

LOCALHOST = "127.0.0.1"


@define(eq=False)
class Log(Closeable):
    """A source of images, returned by open_log; not thread-safe. `notes` are the notes of its recovery.

    Once it is closed, all but `name`, `notes` and `close` raise a LogError; images that it returned remain valid.
    """

    _source: StateSource
    notes: list[str] = field(factory=list)
    _end_offset: int = field(default=0, init=False)
    """That of the newest state returned."""
    _closed: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        """The path or the servers that were opened."""
        return self._source.name

    def image(self, as_of: Moment | None = None) -> "Image":
        """Return the newest state, or the state at an end offset or a time (UTC if it has no zone).

        A running cluster that no longer answers is no error: `age` tells how old the state may be, and with `max_age`
        an older one is refused.

        Raises:
            StaleError: the state is older than `max_age`; says how old, since when, and from whom.
            MetadataError: the source is damaged or closed, does not cover the moment, or can never be followed again.

        """
        source = self._open_source()
        if as_of is None:
            newest = source.image()
            self._end_offset = newest.end_offset
            origins = source.origins if isinstance(source, AclsSource) else NO_ORIGINS
            return Image(newest, place=source.change_place, origins=origins)
        if isinstance(as_of, datetime) and as_of.tzinfo is None:
            as_of = as_of.replace(tzinfo=UTC)
        return Image(source.image_at(as_of), as_of=moment_text(as_of), place=source.change_place)

    @property
    def age(self) -> float | None:
        """How many seconds ago a running cluster last confirmed that no more than is known here was committed.

        Counted from the request that it answered, so an upper bound. Of a quorum: the leader's last answer to a Fetch,
        which follows the log all the time, usually below 1. Of `bootstrap_server`: the newest image(). None for a path,
        which is read as it is, and before the first image().

        Raises:
            LogError: closed.

        """
        found = self._open_source().freshness()
        return None if found is None else found.seconds

    @property
    def lag(self) -> int | None:
        """How many offsets the newest image() is behind the high-water mark as last known; None if there is no log.

        Raises:
            MetadataError: the log cannot be opened or followed, or is closed.

        """
        log = self._open_source().log
        return None if log is None else max(log.high_watermark() - self._end_offset, 0)

    def history(self) -> Iterator[history.Change]:
        """Yield every change of an ACL, in the order of the log.

        Raises:
            ConfigError: the source is not a log directory.
            MetadataError: the log is damaged or closed.

        """
        source = self._open_source()
        if not isinstance(source, LogSource):
            raise ConfigError(f"{self.name}: only a log directory has a history")
        return history.history(source.directory)

    def close(self) -> None:
        """Close open files and connections; images remain valid. Idempotent."""
        self._closed = True
        self._source.close()

    def _open_source(self) -> StateSource:
        if self._closed:
            raise LogError(f"{self.name}: closed")
        return self._source


def open_log(
    path: str | PathLike[str] | None = None,
    *,
    bootstrap_controller: str | None = None,
    bootstrap_server: str | None = None,
    command_config: str | PathLike[str] | None = None,
    max_age: float | None = None,
) -> Log:
    """Open a directory of segments and checkpoints, a checkpoint (`*.checkpoint`), or a file of ACLs as JSON lines.

    Instead of a path, `bootstrap_controller` ("host:port,...") follows the log of a running quorum (aclog or Kafka),
    and `bootstrap_server` reads a running cluster through its admin API; `command_config` is a client properties file
    for both. Nothing is locked or changed. A log that is being written is followed: each image() is the newest.

    With `max_age`, image() raises a StaleError rather than return a state that the cluster last confirmed more than so
    many seconds ago.

    Raises:
        ConfigError: not exactly one of the three, an invalid address, a bad properties file, or `max_age` with a path.
        LogError: the path does not exist.

    """
    notes: list[str] = []
    if max_age is not None and not max_age > 0:
        raise ConfigError(f"max_age {max_age}: expected seconds, more than 0")
    if path is not None and max_age is not None:
        raise ConfigError(f"{fspath(path)}: max_age: nobody confirms the state of a path: expected a running cluster")
    if path is not None and bootstrap_controller is None and bootstrap_server is None:
        return Log(open_path(fspath(path), notes.append), notes)
    if path is not None:
        raise ConfigError(f"{fspath(path)}: expected a path or a running cluster, not both")
    config = None if command_config is None else Path(command_config)
    selection = SourceSelection(
        bootstrap_controller=bootstrap_controller,
        bootstrap_server=bootstrap_server,
        command_config=config,
        max_age=max_age,
    )
    return Log(choose_source(selection, notes.append).source, notes)


def open_acls(
    path: str | PathLike[str] | None = None,
    *,
    ref: str | None = None,
    format: str = "auto",  # noqa: A002  # the flag's name is --acls-format
    modules: Mapping[str, str | PathLike[str]] | None = None,
    topics: Iterable[str] | None = None,
) -> Log:
    """Open a file or a directory of ACLs: JSON lines, or files of GitOps tools (docs/gitops.md).

    `image().origins` tells the file and line of each ACL; what was read, and what was ignored, is in `notes` after the
    first image().

    Args:
        path: a file or a directory; `-` is stdin.
        ref: instead of a path, `GITREF:PATH`: the same as of a commit of the repository around the working directory.
        format: auto, jsonl, kafka-acls, ksm, strimzi, terraform, kafka-gitops, julie, jikkou or ns4kafka.
        modules: the directory of each Terraform module that is not among the files, by its source.
        topics: the topics that exist, for patterns that are about those.

    Raises:
        ConfigError: not exactly one of path and ref, an unknown format, or no such place in the repository. image()
            raises it for what is not understood, with file and line.

    """
    if (path is None) is (ref is None):
        raise ConfigError("expected either a path or ref=GITREF:PATH")
    if format not in set(AclsFormat):
        raise ConfigError(f"format {format!r} is not one of {', '.join(AclsFormat)}")
    if ref is not None:
        parse_git_place(ref)
    names = None if topics is None else tuple(topics)
    options = ReadOptions(
        form=AclsFormat(format),
        modules={source: fspath(directory) for source, directory in (modules or {}).items()},
        topics=None if names is None else lambda: names,
    )
    notes: list[str] = []
    given = fspath(path) if path is not None else ref or ""
    return Log(AclsSource(given, options=options, notify=notes.append, is_ref=ref is not None), notes)


@frozen(repr=False)
class Image:
    """All ACLs, credentials, tokens and features at one offset; immutable and thread-safe.

    Its length is the number of ACLs; `state` is the full image.
    """

    state: image.Image
    _as_of: str | None = field(default=None, kw_only=True, eq=False)
    """The moment of a state of the past, for explanations."""
    _place: ChangePlace = field(factory=ChangePlace, kw_only=True, eq=False)
    origins: Origins = field(default=NO_ORIGINS, kw_only=True, eq=False)
    """Where its ACLs stand: `image.origins.of(rule.acl)` has a file and line for each place that states one."""

    @property
    def end_offset(self) -> int:
        """The offset after the last applied record; `as_of` with this value returns the same state."""
        return self.state.end_offset

    @property
    def timestamp(self) -> int:
        """When the last record was written, in ms since 1970; -1 if unknown."""
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
        """Yield the ACLs that match all arguments, in no particular order.

        `pattern="MATCH"` with a name selects every ACL that affects the resource: literal, prefixed and `*`.

        Raises:
            ConfigError: an unknown enum name.

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
        """Return an authorizer on this state.

        Args:
            super_users: as in the broker property (`User:a;User:b`), or an iterable of principals.
            allow_everyone_if_no_acl_found: as the broker property.
            semantics: "documented" follows Kafka's documentation where Kafka 4.3.1 departs from it.
            cidr: also match hosts that are CIDR ranges (KIP-1276), which 4.3.1 does not support.

        Raises:
            ConfigError: a super user without a colon, or unknown semantics.

        """
        if semantics not in {"kafka", "documented"}:
            raise ConfigError(f"semantics {semantics!r} is neither 'kafka' nor 'documented'")
        documented = semantics == "documented"
        users = super_users if isinstance(super_users, str) else ";".join(super_users)
        standard = build_authorizer(
            self.state.acls,
            super_users=users,
            allow_everyone=allow_everyone_if_no_acl_found,
            documented=documented,
            cidr=cidr,
        )
        acls = self.state.acls.with_options(documented=documented, cidr=cidr)
        settings = Settings(
            super_users=parse_super_users(users),
            allow_everyone=allow_everyone_if_no_acl_found,
            documented=documented,
            cidr=cidr,
        )
        options = ExplainOptions(
            allow_everyone=allow_everyone_if_no_acl_found,
            as_of=self._as_of,
            place=self._place,
            origins=self.origins,
        )
        return Authorizer(standard, acls, options, Policy(acls, settings))

    def diff(
        self,
        other: "Image",
        *,
        super_users: str | Iterable[str] = "",
        allow_everyone_if_no_acl_found: bool = False,
        semantics: Literal["kafka", "documented"] = "kafka",
        cidr: bool = False,
    ) -> Comparison:
        """Return what `other` allows and this state does not, and the other way round, exactly.

        The arguments are those of `authorizer`, for both states; `Authorizer.diff` compares different settings.

        Raises:
            ConfigError: as `authorizer`.

        """
        before, after = (
            image.authorizer(
                super_users=super_users,
                allow_everyone_if_no_acl_found=allow_everyone_if_no_acl_found,
                semantics=semantics,
                cidr=cidr,
            )
            for image in (self, other)
        )
        return before.diff(after)


@frozen
class Authorizer:
    """An authorizer on one state; thread-safe. `standard` is the underlying authorizer, for hot paths."""

    standard: StandardAuthorizer = field(repr=False)
    _acls: AclsImage = field(repr=False)
    _options: ExplainOptions = field(repr=False)
    _policy: Policy = field(repr=False)

    def diff(self, other: "Authorizer") -> Comparison:
        """Return the requests that `other` decides differently (`aclog diff`): regions, rows, and both as text."""
        origins = TwoOrigins(old=self._options.origins, new=other._options.origins)
        return Comparison.of(self._policy, other._policy, origins=origins)

    def check(
        self, principal: str, operation: str | AclOperation, resource: ResourcePattern, *, host: str | None = None
    ) -> "Answer":
        """Decide one request; `host` is an IP address in any textual form, 127.0.0.1 unless given.

        Raises:
            ConfigError: an unknown operation, or an invalid address.
            InvalidRequestError: a request for which Kafka's authorizer throws.

        """
        context = RequestContext(principal=principal, host=host_address(LOCALHOST if host is None else host))
        action = Action(operation=_code(AclOperation, operation), resource_pattern=resource)
        decision = self.standard.decide(context, action)
        options = evolve(self._options, host_given=host is not None)
        return Answer(context, action, decision, acls=self._acls, options=options)

    def check_any(
        self,
        principal: str,
        operation: str | AclOperation,
        resource_type: str | ResourceType,
        *,
        host: str = LOCALHOST,
    ) -> bool:
        """Return whether the operation is allowed on at least one resource of the type. Raises as `check`."""
        context = RequestContext(principal=principal, host=host_address(host))
        result = self.standard.authorize_by_resource_type(
            context, _code(AclOperation, operation), _code(ResourceType, resource_type)
        )
        return result is AuthorizationResult.ALLOWED


@frozen
class Answer:
    """A decision and the reason for it."""

    context: RequestContext
    action: Action
    decision: Decision
    _acls: AclsImage = field(repr=False)
    _options: ExplainOptions = field(repr=False)

    def __bool__(self) -> bool:
        """Return whether the request is allowed, so that `if authorizer.check(...)` cannot let a denied one in."""
        return self.allowed

    @property
    def allowed(self) -> bool:
        """Whether the request is allowed."""
        return self.decision.result is AuthorizationResult.ALLOWED

    @property
    def rule(self) -> str:
        """The determining rule, as Kafka's audit log names it."""
        return self.decision.text

    @property
    def acl(self) -> StandardAclWithId | None:
        """The ACL that determined the decision, if any."""
        return self.decision.rule

    def explain(self) -> str:
        """Return as text every ACL that takes part, the determining one, and what would reverse the decision."""
        return "\n".join(explanation_lines(self.explanation()))

    def explanation(self) -> Explanation:
        """Return the same as a value."""
        return explain(self._acls, self.decision, self.context, self.action, options=self._options)


def _code(kind: type[_Enum], value: Named[_Enum]) -> int:
    """Return the code of an enum value or name; that of ANY for None."""
    if value is None:
        return int(kind["ANY"])
    return int(parse_name(kind, value)) if isinstance(value, str) else int(value)
