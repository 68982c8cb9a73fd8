"""Hostile bytes for a listener: requests of every API that is served, bent in all the ways that a network can."""

import random
import struct
from collections.abc import Iterator

from aclog.metalog.errors import DecodeError
from aclog.protocol.headers import RequestHeader, encode_header, frame
from aclog.protocol.messages import build, encode_request
from aclog.protocol.responses import BROKER_APIS, CONTROLLER_APIS

INTERESTING = (0, 1, -1, 0x7F, 0x80, 0xFF, 0x7FFF, -0x8000, 0x7FFFFFFF, -0x80000000, 0x10000, 1 << 20)


def whole_requests() -> list[bytes]:
    """One request of each API and version that our nodes serve, empty where it may be, without its length."""
    requests = []
    for api in {each.api_key: each for each in (*BROKER_APIS, *CONTROLLER_APIS)}.values():
        for version in range(api.min_version, api.max_version + 1):
            header = RequestHeader(api_key=api.api_key, api_version=version, correlation_id=1, client_id="fuzz")
            try:
                body = encode_request(build(api.api_key, version, "request"))
            except DecodeError:
                body = bytes(8)  # Envelope version 1
            requests.append(encode_header(header) + body)
    return requests


def hostile(seed: int) -> Iterator[bytes]:
    """What to write to one socket at once, without end: mostly one frame that is damaged in one way."""
    chance, requests = random.Random(seed), whole_requests()
    kinds = (_random, _flipped, _flipped, _spliced, _cut, _longer, _lengths, _wrong_length, _other_api, _many, _alien)
    while True:
        yield chance.choice(kinds)(chance, requests)


def _random(chance, requests):
    return frame(chance.randbytes(chance.randrange(8, 300)))


def _flipped(chance, requests):
    data = bytearray(chance.choice(requests))
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(8, len(data)) if len(data) > 8 and chance.random() < 0.8 else chance.randrange(len(data))
        data[at] = chance.randrange(256)
    return frame(bytes(data))


def _spliced(chance, requests):
    """The header of one request, the body of another."""
    return frame(chance.choice(requests)[:16] + chance.choice(requests)[chance.randrange(8, 20) :])


def _cut(chance, requests):
    data = chance.choice(requests)
    return frame(data[: chance.randrange(8, len(data) + 1)])


def _longer(chance, requests):
    return frame(chance.choice(requests) + chance.randbytes(chance.randrange(1, 2000)))


def _lengths(chance, requests):
    """Numbers that a length or a count might be taken from, in every width, at some place."""
    data = bytearray(chance.choice(requests))
    at, number = chance.randrange(8, len(data) + 1), chance.choice(INTERESTING)
    piece = chance.choice(
        (
            struct.pack(">i", number),
            struct.pack(">h", max(-0x8000, min(0x7FFF, number))),
            b"\xff" * chance.randrange(1, 12) + b"\x07",
            b"\xff\xff\xff\xff\x0f",
            b"\x80" * 9 + b"\x01",
        )
    )
    data[at : at + chance.choice((0, len(piece)))] = piece
    return frame(bytes(data))


def _wrong_length(chance, requests):
    data = chance.choice(requests)
    claimed = chance.choice((len(data) - 1, len(data) + 1, *INTERESTING))
    return struct.pack(">i", claimed) + data


def _other_api(chance, requests):
    key, version = chance.randrange(-2, 100), chance.randrange(-2, 20)
    return frame(struct.pack(">hhi", key, version, chance.randrange(1 << 31)) + chance.choice(requests)[8:])


def _many(chance, requests):
    return b"".join(frame(chance.choice(requests)) for _ in range(chance.randrange(2, 30)))


def _alien(chance, requests):
    return chance.choice(
        (
            b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
            bytes.fromhex("16030100c8010000c40303") + chance.randbytes(193),
            b"SSH-2.0-OpenSSH_9.6\r\n",
            b"\0\0\0\2\x60\x82",
            b"\x60\x82\x02\x55\x06\x09",
            b"\r\n" * chance.randrange(1, 500),
            b"",
        )
    )
