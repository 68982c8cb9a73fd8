"""An authorizer on one state."""

from collections.abc import Sequence

from attrs import evolve, field, frozen

from aclog.analysis.answers.permissions import permissions, with_extents
from aclog.analysis.answers.set_decision import decide_set
from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import Policy
from aclog.analysis.regions.principals import only
from aclog.analysis.regions.query import Query
from aclog.analysis.side_premises import SidePremises, turning
from aclog.authorizer.acl import AclOperation, ResourcePattern, ResourceType
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.explain_options import ExplainOptions
from aclog.authorizer.hosts import host_address
from aclog.authorizer.interface import Action, AuthorizationResult, RequestContext
from aclog.authorizer.name_notation import is_set
from aclog.authorizer.origin import TwoOrigins
from aclog.authorizer.premises import Premises
from aclog.authorizer.standard import StandardAuthorizer
from aclog.library.answer import Answer
from aclog.library.arguments import enum_code, resource_of, shown, text_of
from aclog.library.grant import Grant
from aclog.metalog.errors import ConfigError
from aclog.snapshots.mapped_file import check_mapping

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
    _given: frozenset[str] = field(default=frozenset(), repr=False)
    """The properties of brokers whose values were given."""

    def __repr__(self) -> str:
        settings = self._policy.settings
        given = [f"acls={len(self._acls)}"]
        if settings.super_users:
            given.append(f"super_users={sorted(settings.super_users)}")
        if settings.allow_everyone:
            given.append("allow_everyone_if_no_acl_found=True")
        if settings.documented:
            given.append("semantics='documented'")
        if settings.cidr:
            given.append("cidr=True")
        return f"Authorizer({', '.join(given)})"

    @property
    def premises(self) -> Premises:
        """What a running cluster has set and does not show, and nothing gives: each could turn decisions."""
        return self._options.premises

    def diff(self, other: "Authorizer") -> Comparison:
        """Return the requests that `other` decides differently (`aclog diff`): regions, rows, and both as text.

        If there are none, `premises` of the comparison are what is unknown and could turn that.

        Raises:
            ConfigError: `other` is no authorizer.

        """
        if not isinstance(other, Authorizer):
            raise ConfigError(f"diff {shown(other)}: expected an authorizer, of image.authorizer()")
        origins = TwoOrigins(old=self._options.origins, new=other._options.origins)
        found = Comparison.of(self._policy, other._policy, origins=origins)
        if not found.differences:
            found.premises = turning(self._beside(other), found)
        return found

    def _beside(self, other: "Authorizer") -> SidePremises:
        """Return what is unknown of both; a state that is no running cluster's has the settings of the other one."""
        old, new = self.premises, other.premises
        if old and new and self._options.place != other._options.place:
            return SidePremises(old=old, new=new, same_settings=False)
        return SidePremises.of_one(SidePremises(old=old, new=new).unknown, self._given, other._given)

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
        asked = AclOperation(enum_code(AclOperation, operation))
        pattern = resource_of(resource)
        action = Action(operation=asked, resource_pattern=pattern)
        options = evolve(self._options, host_given=host is not None)
        if is_set(pattern):
            found = decide_set(self._policy, context, action)
            check_mapping(self._acls)
            return Answer(context, action, found.decision, acls=self._acls, options=options, policy=self._policy)
        decision = self.standard.decide(context, action)
        check_mapping(self._acls)
        return Answer(context, action, decision, acls=self._acls, options=options)

    def who_can(
        self, operation: str | AclOperation, resource: str | ResourcePattern, *, host: str | None = None
    ) -> list[Grant]:
        """Return everybody who may do something with a resource, from one host or from any (`aclog who-can`).

        The list is complete: if principals that no rule names may, too, a grant says so (`for_anyone`). With `pii-*`
        it has who may on any name that begins so, and `covers_all` says whether on all of them.

        Raises:
            ConfigError: an unknown operation, an invalid address, or an argument of another type.

        """
        code = enum_code(AclOperation, operation)
        if code <= AclOperation.ALL:
            raise ConfigError(f"operation {shown(operation)}: expected one that requests have, such as 'READ'")
        asked = (resource_of(resource),)
        return self._grants(Query(resources=asked, operations=1 << code, host=_address(host)), asked)

    def what_can(self, principal: str, *, host: str | None = None) -> list[Grant]:
        """Return all that a principal may do, from one host or from any (`aclog what-can`).

        Raises:
            ConfigError: an invalid address, a principal without a type, or an argument of another type.

        """
        asked = text_of("principal", principal, "User:alice")
        if ":" not in asked or asked == "User:*":
            raise ConfigError(f"principal {shown(asked)}: expected the type and name of a client, such as 'User:alice'")
        return self._grants(Query(principals=only(asked), host=_address(host)), ())

    def _grants(self, query: Query, asked: Sequence[ResourcePattern]) -> list[Grant]:
        found = with_extents(permissions(self._policy, query), asked)
        grants = [Grant(each, self._acls, self._options.origins) for each in found]
        check_mapping(self._acls)
        return grants

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
