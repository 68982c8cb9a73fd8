"""Whether a KRaft controller owns a ZooKeeper: its cluster is being migrated to KRaft, or was (KIP-866).

Such a controller writes a resource's ACLs as its own log has them, with its next change: what another had written to
ZooKeeper until then is lost (seen with Kafka 3.9.1). Once the migration is over it writes nothing there any more.
"""

from typing import TYPE_CHECKING

from attrs import frozen

from aclog.authorizer.control import INVALID_REQUEST
from aclog.authorizer.errors import AclRequestError
from aclog.metalog.errors import DecodeError
from aclog.zkstore.znodes.json_fields import integer_field, json_object

if TYPE_CHECKING:
    from aclog.zkstore.client.session import ZkClient

_CONTROLLER = "/controller"
"""Who controls the cluster (ControllerZNode); that of a KRaft controller stays when it ends."""
_EPOCH = "kraftControllerEpoch"
"""-1 of a broker; brokers before Kafka 3.4 write none."""


@frozen(kw_only=True)
class KraftController:
    """The KRaft controller that owns a ZooKeeper; `where` is that."""

    node_id: int
    where: str

    @property
    def warning(self) -> str:
        """What to say of ACLs that were read."""
        return f"{self._text}: its ACLs may not be in ZooKeeper any more; ask its brokers (--bootstrap-server)"

    @property
    def error(self) -> AclRequestError:
        """Why ACLs cannot be changed."""
        return AclRequestError(
            INVALID_REQUEST,
            f"{self._text}, and writes over what others change in ZooKeeper: change its ACLs by its brokers "
            "(--bootstrap-server)",
        )

    @property
    def _text(self) -> str:
        return (
            f"{self.where}: KRaft controller {self.node_id} owns the cluster, which is being migrated to KRaft, or was"
        )


def kraft_controller(client: "ZkClient") -> KraftController | None:
    """Return the KRaft controller that owns a ZooKeeper; None if none does.

    Raises:
        DecodeError: the znode of the controller cannot be decoded. StoreError: ZooKeeper is unavailable.

    """
    node = client.get(_CONTROLLER)
    if node is None:
        return None
    fields = json_object(node.data, path=_CONTROLLER)
    try:
        if _EPOCH not in fields or integer_field(fields, _EPOCH) < 0:
            return None
        return KraftController(node_id=integer_field(fields, "brokerid"), where=client.settings.where)
    except DecodeError as error:
        raise error.at(path=_CONTROLLER) from None


def check_not_owned(client: "ZkClient") -> None:
    """Check that what is written to a ZooKeeper stays.

    Raises:
        AclRequestError: a KRaft controller owns it. DecodeError, StoreError: as `kraft_controller`.

    """
    owner = kraft_controller(client)
    if owner is not None:
        raise owner.error
