"""Delegation tokens in ZooKeeper, written as a broker of Kafka 3.9 does: a node, and an event that tells of it."""

from typing import TYPE_CHECKING

from attrs import frozen

from aclog.metalog.records import DelegationTokenRecord
from aclog.zkstore.client.nodes import CreateNode, DeleteNode, Node, Operation, SetNode
from aclog.zkstore.client.retry import retried
from aclog.zkstore.token_json import (
    TOKEN_CHANGE_PREFIX,
    TOKEN_CHANGES_PATH,
    TOKENS_PATH,
    decode_token,
    encode_token,
    token_path,
)

if TYPE_CHECKING:
    from aclog.zkstore.client.session import ZkClient


@frozen
class TokenStore:
    """The tokens of a store, through a connected client; any thread may call it."""

    client: "ZkClient"

    def read(self, token_id: str) -> DelegationTokenRecord | None:
        """A token; None where there is none. Raises DecodeError, StoreError."""
        path = token_path(token_id)
        node = self.client.get(path)
        return None if node is None else decode_token(node.data, path)

    def put(self, token: DelegationTokenRecord) -> None:
        """Write a token, new or renewed.

        Raises:
            EncodeError: an id that no node can be named by.
            StoreError: too many others wrote at once, or ZooKeeper did not answer.

        """
        data = encode_token(token)
        retried(self.client, lambda: self._write(token.token_id, data))

    def remove(self, token_id: str) -> None:
        """Remove a token; nothing where there is none. Raises StoreError."""
        retried(self.client, lambda: self._write(token_id, None))

    def _write(self, token_id: str, data: bytes | None) -> None:
        path = token_path(token_id)
        node = self.client.get(path)
        operation = node_operation(path, node, data)
        if operation is None:
            return
        self.client.ensure(TOKENS_PATH)
        self.client.ensure(TOKEN_CHANGES_PATH)
        self.client.commit((operation, CreateNode(path=TOKEN_CHANGE_PREFIX, data=token_id.encode(), sequence=True)))


def node_operation(path: str, node: Node | None, data: bytes | None) -> Operation | None:
    """What makes a node hold these bytes, or makes it go; None where nothing is to be done."""
    if node is None:
        return None if data is None else CreateNode(path=path, data=data)
    if data is None:
        return DeleteNode(path=path, version=node.version)
    return None if node.data == data else SetNode(path=path, data=data, version=node.version)
