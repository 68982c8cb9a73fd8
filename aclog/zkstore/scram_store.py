"""SCRAM credentials in ZooKeeper, written as by a broker of Kafka 3.9 (AdminZkClient.changeConfigs)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from aclog.metalog.records import UserScramCredentialRecord
from aclog.zkstore.client.nodes import CreateNode, operation_to
from aclog.zkstore.client.retry import retried
from aclog.zkstore.znodes.paths import CONFIG_CHANGE_PREFIX, CONFIG_CHANGES_PATH, USERS_PATH
from aclog.zkstore.znodes.scram_config import (
    UserConfig,
    decode_credential,
    decode_user_config,
    encode_config_change,
    encode_user_config,
    user_path,
    with_credentials,
)

if TYPE_CHECKING:
    from aclog.zkstore.client.session import ZkClient


@frozen
class ScramStore:
    """SCRAM credentials in ZooKeeper, through a connected client. Thread-safe."""

    client: "ZkClient"

    def read(self, user: str) -> list[UserScramCredentialRecord]:
        """Read a user's credentials, by mechanism. Raises EncodeError, DecodeError, StoreError."""
        path = user_path(user)
        node = self.client.get(path)
        config = UserConfig() if node is None else decode_user_config(node.data, path)
        return [decode_credential(user, mechanism, text) for mechanism, text in config.credentials()]

    def put(self, user: str, records: Sequence[UserScramCredentialRecord]) -> None:
        """Replace a user's credentials; a user left without credentials and quotas is deleted.

        Raises:
            EncodeError: a user name that is not a znode name.
            DecodeError: the znode cannot be decoded; it is left unchanged.
            StoreError: too many conflicts, or ZooKeeper is unavailable.

        """
        path = user_path(user)
        retried(self.client, lambda: self._write(path, records))

    def _write(self, path: str, records: Sequence[UserScramCredentialRecord]) -> None:
        node = self.client.get(path)
        config = with_credentials(UserConfig() if node is None else decode_user_config(node.data, path), records)
        # A znode with children stays: they are the quotas of the user's client ids.
        is_removed = not config.values and (node is None or not node.child_count)
        operation = operation_to(None if is_removed else encode_user_config(config), path=path, node=node)
        if operation is None:
            return
        # The transaction cannot create parents.
        self.client.ensure(USERS_PATH)
        self.client.ensure(CONFIG_CHANGES_PATH)
        event = CreateNode(path=CONFIG_CHANGE_PREFIX, data=encode_config_change(path), sequence=True)
        self.client.commit((operation, event))
