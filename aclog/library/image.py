"""The state at one offset."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Literal

from attrs import field

from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import NO_ORIGINS, AclBindingFilter, ChangePlace, Origins, StandardAclWithId
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.explain import ExplainOptions
from aclog.authorizer.index.rule_columns import RuleColumns
from aclog.authorizer.settings import (
    ALLOW_EVERYONE_CONFIG,
    SUPER_USERS_CONFIG,
    Settings,
    named_generation,
    parse_super_users,
)
from aclog.authorizer.standard import ALL_KNOWN, ClusterSettings, Premises, build_authorizer
from aclog.library.authorizer import (
    RULES,
    Authorizer,
    Defaults,
    Named,
    Rows,
    enum_code,
    flag_of,
    optional_text,
    text_of,
    texts_of,
    value_text,
)
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.snapshots import image
from aclog.snapshots.deciding_kafka import deciding_kafka
from aclog.snapshots.image_file import check_mapping
from aclog.snapshots.moments import timestamp_text

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@frozen(repr=False)
class Image:
    """All ACLs, credentials, tokens and features at one offset; immutable and thread-safe.

    Its length is the number of ACLs; `state` is the full image. It can be pickled, for processes of the same version of
    aclog; a pickle holds SCRAM keys as the image does, and is to be read from friends only, as every pickle.
    """

    state: image.Image
    _as_of: str | None = field(default=None, kw_only=True, eq=False)
    """The moment of a state of the past, for explanations."""
    _place: ChangePlace = field(factory=ChangePlace, kw_only=True, eq=False)
    _defaults: Defaults = field(factory=Defaults, kw_only=True, eq=False)
    origins: Origins = field(default=NO_ORIGINS, kw_only=True, eq=False)
    """The locations of its ACLs: `image.origins.of(rule.acl)` has the file and line of each statement of one."""

    _cluster: ClusterSettings | None = field(default=None, kw_only=True, eq=False)
    """The authorizer settings that the nodes of a running cluster return."""
    _gaps: Premises = field(default=ALL_KNOWN, kw_only=True, eq=False)
    """Gaps of the log from which the state was read."""

    @property
    def end_offset(self) -> int:
        """The offset after the last applied record; `as_of` with this value returns the same state."""
        return self.state.end_offset

    @property
    def timestamp(self) -> int:
        """When the last record was written, in ms since 1970; -1 if unknown."""
        return self.state.timestamp

    @property
    def as_of(self) -> str | None:
        """The requested moment, as text in UTC; None for the newest state."""
        return self._as_of

    def __len__(self) -> int:
        return len(self.state.acls)

    def __repr__(self) -> str:
        as_of = "" if self._as_of is None else f", as_of={self._as_of!r}"
        return f"Image(end_offset={self.end_offset}, acls={len(self)}{as_of})"

    def __str__(self) -> str:
        time = "" if self.timestamp < 0 else f", {timestamp_text(self.timestamp)}"
        return f"{len(self):,} ACLs at end offset {self.end_offset}{time}"

    def _repr_html_(self) -> str:
        return self.acls().html(caption=str(self), total=len(self))

    def __copy__(self) -> "Image":
        return self

    def __deepcopy__(self, memo: object) -> "Image":
        return self  # it is immutable

    def to_dict(self) -> dict[str, object]:
        """Return where it is in the log, and all its ACLs, as the objects of `aclog acls list --format jsonl`."""
        return {"endOffset": self.end_offset, "timestamp": self.timestamp, "acls": self.acls().to_dicts()}

    def to_arrow(self) -> "pa.Table":
        """Return its ACLs as an Arrow table. Raises ConfigError: pyarrow is not installed."""
        return self.acls().to_arrow()

    def to_pandas(self) -> "pd.DataFrame":
        """Return its ACLs as a data frame. Raises ConfigError: pandas is not installed."""
        return self.acls().to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return its ACLs to Polars, DuckDB and others by Arrow's PyCapsule interface. Raises as `to_arrow`."""
        return self.acls().__arrow_c_stream__(requested_schema)

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
    ) -> Rows[StandardAclWithId]:
        """Yield the ACLs that match all arguments, in no particular order; also as a table (`to_pandas`).

        `pattern="MATCH"` with a name selects every ACL that affects the resource: literal, prefixed and `*`.

        Raises:
            ConfigError: an unknown enum name, or an argument that is not text.

        """
        acl_filter = AclBindingFilter(
            resource_type=enum_code(ResourceType, resource_type),
            resource_name=optional_text("name", name, "orders"),
            pattern_type=enum_code(PatternType, pattern),
            principal=optional_text("principal", principal, "User:alice"),
            host=optional_text("host", host, "10.0.0.1"),
            operation=enum_code(AclOperation, operation),
            permission_type=enum_code(AclPermissionType, permission),
        )

        def columns() -> RuleColumns | None:
            rules = self.state.acls.columns(acl_filter)
            check_mapping(self.state.acls)
            return rules

        return Rows(str(self), lambda: self.state.acls.matching(acl_filter), RULES, columns)

    def authorizer(
        self,
        *,
        super_users: str | Iterable[str] | None = None,
        allow_everyone_if_no_acl_found: bool | None = None,
        semantics: Literal["kafka", "documented"] | None = None,
        kafka_version: str | None = None,
        cidr: bool | None = None,
    ) -> Authorizer:
        """Return an authorizer on this state; other settings are the context's of the log, or Kafka's defaults.

        Settings that a running cluster has set but does not return, and no argument states, are unknown: `premises` of
        the authorizer and of its answers.

        Args:
            super_users: as in the broker property (`User:a;User:b`), or an iterable of principals.
            allow_everyone_if_no_acl_found: as the broker property.
            semantics: "documented" follows Kafka's documentation where Kafka 4.3.1 departs from it.
            kafka_version: the Kafka that decides, such as "4.3.1": from 4.4 on, the host of an ACL may be a range
                (KIP-1276). By default by the versions of the state's brokers.
            cidr: the same as `kafka_version="4.4"`, or "4.3" if False.

        Raises:
            ConfigError: a super user without a colon, unknown semantics, or the state has ranges as hosts and it
                is unknown whether its brokers match them.
            RequestError: no node of the running cluster has an authorizer, so that nothing is denied there.

        """
        defaults = self._defaults
        if semantics not in (None, "kafka", "documented"):
            raise ConfigError(f"semantics {value_text(semantics)} is neither 'kafka' nor 'documented'")
        documented = (semantics or defaults.semantics) == "documented"
        everyone = flag_of(
            "allow_everyone_if_no_acl_found", allow_everyone_if_no_acl_found, bool(defaults.allow_everyone)
        )
        ranges = self._has_ranges(kafka_version, cidr)
        users = defaults.super_users or ""
        if isinstance(super_users, str):
            users = text_of("super_users", super_users, "User:admin")
        elif super_users is not None:
            users = ";".join(texts_of("super_users", super_users, "User:admin"))
        standard = build_authorizer(
            self.state.acls,
            super_users=users,
            allow_everyone=everyone,
            documented=documented,
            cidr=ranges,
        )
        acls = self.state.acls.with_options(documented=documented, cidr=ranges)
        settings = Settings(
            super_users=parse_super_users(users),
            allow_everyone=everyone,
            documented=documented,
            cidr=ranges,
        )
        values = {
            SUPER_USERS_CONFIG: (super_users, defaults.super_users),
            ALLOW_EVERYONE_CONFIG: (allow_everyone_if_no_acl_found, defaults.allow_everyone),
        }
        names = frozenset(name for name, each in values.items() if each != (None, None))
        options = ExplainOptions(
            allow_everyone=everyone,
            as_of=self._as_of,
            place=self._place,
            origins=self.origins,
            premises=self._premises(names),
        )
        return Authorizer(standard, acls, options, Policy(acls, settings), names)

    def _has_ranges(self, kafka_version: str | None, cidr: bool | None) -> bool:
        """Return whether the Kafka that decides takes a host with a slash for a range. Raises ConfigError."""
        if cidr is not None:
            cidr = flag_of("cidr", cidr, False)
        version = None if kafka_version is None else text_of("kafka_version", kafka_version, "4.3.1")
        named = named_generation(version, cidr, version_name="kafka_version", ranges_text=f"cidr={cidr}")
        if named is not None:
            return named.has_ranges
        if self._defaults.cidr is not None:
            return self._defaults.cidr
        kafka = deciding_kafka(self.state, None)
        if not kafka.is_known:
            raise ConfigError(
                f"{kafka.reason()}, and the host {kafka.hosts[0]} of an ACL is a range, which Kafka 4.4 matches and "
                "Kafka 4.3 does not: pass kafka_version"
            )
        return kafka.generations[0].has_ranges

    def _premises(self, names: AbstractSet[str]) -> Premises:
        """Return the unknown premises if these properties are given. Raises as `authorizer`."""
        if self._cluster is None:
            return self._gaps
        # A client of Kafka, which a path does not need.
        from aclog.sources.live import refuse_without_authorizer  # noqa: PLC0415

        refuse_without_authorizer(self._cluster, self._place.bootstrap_server or self._place.bootstrap_controller or "")
        return self._cluster.premises(names).also(self._gaps)

    def diff(
        self,
        other: "Image",
        *,
        super_users: str | Iterable[str] | None = None,
        allow_everyone_if_no_acl_found: bool | None = None,
        semantics: Literal["kafka", "documented"] | None = None,
        kafka_version: str | None = None,
        cidr: bool | None = None,
    ) -> Comparison:
        """Return the requests that `other` allows and this state denies, and vice versa, exactly.

        The arguments are those of `authorizer`, for both states; `Authorizer.diff` compares different settings.

        Raises:
            ConfigError: as `authorizer`; or `other` is no image.

        """
        if not isinstance(other, Image):
            raise ConfigError(f"diff {value_text(other)}: expected an image")
        before, after = (
            image.authorizer(
                super_users=super_users,
                allow_everyone_if_no_acl_found=allow_everyone_if_no_acl_found,
                semantics=semantics,
                kafka_version=kafka_version,
                cidr=cidr,
            )
            for image in (self, other)
        )
        return before.diff(after)
