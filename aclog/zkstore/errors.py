"""Errors of the ZooKeeper client. A znode that cannot be decoded is a DecodeError with the znode's path."""

from aclog.metalog.errors import MetadataError


class StoreError(MetadataError):
    """ZooKeeper refused the request, or no response arrived; in the latter case the request may have been applied."""

    retriable = True


class DisconnectedError(StoreError):
    """There was no connection, or it was lost while the request was in flight. The client reconnects by itself."""


class ConflictError(StoreError):
    """Another client changed, created or deleted the znode first; nothing of the transaction was applied."""
