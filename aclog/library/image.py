"""The state at one offset."""

from collections.abc import Iterable, Iterator
from typing import Literal

from attrs import field, frozen

from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAclWithId,
)
from aclog.authorizer.change_place import ChangePlace
from aclog.authorizer.config import parse_super_users
from aclog.authorizer.explain_options import ExplainOptions
from aclog.authorizer.origin import NO_ORIGINS, Origins
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import build_authorizer
from aclog.library.authorizer import Authorizer
from aclog.library.enum_name import Named, enum_code
from aclog.metalog.errors import ConfigError
from aclog.snapshots import image


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
                resource_type=enum_code(ResourceType, resource_type),
                resource_name=name,
                pattern_type=enum_code(PatternType, pattern),
                principal=principal,
                host=host,
                operation=enum_code(AclOperation, operation),
                permission_type=enum_code(AclPermissionType, permission),
            )
        )

    def authorizer(
        self,
        *,
        super_users: str | Iterable[str] = "",
        allow_everyone_if_no_acl_found: bool = False,
        semantics: Literal["kafka", "documented"] = "kafka",
        cidr: bool = False,
    ) -> Authorizer:
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
