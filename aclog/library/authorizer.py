"""The authorizer of the library: questions, checked arguments, and answers with reasons."""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, tzinfo
from enum import IntEnum
from itertools import islice
from os import PathLike, fsencode, fspath
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar, overload

from attrs import evolve, field

from aclog.analysis.comparison import Comparison, SidePremises, turning
from aclog.analysis.policy import Policy
from aclog.analysis.regions import REQUESTED, Query, only
from aclog.analysis.rows.report import (
    MOST_ROWS,
    Cell,
    Kind,
    arrow_stream,
    arrow_table,
    html_table,
    html_text,
    pandas_frame,
    pandas_module,
    pyarrow_module,
)
from aclog.analysis.rows.rule_tables import RULE_KINDS, rule_cells, rules_arrow, rules_pandas
from aclog.analysis.timeline import decide_set, explained
from aclog.analysis.who_can import Permission, permission_lines, permission_object, permissions, with_extents
from aclog.authorizer.acl import (
    Origins,
    ResourcePattern,
    StandardAcl,
    StandardAclWithId,
    TwoOrigins,
    acl_text,
    code_name,
    host_address,
    parse_name,
)
from aclog.authorizer.acls_image import AclsImage, Decision
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.explain import ExplainOptions, Explanation, explain, explanation_lines
from aclog.authorizer.index.rule_columns import RuleColumns
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.authorizer.settings import is_set, pattern_text, topic
from aclog.authorizer.standard import ALL_KNOWN, Premises, StandardAuthorizer
from aclog.metalog.errors import ConfigError, LogError, os_error_text, printable
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.values import define, frozen
from aclog.ops.tables import CHANGE_KINDS, PERMISSIONS, Table, TableForm, change_cells, permission_rows, table_of
from aclog.snapshots.history import Change
from aclog.snapshots.image_file import check_mapping
from aclog.snapshots.moments import Moment, instant_of, start_of, utc_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


# A decision and the reason for it.


@frozen(repr=False)
class Answer:
    """A decision and the reason for it."""

    context: RequestContext
    action: Action
    decision: Decision
    _acls: AclsImage = field(repr=False)
    _options: ExplainOptions = field(repr=False)
    _policy: Policy | None = field(default=None, repr=False, eq=False)
    """The policy of a request for all names with a prefix."""

    def __repr__(self) -> str:
        return f"Answer({self})"

    def __str__(self) -> str:
        operation = code_name(AclOperation, self.action.operation)
        pattern, rule = self.action.resource_pattern, self.decision.rule
        name = pattern_text(pattern) if is_set(pattern) else repr(pattern.name)
        by = self.decision.text if rule is None else acl_text(rule.acl)
        return printable(
            f"{self.premises.decided(self.decision.result.value)}: {self.context.principal} {operation} "
            f"{code_name(ResourceType, pattern.resource_type)} {name} from {self.context.host} by {by}"
        )

    def _repr_html_(self) -> str:
        return html_text(self.explain())

    def __bool__(self) -> bool:
        """Return whether the request is allowed, so that `if authorizer.check(...)` cannot let a denied one in."""
        return self.allowed

    @property
    def allowed(self) -> bool:
        """Whether the request is allowed."""
        return self.decision.result is AuthorizationResult.ALLOWED

    @property
    def premises(self) -> Premises:
        """Unknown settings of a running cluster that could turn the decision."""
        unknown = self._options.premises
        if not unknown:
            return unknown
        return unknown.bearing_on(allowed=self.allowed, has_candidate=self._acls.covers(self.action.resource_pattern))

    @property
    def rule(self) -> str:
        """The determining rule, as Kafka's audit log names it."""
        return self.decision.text

    @property
    def acl(self) -> StandardAclWithId | None:
        """The ACL that determined the decision, if any."""
        return self.decision.rule

    def explain(self) -> str:
        """Return as text all ACLs that take part, the determining one, and changes that reverse the decision."""
        return "\n".join(explanation_lines(self.explanation()))

    def to_dict(self) -> dict[str, object]:
        """Return the object of `aclog explain --format json`."""
        return self.explanation().to_dict()

    def explanation(self) -> Explanation:
        """Return the same as a value."""
        if self._policy is not None:
            return explained(self._policy, self.context, self.action, self._options)
        return explain(self._acls, self.decision, self.context, self.action, options=self._options)


# The grants of a policy, as the library returns them.


@frozen(repr=False)
class Grant:
    """Allowed requests, and the rules that allow them: principals, operations, resources and hosts.

    Printed as `aclog who-can` prints it; `to_dict` is its JSON object. `rules` are the ACLs that grant it, each a part
    or all, or the text `SuperUser` or `DefaultAllow`; `denies` remove a part.
    """

    _permission: Permission
    _acls: AclsImage = field(eq=False)
    _origins: Origins = field(eq=False)

    @property
    def principals(self) -> tuple[str, ...]:
        """The principals, by name; if it is `for_anyone`, the excluded ones."""
        return self._permission.region.principals.named

    @property
    def for_anyone(self) -> bool:
        """Whether it includes principals that no rule names: all but `principals`."""
        return self._permission.region.principals.complement

    @property
    def covers_all(self) -> bool | None:
        """Whether it covers all names with the prefix of the query; None if the query has no prefix."""
        return None if self._permission.extent is None else self._permission.extent.is_all

    @property
    def rules(self) -> tuple[StandardAclWithId | str, ...]:
        """The rules that grant it."""
        return tuple(rule if isinstance(rule, str) else self._rule(rule) for rule in self._permission.rules)

    @property
    def denies(self) -> tuple[StandardAclWithId, ...]:
        """The rules that remove a part."""
        return tuple(map(self._rule, self._permission.denies))

    def _rule(self, acl: StandardAcl) -> StandardAclWithId:
        return StandardAclWithId(id=self._acls.find(acl), acl=acl)

    def __str__(self) -> str:
        return "\n".join(map(printable, permission_lines(self._permission, self._origins)))

    def __repr__(self) -> str:
        return f"<Grant {str(self).splitlines()[0]}>"

    def _repr_html_(self) -> str:
        return html_text(str(self))

    def to_dict(self) -> dict[str, object]:
        """Return it as a line of `aclog who-can --format jsonl`."""
        return dict(permission_object(self._permission, self._origins))


class Grants:
    """All grants of a question: a sequence that is equal to a list, with what is unknown of that which decides.

    As a table it has one row per principal, operation, name and host (aclog.ops.tables), also for Polars, DuckDB,
    pyarrow.table and others that read Arrow's C stream. It is no `list`, and no `collections.abc.Sequence`: some of
    these would take its elements as they are.

    If `premises` are not empty, there may be other grants, or fewer: no grants then do not mean "no principals".
    """

    premises: Premises

    def __init__(self, grants: Iterable[Grant] = (), premises: Premises = ALL_KNOWN) -> None:
        """Take the grants, and the unknown premises that could add or remove one."""
        self._grants = tuple(grants)
        self.premises = premises

    def __len__(self) -> int:
        return len(self._grants)

    def __iter__(self) -> Iterator[Grant]:
        return iter(self._grants)

    @overload
    def __getitem__(self, place: int) -> Grant: ...
    @overload
    def __getitem__(self, place: slice) -> "Grants": ...
    def __getitem__(self, place: int | slice) -> "Grant | Grants":
        """Return a grant, or some of them with the same premises."""
        grants = self._grants[place]
        return Grants(grants, self.premises) if isinstance(grants, tuple) else grants

    def __contains__(self, grant: object) -> bool:
        return grant in self._grants

    def __reversed__(self) -> Iterator[Grant]:
        return reversed(self._grants)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Grants):
            return self._grants == other._grants and self.premises == other.premises
        return list(self._grants) == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def index(self, grant: Grant) -> int:
        """Return the place of a grant. Raises ValueError: it is not here."""
        return self._grants.index(grant)

    def count(self, grant: Grant) -> int:
        """Return how often a grant is here."""
        return self._grants.count(grant)

    def __repr__(self) -> str:
        grants = repr(list(self._grants))
        return f"<{grants} unless {self.premises.unless()}>" if self.premises else grants

    def _repr_html_(self) -> str:
        what = f"{len(self):,} grant{'' if len(self) == 1 else 's'}"
        caption = f"{what} unless {self.premises.unless()}" if self.premises else what
        rows = permission_rows(grant.to_dict() for grant in self)
        table = table_of(islice(rows, MOST_ROWS + 1), TableForm(kinds=PERMISSIONS.kinds, rows=iter))
        return html_table(tuple(table.kinds), table.rows, caption=caption)

    def to_dicts(self) -> list[dict[str, object]]:
        """Return the lines of `aclog who-can --format jsonl`."""
        return [grant.to_dict() for grant in self]

    def to_arrow(self) -> "pa.Table":
        """Return a row for each principal, operation, name and host. Raises ConfigError: pyarrow is not installed."""
        return self._table().to_arrow()

    def to_pandas(self) -> "pd.DataFrame":
        """Return the same as a data frame. Raises ConfigError: pandas is not installed."""
        return self._table().to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the same by Arrow's PyCapsule interface. Raises as `to_arrow`."""
        return arrow_stream(self.to_arrow(), requested_schema)

    def _table(self) -> Table:
        return table_of(self.to_dicts(), PERMISSIONS)


# Settings of calls without explicit ones: Kafka's defaults, or those of a context.


@frozen(kw_only=True)
class Defaults:
    """Settings of authorizers."""

    super_users: str | None = None
    """The broker property; None: not stated."""
    allow_everyone: bool | None = None
    """None: not stated."""
    semantics: str = "kafka"
    cidr: bool | None = None
    """Whether a host with a slash is a range; None: by the versions of the state's brokers."""


@frozen(kw_only=True)
class LogOptions:
    """How a log was opened."""

    max_age: float | None = None
    """The oldest state that is returned, in seconds."""
    zone: tzinfo = UTC
    """The zone of times that name none."""
    defaults: Defaults = Defaults()


# Arguments as callers give them: checked, so that an error is one line, without a traceback from within.


_Enum = TypeVar("_Enum", bound=IntEnum)
Named: TypeAlias = str | _Enum | None
"""An enum value or its name, in any case; None for ANY."""

AsOf: TypeAlias = int | str | date
"""An end offset, a date or datetime, or a text that `--as-of` takes; UTC if it has no zone, unless the log has one."""

_MAX_EXCERPT = 60


def value_text(value: object) -> str:
    """Return an argument as text for an error: cut, since it may be any object."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  # of an unknown class
        return f"a {type(value).__name__}"
    return printable(text if len(text) <= _MAX_EXCERPT else f"{text[:_MAX_EXCERPT]}...")


def text_of(what: str, value: object, example: str) -> str:
    """Return an argument that must be text. Raises ConfigError: not a text, or not Unicode."""
    if not isinstance(value, str):
        raise ConfigError(f"{what} {value_text(value)}: expected text, such as {example!r}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ConfigError(f"{what} {value_text(value)}: expected Unicode text, without lone surrogates") from None
    return value


def optional_text(what: str, value: object, example: str) -> str | None:
    """Return the same, or None. Raises as `text_of`."""
    return None if value is None else text_of(what, value, example)


def path_of(what: str, value: object) -> str:
    """Return the text of a path. Raises ConfigError: not a path."""
    path = fspath(value) if isinstance(value, PathLike) else value
    with suppress(UnicodeEncodeError):
        if isinstance(path, str) and b"\0" not in fsencode(path):
            return path
    raise ConfigError(f"{what} {value_text(value)}: expected a path, as text or as a pathlib.Path")


def flag_of(what: str, value: object, default: bool) -> bool:
    """Return True or False as given; the default for None. Raises ConfigError: another type, such as the text `no`."""
    if value is None:
        return default
    if not isinstance(value, bool):
        raise ConfigError(f"{what} {value_text(value)}: expected True or False")
    return value


def texts_of(what: str, value: object, example: str) -> list[str]:
    """Return several texts. Raises ConfigError: it is one text, or anything else."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigError(f"{what} {value_text(value)}: expected several texts, such as {[example]}")
    return [text_of(what, each, example) for each in value]


def enum_code(kind: type[_Enum], value: Named[_Enum]) -> int:
    """Return the code of an enum value or name; that of ANY for None.

    Raises:
        ConfigError: an unknown name or code.

    """
    if value is None:
        return int(kind["ANY"])
    if isinstance(value, str):
        return int(parse_name(kind, value))
    if isinstance(value, kind) or (type(value) is int and value in set(kind)):
        return int(value)
    raise ConfigError(
        f"{value_text(value)}: expected a name, such as {max(kind).name!r}, or a value of {kind.__name__}"
    )


def resource_of(value: object) -> ResourcePattern:
    """Return a resource; a text is a topic, or `pii-*` for all that begin so. Raises ConfigError: it is neither."""
    if isinstance(value, str):
        return topic(text_of("resource", value, "orders"))
    if not isinstance(value, ResourcePattern):
        raise ConfigError(
            f"resource {value_text(value)}: expected the name of a topic, or aclog.topic(name), aclog.group(name), "
            "aclog.cluster(), aclog.transactional_id(name), aclog.delegation_token(id) or aclog.user(principal)"
        )
    if type(value.resource_type) is int or isinstance(value.resource_type, IntEnum):
        text_of("the name of the resource", value.name, "orders")
        return value
    raise ConfigError(f"resource {value_text(value)}: expected a resource type such as aclog.ResourceType.TOPIC")


def moment_of(as_of: AsOf | None, zone: tzinfo) -> Moment | None:
    """Return the moment, in the zone unless it names one; None for the newest state.

    Raises:
        ConfigError: not a moment, or ambiguous.

    """
    if as_of is None:
        return None
    if isinstance(as_of, datetime):
        return utc_of(as_of) if as_of.tzinfo is not None else instant_of(as_of, zone)
    if isinstance(as_of, date):
        return start_of(as_of, zone)
    if isinstance(as_of, str):
        from aclog.snapshots.moments import read_moment  # noqa: PLC0415  # few give texts

        now = datetime.fromtimestamp(current_time_ms() / 1000, UTC)
        return read_moment(as_of, now=now, zone=zone).moment
    try:
        if not isinstance(as_of, bool):
            return operator.index(as_of)  # also of numpy's integers
    except TypeError:
        pass
    raise ConfigError(
        f"as_of {value_text(as_of)}: expected an end offset, a datetime, or a text such as 'yesterday 18:00' or '-3d'"
    )


@contextmanager
def told_as_log_errors(name: str) -> Iterator[None]:
    """Turn an error of the operating system into a LogError with its file."""
    try:
        yield
    except OSError as error:
        raise LogError(f"{error.filename or name}: {os_error_text(error)}") from error


# An authorizer on one state.


LOCALHOST = "127.0.0.1"


def _address(host: str | None) -> str | None:
    return None if host is None else host_address(text_of("host", host, LOCALHOST))


@frozen(repr=False)
class Authorizer:
    """An authorizer on one state; thread-safe. `standard` is the underlying authorizer, for hot paths."""

    standard: StandardAuthorizer = field(repr=False)
    _acls: AclsImage = field(repr=False)
    _options: ExplainOptions = field(repr=False)
    _policy: Policy = field(repr=False)
    _setting_names: frozenset[str] = field(default=frozenset(), repr=False)
    """The properties of brokers whose values were given."""

    def __repr__(self) -> str:
        settings = self._policy.settings
        parts = [f"acls={len(self._acls)}"]
        if settings.super_users:
            parts.append(f"super_users={sorted(settings.super_users)}")
        if settings.allow_everyone:
            parts.append("allow_everyone_if_no_acl_found=True")
        if settings.documented:
            parts.append("semantics='documented'")
        if settings.cidr:
            parts.append("cidr=True")
        return f"Authorizer({', '.join(parts)})"

    @property
    def premises(self) -> Premises:
        """Settings of a running cluster that are neither returned nor passed: each could turn decisions."""
        return self._options.premises

    def diff(self, other: "Authorizer") -> Comparison:
        """Return the requests that `other` decides differently (`aclog diff`): regions, rows, and both as text.

        Without differences, `premises` of the comparison are the unknown ones that could change that.

        Raises:
            ConfigError: `other` is no authorizer.

        """
        if not isinstance(other, Authorizer):
            raise ConfigError(f"diff {value_text(other)}: expected an authorizer, of image.authorizer()")
        origins = TwoOrigins(old=self._options.origins, new=other._options.origins)
        comparison = Comparison.of(self._policy, other._policy, origins=origins)
        if not comparison.differences:
            comparison.premises = turning(self._beside(other), comparison)
        return comparison

    def _beside(self, other: "Authorizer") -> SidePremises:
        """Return the unknown premises of both; a state of no running cluster has the settings of the other one."""
        old, new = self.premises, other.premises
        if old and new and self._options.place != other._options.place:
            return SidePremises(old=old, new=new, same_settings=False)
        return SidePremises.of_one(SidePremises(old=old, new=new).unknown, self._setting_names, other._setting_names)

    def check(
        self, principal: str, operation: str | AclOperation, resource: str | ResourcePattern, *, host: str | None = None
    ) -> Answer:
        """Decide one request; a resource that is given as text is a topic.

        `host` is an IP address in any textual form, 127.0.0.1 unless given. `pii-*` is all names that begin with
        `pii-`: there is an answer if all of them are decided alike.

        Raises:
            ConfigError: an unknown operation, an invalid address, or an argument of another type; or some of the names
                are allowed and some denied (the text names one of each).
            InvalidRequestError: a request for which Kafka's authorizer throws.

        """
        address = LOCALHOST if host is None else text_of("host", host, LOCALHOST)
        context = RequestContext(principal=text_of("principal", principal, "User:alice"), host=host_address(address))
        acl_operation = AclOperation(enum_code(AclOperation, operation))
        pattern = resource_of(resource)
        action = Action(operation=acl_operation, resource_pattern=pattern)
        options = evolve(self._options, host_given=host is not None)
        if is_set(pattern):
            outcome = decide_set(self._policy, context, action)
            check_mapping(self._acls)
            return Answer(context, action, outcome.decision, acls=self._acls, options=options, policy=self._policy)
        decision = self.standard.decide(context, action)
        check_mapping(self._acls)
        return Answer(context, action, decision, acls=self._acls, options=options)

    def who_can(
        self, operation: str | AclOperation | None, resource: str | ResourcePattern, *, host: str | None = None
    ) -> Grants:
        """Return all principals with a permission on a resource, from one host or from any (`aclog who-can`).

        Without an operation (None), a grant has every operation that its principals have.

        The list is complete unless one of its `premises` is otherwise than assumed: if principals that no rule names
        are included, a grant has `for_anyone`. With `pii-*` it has permissions on any name with the prefix, and
        `covers_all` states whether it has them on all such names.

        Raises:
            ConfigError: an unknown operation, an invalid address, or an argument of another type.

        """
        code = None if operation is None else enum_code(AclOperation, operation)
        if code is not None and code <= AclOperation.ALL:
            raise ConfigError(f"operation {value_text(operation)}: expected one that requests have, such as 'READ'")
        resources, mask = (resource_of(resource),), REQUESTED if code is None else 1 << code
        return self._grants(Query(resources=resources, operations=mask, host=_address(host)), resources)

    def what_can(self, principal: str, *, host: str | None = None) -> Grants:
        """Return all permissions of a principal, from one host or from any (`aclog what-can`), with their `premises`.

        Raises:
            ConfigError: an invalid address, a principal without a type, or an argument of another type.

        """
        client = text_of("principal", principal, "User:alice")
        if ":" not in client or client == "User:*":
            raise ConfigError(
                f"principal {value_text(client)}: expected the type and name of a client, such as 'User:alice'"
            )
        return self._grants(Query(principals=only(client), host=_address(host)), ())

    def _grants(self, query: Query, resources: Sequence[ResourcePattern]) -> Grants:
        extended = with_extents(permissions(self._policy, query), resources)
        grants = [Grant(each, self._acls, self._options.origins) for each in extended]
        check_mapping(self._acls)
        return Grants(grants, self.premises)

    def check_any(
        self,
        principal: str,
        operation: str | AclOperation,
        resource_type: str | ResourceType,
        *,
        host: str = LOCALHOST,
    ) -> bool:
        """Return whether the operation is allowed on at least one resource of the type. Raises as `check`."""
        context = RequestContext(
            principal=text_of("principal", principal, "User:alice"), host=host_address(text_of("host", host, LOCALHOST))
        )
        result = self.standard.authorize_by_resource_type(
            context, enum_code(AclOperation, operation), enum_code(ResourceType, resource_type)
        )
        check_mapping(self._acls)
        return result is AuthorizationResult.ALLOWED


# Many ACLs or changes: an iterator that is also a table.


class _Row(Protocol):
    def to_dict(self) -> Mapping[str, object]: ...


_Value = TypeVar("_Value", bound=_Row)


@frozen(kw_only=True)
class RowForm(Generic[_Value]):
    """How values become rows: the columns, and the cells of a value."""

    what: str
    kinds: Mapping[str, Kind]
    cells: Callable[[_Value], Sequence[Cell]]


RULES = RowForm[StandardAclWithId](what="ACLs", kinds=RULE_KINDS, cells=rule_cells)
CHANGES = RowForm[Change](what="changes", kinds=CHANGE_KINDS, cells=change_cells)


@define(eq=False, repr=False)
class Rows(Iterator[_Value]):
    """Values that are read lazily, one by one; the forms of a table read all of them, from the first.

    Each step, and each of the forms, may raise the errors of reading a log.
    """

    name: str
    """The name of their source."""
    _read: Callable[[], Iterator[_Value]]
    _form: RowForm[_Value]
    _columns: Callable[[], RuleColumns | None] = field(default=lambda: None)
    """The same values in columns, where that saves an object per row."""
    _rest: Iterator[_Value] | None = field(default=None, init=False)

    def __next__(self) -> _Value:
        if self._rest is None:
            self._rest = self._all()
        return next(self._rest)

    def __repr__(self) -> str:
        return f"<{self._form.what} of {self.name}>"

    def to_dicts(self) -> list[dict[str, object]]:
        """Return them as the objects of their JSON lines."""
        return [dict(value.to_dict()) for value in self._all()]

    def to_arrow(self) -> "pa.Table":
        """Return them as an Arrow table, with times in UTC. Raises ConfigError: pyarrow is not installed."""
        pyarrow_module()  # before anything is read
        columns = self._columns()
        if columns is not None:
            return rules_arrow(columns)
        return arrow_table(self._form.kinds, map(self._form.cells, self._all()))

    def to_pandas(self) -> "pd.DataFrame":
        """Return them as a data frame, with times in UTC. Raises ConfigError: pandas is not installed."""
        pandas_module()
        columns = self._columns()
        if columns is not None:
            return rules_pandas(columns)
        return pandas_frame(self._form.kinds, map(self._form.cells, self._all()))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return them to Polars, DuckDB and others by Arrow's PyCapsule interface. Raises as `to_arrow`."""
        return arrow_stream(self.to_arrow(), requested_schema)

    def _repr_html_(self) -> str:
        return self.html(caption=f"{self._form.what} of {self.name}")

    def html(self, *, caption: str, total: int | None = None) -> str:
        """Return the first rows as an HTML table."""
        return html_table(tuple(self._form.kinds), map(self._form.cells, self._all()), caption=caption, total=total)

    def _all(self) -> Iterator[_Value]:
        with told_as_log_errors(self.name):
            yield from self._read()
