"""An ACL without its id, as its digest and as text."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

import numpy as np

from aclog.metalog.vectors import Bytes

KEY_BYTES: Final = 16
_HEAD_BYTES: Final = 3 + 16
"""Of the record of an ACL: frame version, type, version of the record; and the id."""


def digests(records: Iterable[bytes]) -> Bytes:
    """Return the digests, as (n, 16) bytes, of ACLs given as the records of a metadata log; ids do not count."""
    joined = b"".join(blake2b(record[_HEAD_BYTES:], digest_size=KEY_BYTES).digest() for record in records)
    return np.frombuffer(joined, np.uint8).reshape(-1, KEY_BYTES)
