"""Delegation tokens in ZooKeeper, written as by a broker of Kafka 3.9 (KafkaZkClient.setOrCreateDelegationToken)."""

from typing import TYPE_CHECKING

from attrs import frozen

from aclog.metalog.records import DelegationTokenRecord
from aclog.zkstore.client.nodes import CreateNode, operation_to
from aclog.zkstore.client.retry import retried
from aclog.zkstore.znodes.paths import TOKEN_CHANGE_PREFIX, TOKEN_CHANGES_PATH, TOKENS_PATH
from aclog.zkstore.znodes.token_json import decode_token, encode_token, token_path

if TYPE_CHECKING:
    from aclog.zkstore.client.session import ZkClient


@frozen
class TokenStore:
    """Delegation tokens in ZooKeeper, through a connected client. Thread-safe."""

    client: "ZkClient"

    def read(self, token_id: str) -> DelegationTokenRecord | None:
        """Read a token; None if it does not exist. Raises DecodeError, StoreError."""
        path = token_path(token_id)
        node = self.client.get(path)
        return None if node is None else decode_token(node.data, path)

    def put(self, token: DelegationTokenRecord) -> None:
        """Create or replace a token.

        Raises:
            EncodeError: a token id that is not a znode name.
            StoreError: too many conflicts, or ZooKeeper is unavailable.

        """
        data = encode_token(token)
        retried(self.client, lambda: self._write(token.token_id, data))

    def remove(self, token_id: str) -> None:
        """Delete a token if it exists. Raises StoreError."""
        retried(self.client, lambda: self._write(token_id, None))

    def _write(self, token_id: str, data: bytes | None) -> None:
        path = token_path(token_id)
        operation = operation_to(data, path=path, node=self.client.get(path))
        if operation is None:
            return
        # The transaction cannot create parents.
        self.client.ensure(TOKENS_PATH)
        self.client.ensure(TOKEN_CHANGES_PATH)
        self.client.commit((operation, CreateNode(path=TOKEN_CHANGE_PREFIX, data=token_id.encode(), sequence=True)))
