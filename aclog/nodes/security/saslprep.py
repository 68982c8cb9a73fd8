"""SASLprep: normalization of user names (RFC 4013)."""

import stringprep
import unicodedata

from aclog.metalog.errors import DecodeError

_PROHIBITED = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
    stringprep.in_table_a1,  # unassigned code points, prohibited in stored strings
)


def saslprep(text: str) -> str:
    """Return the prepared form of a text: uniform spaces, no soft hyphens, NFKC.

    Raises:
        DecodeError: A prohibited character, or mixed text directions.

    """
    mapped = (" " if stringprep.in_table_c12(c) else c for c in text if not stringprep.in_table_b1(c))
    # RFC 3454 is defined on Unicode 3.2; a newer version would normalize some names differently.
    prepared = unicodedata.ucd_3_2_0.normalize("NFKC", "".join(mapped))
    for position, character in enumerate(prepared):
        if any(prohibits(character) for prohibits in _PROHIBITED):
            raise DecodeError(f"U+{ord(character):04X} is not allowed in a user name (RFC 4013)", position=position)
    _check_directions(prepared)
    return prepared


def _check_directions(text: str) -> None:
    """Check RFC 3454, section 6: right-to-left text is not mixed with other text and begins and ends as such."""
    if not any(map(stringprep.in_table_d1, text)):
        return
    ends = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    if not ends or any(map(stringprep.in_table_d2, text)):
        raise DecodeError("user name mixes right-to-left and left-to-right text (RFC 4013)")
