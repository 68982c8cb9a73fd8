"""SCRAM credentials in ZooKeeper, written as a broker of Kafka 3.9 writes them; a user's quotas stay untouched."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from aclog.metalog.records import UserScramCredentialRecord
from aclog.zkstore.client.nodes import CreateNode
from aclog.zkstore.client.retry import retried
from aclog.zkstore.scram_config import (
    CONFIG_CHANGE_PREFIX,
    CONFIG_CHANGES_PATH,
    USERS_PATH,
    UserConfig,
    decode_credential,
    decode_user_config,
    encode_config_change,
    encode_user_config,
    user_path,
    with_credentials,
)
from aclog.zkstore.token_store import node_operation

if TYPE_CHECKING:
    from aclog.zkstore.client.session import ZkClient


@frozen
class ScramStore:
    """The credentials of a store, through a connected client; any thread may call it."""

    client: "ZkClient"

    def read(self, user: str) -> list[UserScramCredentialRecord]:
        """A user's credentials, by mechanism. Raises EncodeError, DecodeError, StoreError."""
        path = user_path(user)
        node = self.client.get(path)
        config = UserConfig() if node is None else decode_user_config(node.data, path)
        return [decode_credential(user, mechanism, text) for mechanism, text in config.credentials()]

    def put(self, user: str, records: Sequence[UserScramCredentialRecord]) -> None:
        """Give a user exactly these credentials; without any, and without quotas, the user's node goes.

        Raises:
            EncodeError: a name that no node can have.
            DecodeError: the node says nothing clear: it is left as it is.
            StoreError: too many others wrote at once, or ZooKeeper did not answer.

        """
        path = user_path(user)
        retried(self.client, lambda: self._write(path, records))

    def _write(self, path: str, records: Sequence[UserScramCredentialRecord]) -> None:
        node = self.client.get(path)
        config = with_credentials(UserConfig() if node is None else decode_user_config(node.data, path), records)
        goes = not config.values and (node is None or not node.child_count)
        operation = node_operation(path, node, None if goes else encode_user_config(config))
        if operation is None:
            return
        self.client.ensure(USERS_PATH)
        self.client.ensure(CONFIG_CHANGES_PATH)
        event = CreateNode(path=CONFIG_CHANGE_PREFIX, data=encode_config_change(path), sequence=True)
        self.client.commit((operation, event))
