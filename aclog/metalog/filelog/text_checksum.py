"""The last line of a small text file that guards the others: `crc32c=` and eight hexadecimal digits."""

import crc32c

_KEY = b"crc32c="


def with_checksum(text: bytes) -> bytes:
    """Return lines, followed by a line with the CRC-32C of all their bytes."""
    return text + _last_line(text)


def without_checksum(data: bytes) -> bytes | None:
    """Return the lines that `with_checksum` was given; None if the last line does not match them."""
    text, found, crc = data.rpartition(_KEY)
    return text if found + crc == _last_line(text) else None


def _last_line(text: bytes) -> bytes:
    return _KEY + f"{crc32c.crc32c(text):08x}\n".encode("ascii")
