"""The names of rules by id, in order, from an index that is ordered by the uuids' bytes: lazily, at any size."""

from collections.abc import Iterator
from string import ascii_letters, digits

from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.uuids import uuid_text

_URL_SAFE = ascii_letters[26:] + ascii_letters[:26] + digits + "-_"
"""Base64's digits by their value; their order as text is another."""

_VALUES = {digit: value for value, digit in enumerate(_URL_SAFE)}
_TEXT_LENGTH = 22
_BITS = 128
_BITS_A_DIGIT = 6


def id_names(acls: AclsImage, prefix: str) -> Iterator[str]:
    """The texts of the ids that begin with `prefix`, in the order of Java's String.compareTo.

    Uuids that share their first digits lie together in the index: so they are taken from there digit by digit in the
    order of the text, and only those that share one more digit than the prefix are sorted at a time.
    """
    if any(digit not in _VALUES for digit in prefix):
        return
    if len(prefix) >= _TEXT_LENGTH - 1:
        yield from _of_digits(acls, prefix[: _TEXT_LENGTH - 1], prefix)
        return
    for digit in sorted(_VALUES):
        yield from _of_digits(acls, prefix + digit, prefix)


def _of_digits(acls: AclsImage, digits: str, prefix: str) -> list[str]:
    """The texts of the ids that begin with at most 21 digits, which are whole bits of the uuid."""
    low = 0
    for digit in digits:
        low = low << _BITS_A_DIGIT | _VALUES[digit]
    shift = _BITS - _BITS_A_DIGIT * len(digits)
    texts = map(uuid_text, acls.ids(low << shift, low + 1 << shift))
    return sorted(text for text in texts if text.startswith(prefix))
