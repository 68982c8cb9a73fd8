"""The errors of a ZooKeeper store that is away, or that changed under one's hands.

A node that says nothing clear is a DecodeError with the node's path.
"""

from aclog.metalog.errors import MetadataError


class StoreError(MetadataError):
    """ZooKeeper did not answer, refused, or its answer was lost: then what was asked for may have happened or not."""

    retriable = True


class DisconnectedError(StoreError):
    """The connection was away, or was lost on the way: it comes back by itself, or not."""


class ConflictError(StoreError):
    """Somebody else changed, made or removed the node: nothing of what was asked for happened."""
