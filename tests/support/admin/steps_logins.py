"""Connections and logins, good and bad."""

import struct
from collections.abc import Iterator

from tests.support.admin.requests import (
    API_VERSIONS,
    BOTH,
    DESCRIBE_CLUSTER,
    HANDSHAKE,
    Send,
    Step,
    authenticate,
    cluster,
    create,
    describe,
    fresh,
    handshake,
    metadata,
    rule,
    send,
    unknown,
    versions,
)


def before_login() -> Iterator[Step]:
    good = authenticate(b"\0admin\0admin-secret")
    for listener in BOTH:
        for version in range(5):
            yield fresh(f"ApiVersions v{version}", versions(version), listener=listener)
        for version in (5, 99, 32767):
            ask = unknown(API_VERSIONS, version, b"\2a\2b\0", flexible=True, decode_as=(API_VERSIONS, 0))
            yield fresh(f"ApiVersions v{version}, then v0", ask, versions(0), listener=listener)
        for name, number in (
            ("", "1"),
            ("a b", "1"),
            ("a", "1/2"),
            ("-a", "1"),
            ("a", ""),
            ("é", "1"),
            ("a.b-c", "9-x"),
        ):
            yield fresh(f"ApiVersions of {name!r} {number!r}", versions(3, name, number), listener=listener)
        yield fresh("ApiVersions twice", versions(0), versions(3), listener=listener)
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "plain", ""):
            yield fresh(f"handshake for {mechanism!r}", handshake(mechanism), listener=listener)
        yield fresh("ApiVersions after a handshake", handshake(), versions(0), listener=listener)
        yield fresh("handshake twice", handshake(), handshake(), listener=listener)
        yield fresh("Metadata before login", metadata(13, None), listener=listener)
        yield fresh("CreateAcls before login", versions(0), create(3, rule()), listener=listener)
        yield fresh("DescribeAcls after a handshake", handshake(), describe(3), listener=listener)
        yield fresh("authenticate without a handshake", good, listener=listener)
        yield fresh("DescribeCluster before login", send(DESCRIBE_CLUSTER, 2, **cluster(1)), listener=listener)
    later = unknown(HANDSHAKE, 2, b"\0\5PLAIN", flexible=False, decode_as=(HANDSHAKE, 1))
    yield fresh("handshake v2", later)
    yield fresh("an API of number 9999", unknown(9999, 0, flexible=False, decode_as=(API_VERSIONS, 0)))
    yield fresh("an API of number -1", unknown(-1, 0, flexible=False, decode_as=(API_VERSIONS, 0)))
    for length in (-1, -(2**31), 0, 3, 7, 600_000, 2**31 - 1):
        body = bytes(max(0, min(length, 1000)))
        yield fresh(f"a frame of length {length}", Send(raw=struct.pack(">i", length) + body))
    yield fresh("a header cut short", Send(frame=struct.pack(">hhihh", 18, 0, 1, 20, 0)))
    yield fresh("a client id of length -2", Send(frame=struct.pack(">hhih", 18, 0, 1, -2), decode_as=(18, 0)))
    yield fresh("no client id", Send(frame=struct.pack(">hhih", 18, 0, 1, -1), decode_as=(18, 0)))
    yield fresh("HTTP", Send(raw=b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))


def logins() -> Iterator[Step]:
    tokens = {
        "good": b"\0admin\0admin-secret",
        "good, an identity of its own": b"admin\0admin\0admin-secret",
        "another identity": b"bob\0admin\0admin-secret",
        "bad password": b"\0admin\0wrong",
        "unknown user": b"\0nobody\0wrong",
        "no user": b"\0\0admin-secret",
        "no password": b"\0admin\0",
        "nothing": b"",
        "one part": b"admin",
        "two parts": b"admin\0admin-secret",
        "four parts": b"\0admin\0admin-secret\0more",
        "three NULs": b"\0admin\0admin-secret\0",
        "not UTF-8": b"\0\xff\xfe\0admin-secret",
        "a user of SCRAM": b"\0sam\0sam-secret",
    }
    for listener in BOTH:
        for name, token in list(tokens.items())[: 14 if listener == "broker" else 4]:
            yield fresh(f"PLAIN: {name}", handshake(), authenticate(token), versions(0), listener=listener)
    for version in (0, 1):
        yield fresh(f"authenticate v{version}", handshake(), authenticate(b"\0bob\0bob-secret", version), describe(3))
        yield fresh(f"authenticate v{version}, bad", handshake(), authenticate(b"\0bob\0x", version), versions(0))
    old = [Send(frame=b"\0admin\0admin-secret"), Send(frame=b"\0admin\0wrong")]
    yield fresh("handshake v0, the bare token, then a request", handshake(version=0), old[0], versions(0), describe(1))
    yield fresh("handshake v0, a bad token", handshake(version=0), old[1])
    yield fresh("handshake v0, then SaslAuthenticate", handshake(version=0), authenticate(b"\0admin\0admin-secret"))
    again = (handshake(), authenticate(b"\0alice\0alice-secret"))
    yield fresh("authenticate after login", *again, authenticate(b"\0alice\0alice-secret"), versions(0))
    yield fresh("ApiVersions after login", *again, *(versions(version) for version in range(5)))
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        for name, token in (("garbage", b"garbage"), ("nothing", b"")):
            yield fresh(f"{mechanism}: {name}", handshake(mechanism), authenticate(token), versions(0))
        yield Step(name=f"{mechanism}: unknown user", scram=(mechanism, "nobody", "secret"))
    yield Step(name="login of the first SCRAM user", scram=("SCRAM-SHA-256", "admin", "admin-secret"))
    yield Step(name="its mechanism only", scram=("SCRAM-SHA-512", "admin", "admin-secret"))
    yield Step(name="a wrong password", scram=("SCRAM-SHA-256", "admin", "wrong"))
    yield Step(name="a user of PLAIN", scram=("SCRAM-SHA-256", "bob", "bob-secret"))


def scram_logins() -> Iterator[Step]:
    tries = [("SCRAM-SHA-256", "sam", "sam-secret"), ("SCRAM-SHA-512", "sam", "sam-secret-2")]
    tries += [("SCRAM-SHA-256", "sam", "wrong"), ("SCRAM-SHA-512", "tim", "secret"), ("SCRAM-SHA-256", "tim", "secret")]
    tries += [
        ("SCRAM-SHA-256", "tom", "secret"),
        ("SCRAM-SHA-256", "admin", "changed"),
        ("SCRAM-SHA-256", "admin", "x"),
    ]
    tries += [("SCRAM-SHA-256", "é😀,=x", "secret"), ("SCRAM-SHA-256", "unsalted", "secret")]
    for mechanism, user, secret in tries:
        yield Step(name=f"login {mechanism} {user} {secret}", scram=(mechanism, user, secret))
    plain = authenticate(b"\0sam\0sam-secret")
    yield fresh("a SCRAM user is none of PLAIN's", handshake(), plain, versions(0))
