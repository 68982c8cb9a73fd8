"""Answers about delegation tokens, read by hand: kio's reader refuses the -1 that stands for no time."""

import struct
from typing import Any


class Answer:
    """The body of an answer, read from its start; `flexible` is how its strings look."""

    def __init__(self, payload: bytes, *, flexible: bool) -> None:
        self._data, self._flexible = payload, flexible
        self._at = 5 if flexible else 4  # the correlation id, and tags

    def number(self, form: str) -> int:
        """A number by its struct format."""
        (value,) = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += struct.calcsize(form)
        return value

    def text(self) -> str:
        """A string."""
        return self._sized("h").decode()

    def binary(self) -> bytes:
        """Bytes."""
        return self._sized("i")

    def _sized(self, form: str) -> bytes:
        size = self._varint() - 1 if self._flexible else self.number(form)
        self._at += size
        return self._data[self._at - size : self._at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.number("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def end(self) -> None:
        """The throttle time, 0, and no tags; nothing follows."""
        assert self.number("i") == 0
        assert self._data[self._at :] == (b"\0" if self._flexible else b"")


def created(version: int, payload: bytes) -> dict[str, Any]:
    """A CreateDelegationTokenResponse."""
    answer = Answer(payload, flexible=version >= 2)
    fields: dict[str, Any] = {"code": answer.number("h")}
    fields["who"] = [answer.text() for _ in range(4 if version >= 3 else 2)]
    fields["times"] = [answer.number("q") for _ in range(3)]
    fields |= {"token_id": answer.text(), "hmac": answer.binary()}
    answer.end()
    return fields


def changed(version: int, payload: bytes) -> tuple[int, int]:
    """A Renew- or ExpireDelegationTokenResponse: the error code and the expiry."""
    answer = Answer(payload, flexible=version >= 2)
    fields = answer.number("h"), answer.number("q")
    answer.end()
    return fields
