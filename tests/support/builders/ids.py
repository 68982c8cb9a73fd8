"""Uuids for tests, as they stand in a real log."""

import hashlib
from uuid import UUID


def uuid_of(number):
    """Always the same uuid for the same number."""
    return UUID(bytes=hashlib.sha256(str(number).encode()).digest()[:16], version=4)
