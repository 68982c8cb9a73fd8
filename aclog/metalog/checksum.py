"""The CRC-32C of record batches."""

from aclog.metalog.primitives import Buffer


def crc32c(data: Buffer, value: int = 0) -> int:
    """Return the CRC of some bytes, or of those before, whose CRC is `value`, with these after them."""
    # Imported when first asked: the package imports importlib.metadata, which decisions on rules in a file do without.
    from crc32c import crc32c as computed  # noqa: PLC0415

    found: int = computed(data, value)
    return found
