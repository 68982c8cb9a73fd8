r"""Messages of kafka-authorizer.log whose names are plain, read many at a time by Arrow.

Nearly all messages are plain: of Kafka 2.4 or later, on a LITERAL resource, and with names of graphic ASCII characters
other than quotes, `&` and `\`. A blank cannot be in such a name, so no part of a plain message occurs twice, and its
words are at fixed places. It has one reading: that of aclog.authorizer.audit.read_message, which reads the others.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aclog.authorizer.audit import operation_name, resource_type_name
from aclog.metalog.columns import Bools
from aclog.usage.accesses.layouts import LOGGER

PLAIN_FIELDS: Final = ("principal", "host", "operation", "resource_type", "resource_name", "decision")
"""The fields that are read, of those of ParsedLine."""

_NAME = r"[!#-%(-\[\]-~]+"
_KEYS = ("resourceType", "resourceName", "patternType", "principal", "host", "operation")
_ACL = " ".join(f"{key}={_NAME}" for key in _KEYS)
_RULE = rf"SuperUser|DefaultAllow|DefaultDeny|MatchingAcl\(acl=StandardAcl\[{_ACL} permissionType=[A-Z]+\]\)"
_MIDDLE = (
    rf"peration = [A-Za-z_]+ from host = {_NAME} on resource = [A-Za-z_]+:LITERAL:{_NAME} "
    r"for request = \w{1,60} with resourceRefCount = \d{1,10}"
)
# StandardAuthorizer writes `operation` and a rule, AclAuthorizer `Operation` and none.
_BY_RULE = rf"{_NAME} is (?:Allowed|Denied) o{_MIDDLE} based on rule (?:{_RULE})"
_REST = rf"(?:{_BY_RULE}|{_NAME} is (?:Allowed|Denied) O{_MIDDLE})"
_LITERAL = ":LITERAL:"
_LONGEST_HOST: Final = 255


class PlainForm(NamedTuple):
    """Texts with a plain message, and nothing else that varies but the level."""

    pattern: str
    """In the syntax of RE2, without groups: Arrow's groups take ten times as long."""
    principal: int
    """The place of the principal, of the words between blanks."""


MESSAGES: Final = PlainForm(f"^Principal = {_REST}$", 2)
"""A message alone."""
APACHE_LINES: Final = PlainForm(rf"^\] [A-Z]+ Principal = {_REST} \(kafka\.authorizer\.logger\)\r?$", 4)
"""The rest of a line in Apache's layout after its time."""

_AFTER: Final = {
    "": "",
    rf"\ \({LOGGER}\)\r?\Z": rf" \({LOGGER}\)",
    r'"\r?\Z': '"',
}
"""Texts after a message, as a layout has them (layouts.Layout.after) and for RE2, that begin at one place only."""


@cache
def plain_rests(after: str, *, by_rule: bool) -> PlainForm | None:
    """Return the form of lines after `Principal = ` in a layout; None if its text after a message may be ambiguous.

    `by_rule`: only messages with a rule.
    """
    end = _AFTER.get(after)
    return None if end is None else PlainForm(rf"^{_BY_RULE if by_rule else _REST}{end}\r?\n?$", 0)


_ANSWER, _OPERATION, _HOST, _RESOURCE = 2, 5, 9, 13
"""Places of words, from that of the principal."""


def read_plain(texts: Any, form: PlainForm) -> tuple[list[Any], Bools]:
    """Return the columns PLAIN_FIELDS of the plain ones of some binary texts, and which these are."""
    fits = pc.match_substring_regex(texts, form.pattern).fill_null(False)
    plain = texts if pc.all(fits).as_py() else texts.filter(fits)
    count = form.principal + _RESOURCE + 2  # the last one is the text after the resource
    words = pc.split_pattern(plain, pattern=" ", max_splits=count - 1).values
    first = np.arange(len(plain), dtype=np.int64) * count + form.principal

    def word(place: int) -> Any:
        return words.take(pa.array(first + place))

    host, resource = word(_HOST), pc.split_pattern(word(_RESOURCE), pattern=_LITERAL, max_splits=1).values
    of_type = np.arange(len(plain), dtype=np.int64) * 2
    operations = _spelled(word(_OPERATION), operation_name)
    types = _spelled(resource.take(pa.array(of_type)), resource_type_name)
    decisions = pc.if_else(pc.equal(word(_ANSWER), pa.scalar(b"Allowed")), pa.scalar("ALLOWED"), pa.scalar("DENIED"))
    names = (each.cast(pa.string()) for each in (word(0), host, resource.take(pa.array(of_type + 1))))
    principal, host_name, name = names
    columns: list[Any] = [principal, host_name, operations, types, name, decisions]
    is_read = pc.and_(
        pc.and_(operations.is_valid(), types.is_valid()),
        pc.less_equal(pc.binary_length(host), pa.scalar(_LONGEST_HOST)),
    )
    is_plain = np.asarray(fits).copy()
    if not pc.all(is_read).as_py():
        is_plain[is_plain] = np.asarray(is_read)
        columns = [each.filter(is_read) for each in columns]
    return columns, is_plain


def _spelled(texts: Any, name_of: Callable[[str], str | None]) -> Any:
    """Return Kafka's names of an enum by the texts of messages; null for another text."""
    encoded = texts.dictionary_encode()
    names = [name_of(text.decode()) for text in encoded.dictionary.to_pylist()]
    return pa.array(names, pa.string()).take(encoded.indices)
