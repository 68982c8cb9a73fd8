"""Whether a node is open, or locked, by mistake: its settings and its ACLs together, in the log and as metrics."""

import logging
from collections.abc import Iterable, Iterator

from attrs import define, field

from aclog.authorizer.acl import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
)
from aclog.authorizer.config import (
    ALLOW_EVERYONE_CONFIG,
    SUPER_USERS_CONFIG,
    parse_allow_everyone,
    parse_super_users,
)
from aclog.authorizer.interface import Authorizer
from aclog.nodes.config.access_warnings import (
    EVERYBODY_ADMINISTERS,
    NO_ADMINISTRATOR,
    NO_AUTHORIZER,
    AccessWarning,
    access_property,
    configured_warnings,
    has_kafkas_semantics,
    without_authorizer,
)
from aclog.nodes.config.node_config import NodeConfig
from aclog.nodes.telemetry.metrics import Metrics
from aclog.snapshots.publisher import Publisher

_ON_CLUSTER = AclBindingFilter(
    resource_type=ResourceType.CLUSTER, resource_name=CLUSTER_NAME, pattern_type=PatternType.MATCH
)
_ADMINISTERS = (AclOperation.ALTER, AclOperation.ALL)

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class AccessCheck:
    """Says at the start what is amiss, and shows it in `metrics` for as long as it is. Owned by a node.

    Nothing is refused: Kafka starts with all of this, and each of it may be meant.
    """

    config: NodeConfig
    authorizer: Authorizer | None
    publisher: Publisher
    metrics: Metrics
    _configured: tuple[AccessWarning, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._configured = tuple(configured_warnings(self.config))
        for warning in self._configured:
            self.metrics.access_warning.labels(warning.kind).set(1)

    def say_configured(self) -> None:
        """Log what is amiss whatever the ACLs are; before the first listener opens."""
        _say(self._configured)

    def watch(self) -> None:
        """Log what is amiss with these settings and the ACLs, and measure it from now on; after the replay."""
        said = {each.kind for each in self._configured}
        _say(each for each in self.of_acls() if each.kind not in said)
        for kind in {NO_AUTHORIZER, NO_ADMINISTRATOR, EVERYBODY_ADMINISTERS} - said:
            self.metrics.access_warning.labels(kind).set_function(
                lambda kind=kind: any(each.kind == kind for each in self.of_acls())  # type: ignore[misc]
            )

    def of_acls(self) -> Iterator[AccessWarning]:
        """Yield what is amiss with the ACLs of now."""
        if self.authorizer is None:
            if count := len(self.publisher.current.acls):
                yield without_authorizer([f"the log holds {count} ACL{'' if count == 1 else 's'}"])
        # Brokers pass changes of ACLs on, and controllers decide them, by settings of their own.
        elif self.config.is_controller and has_kafkas_semantics(self.config):
            yield from self._administration(self.authorizer)

    def _administration(self, authorizer: Authorizer) -> Iterator[AccessWarning]:
        users = parse_super_users(access_property(self.config, SUPER_USERS_CONFIG))
        everyone = parse_allow_everyone(access_property(self.config, ALLOW_EVERYONE_CONFIG))
        if users and not everyone:
            return  # without a look at the ACLs, which may be many
        acls = [each.acl for each in authorizer.acls(_ON_CLUSTER)]
        if everyone and not acls:
            yield AccessWarning(
                kind=EVERYBODY_ADMINISTERS,
                text=f"{ALLOW_EVERYONE_CONFIG} is true, and no ACL is on the cluster: everybody may change ACLs. "
                "Expected an ACL that allows ALTER on the cluster to administrators only",
            )
        elif not users and not _somebody(acls):
            yield AccessWarning(
                kind=NO_ADMINISTRATOR,
                text=f"nobody may change ACLs: {SUPER_USERS_CONFIG} is empty, and no ACL allows ALTER on the cluster. "
                f"Expected {SUPER_USERS_CONFIG}=User:NAME",
            )


def _somebody(acls: Iterable[StandardAcl]) -> bool:
    """Whether ACLs on the cluster allow somebody to change ACLs."""
    found = [each for each in acls if each.operation in _ADMINISTERS]
    allowed = any(each.permission_type == AclPermissionType.ALLOW for each in found)
    return allowed and not any(
        each.permission_type == AclPermissionType.DENY
        and each.principal == WILDCARD_PRINCIPAL
        and each.host == WILDCARD
        for each in found
    )


def _say(warnings: Iterable[AccessWarning]) -> None:
    for each in warnings:
        _log.warning("%s", each.text, extra={"warning": each.kind})
