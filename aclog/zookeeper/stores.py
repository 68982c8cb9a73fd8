"""SCRAM credentials and delegation tokens in ZooKeeper."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aclog.metalog.records import DelegationTokenRecord, UserScramCredentialRecord
from aclog.metalog.values import frozen
from aclog.zookeeper import znodes
from aclog.zookeeper.client import CreateNode, operation_to
from aclog.zookeeper.connect import retried

if TYPE_CHECKING:
    from aclog.zookeeper.session import ZkClient


# SCRAM credentials in ZooKeeper, written as by a broker of Kafka 3.9 (AdminZkClient.changeConfigs).


@frozen
class ScramStore:
    """SCRAM credentials in ZooKeeper, through a connected client. Thread-safe."""

    client: "ZkClient"

    def read(self, user: str) -> list[UserScramCredentialRecord]:
        """Read a user's credentials, by mechanism. Raises EncodeError, DecodeError, StoreError."""
        path = znodes.user_path(user)
        node = self.client.get(path)
        config = znodes.UserConfig() if node is None else znodes.decode_user_config(node.data, path)
        return [znodes.decode_credential(user, mechanism, text) for mechanism, text in config.credentials()]

    def put(self, user: str, records: Sequence[UserScramCredentialRecord]) -> None:
        """Replace a user's credentials; a user left without credentials and quotas is deleted.

        Raises:
            EncodeError: a user name that is not a znode name.
            DecodeError: the znode cannot be decoded; it is left unchanged.
            StoreError: too many conflicts, or ZooKeeper is unavailable.

        """
        path = znodes.user_path(user)
        retried(self.client, lambda: self._write(path, records))

    def _write(self, path: str, records: Sequence[UserScramCredentialRecord]) -> None:
        node = self.client.get(path)
        config = znodes.with_credentials(
            znodes.UserConfig() if node is None else znodes.decode_user_config(node.data, path), records
        )
        # A znode with children stays: they are the quotas of the user's client ids.
        is_removed = not config.values and (node is None or not node.child_count)
        operation = operation_to(None if is_removed else znodes.encode_user_config(config), path=path, node=node)
        if operation is None:
            return
        # The transaction cannot create parents.
        self.client.ensure(znodes.USERS_PATH)
        self.client.ensure(znodes.CONFIG_CHANGES_PATH)
        event = CreateNode(path=znodes.CONFIG_CHANGE_PREFIX, data=znodes.encode_config_change(path), sequence=True)
        self.client.commit((operation, event))


# Delegation tokens in ZooKeeper, written as by a broker of Kafka 3.9 (KafkaZkClient.setOrCreateDelegationToken).


@frozen
class TokenStore:
    """Delegation tokens in ZooKeeper, through a connected client. Thread-safe."""

    client: "ZkClient"

    def read(self, token_id: str) -> DelegationTokenRecord | None:
        """Read a token; None if it does not exist. Raises DecodeError, StoreError."""
        path = znodes.token_path(token_id)
        node = self.client.get(path)
        return None if node is None else znodes.decode_token(node.data, path)

    def put(self, token: DelegationTokenRecord) -> None:
        """Create or replace a token.

        Raises:
            EncodeError: a token id that is not a znode name.
            StoreError: too many conflicts, or ZooKeeper is unavailable.

        """
        data = znodes.encode_token(token)
        retried(self.client, lambda: self._write(token.token_id, data))

    def remove(self, token_id: str) -> None:
        """Delete a token if it exists. Raises StoreError."""
        retried(self.client, lambda: self._write(token_id, None))

    def _write(self, token_id: str, data: bytes | None) -> None:
        path = znodes.token_path(token_id)
        operation = operation_to(data, path=path, node=self.client.get(path))
        if operation is None:
            return
        # The transaction cannot create parents.
        self.client.ensure(znodes.TOKENS_PATH)
        self.client.ensure(znodes.TOKEN_CHANGES_PATH)
        self.client.commit(
            (operation, CreateNode(path=znodes.TOKEN_CHANGE_PREFIX, data=token_id.encode(), sequence=True))
        )
