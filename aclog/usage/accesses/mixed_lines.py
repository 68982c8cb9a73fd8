"""Lines of kafka-authorizer.log and objects of JSON in one file, as of logs that were joined."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from aclog.authorizer.access_reject import Reason
from aclog.authorizer.audit_line_reader import HEAD
from aclog.usage.accesses.form import AccessForm, form_of_object
from aclog.usage.accesses.json_object import object_of

_HEADED: Final = re.compile(HEAD.encode(), re.ASCII | re.MULTILINE)
_OBJECT: Final = re.compile(rb"^[ \t]*\{", re.MULTILINE)


def lines_by_form(block: bytes, form: AccessForm) -> Iterator[tuple[AccessForm, bytes]]:
    """Yield runs of lines of one form each; `form` is that of the file, and of all lines that tell no other."""
    other = _OBJECT if form is AccessForm.KAFKA_LOG else _HEADED
    if other.search(block) is None:
        yield form, block
        return
    for own, run in groupby(_lines(block), key=lambda line: _form_of(line, form)):
        yield own, b"".join(run)


def _lines(block: bytes) -> list[bytes]:
    """Return the lines, each with its line feed; the last may lack it."""
    *whole, rest = block.split(b"\n")
    return [*(line + b"\n" for line in whole), *([rest] if rest else [])]


def _form_of(line: bytes, form: AccessForm) -> AccessForm:
    if _OBJECT.match(line) is None:
        return AccessForm.KAFKA_LOG if _HEADED.match(line) is not None else form
    if form is not AccessForm.KAFKA_LOG:
        return form
    value = object_of(line)
    return (None if isinstance(value, Reason) else form_of_object(value)) or AccessForm.JSONL
