"""The real StandardAuthorizer, asked over a pipe (tests/jvm/java/Oracle.java is the other end)."""

import json
import struct
import subprocess
import tempfile
from array import array
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Self

from attrs import frozen

from aclog.authorizer.acl import AclBindingFilter, StandardAclWithId
from aclog.metalog.primitives import uuid_text
from tests.support.kafka.jvm import KAFKA_VERSION, java_command
from tests.support.processes.waiting import SECONDS


class Rule(IntEnum):
    """What an answer is based on where it is not an ACL."""

    DEFAULT_DENY = -1
    DEFAULT_ALLOW = -2
    SUPER_USER = -3
    NO_LINE = -4
    HANG = -5
    ERROR = -10


class Ask(NamedTuple):
    """One request; all codes are Kafka's. `by_type` asks authorizeByResourceType, without name and pattern."""

    by_type: bool
    principal: str
    host: str
    operation: int
    resource_type: int
    name: str = ""
    pattern_type: int = 3


class Answer(NamedTuple):
    """What Kafka says.

    `letter` is A allowed, D denied, E it throws, H it never returns. `rule` is the ACL's place in the order in which
    the ACLs were given, or a `Rule`; for byResourceType that of its internal probe. `error` is class and message.
    """

    letter: str
    rule: int
    error: str = ""


@frozen(kw_only=True)
class Estate:
    """The rules of a cluster and what server.properties says about super users and allow.everyone."""

    acls: Sequence[StandardAclWithId]
    super_users: str | None = None
    allow_everyone: str | None = None
    ready: bool = True


class OracleError(Exception):
    """The JVM died or refused; its stderr is in the text."""


class OracleProcess:
    """One JVM with one StandardAuthorizer of a release. Not for several threads."""

    def __init__(self, version: str = KAFKA_VERSION) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process
        command = java_command("aclog.Oracle", version=version, options=("-Xmx512m",))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=1 << 16
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the JVM."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()
        try:
            self._process.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def load(self, estate: Estate) -> list[str]:
        """A new authorizer with this estate; the text of each ACL, as Kafka prints it.

        Raises:
            OracleError: Kafka refuses it (one ACL under two ids, a bad super user).

        """
        message = {"acls": [_acl_row(entry) for entry in estate.acls], "ready": estate.ready}
        if estate.super_users is not None:
            message["super.users"] = estate.super_users
        if estate.allow_everyone is not None:
            message["allow.everyone.if.no.acl.found"] = estate.allow_everyone
        reply = self._ask("L", message)
        if "error" in reply:
            raise OracleError(reply["error"])
        return reply["texts"]

    def change(self, changes: Sequence[StandardAclWithId | str]) -> list[str | None]:
        """addAcl for each entry, removeAcl for each id text, in order; the error of each, or None."""
        rows = [[change] if isinstance(change, str) else _acl_row(change) for change in changes]
        return self._ask("C", {"rows": rows})["errors"]

    def matching(self, acl_filter: AclBindingFilter) -> list[int]:
        """The ACLs that acls(filter) gives, in its order."""
        row = [
            acl_filter.resource_type,
            acl_filter.resource_name,
            acl_filter.pattern_type,
            acl_filter.principal,
            acl_filter.host,
        ]
        reply = self._ask("F", [*row, acl_filter.operation, acl_filter.permission_type])
        if "error" in reply:
            raise OracleError(reply["error"])
        return reply["found"]

    def audit(self, request: dict[str, object]) -> dict[str, object]:
        """One request, with the keys of the golden sets; its `result` and the `lines` (level, text) it logged."""
        return self._ask("A", request)

    def decide(self, asks: Sequence[Ask], *, hang_millis: int = 200) -> list[Answer]:
        """One answer a request, in order. A request that burns `hang_millis` of CPU time never returns."""
        codes: dict[str, int] = {}
        table = array("i")
        for ask in asks:
            principal, host = codes.setdefault(ask.principal, len(codes)), codes.setdefault(ask.host, len(codes))
            name = codes.setdefault(ask.name, len(codes))
            row = (ask.by_type, principal, host, ask.operation, ask.resource_type, name, ask.pattern_type)
            table.extend(row)
        table.byteswap()
        self._send("D", {"strings": list(codes), "hangMillis": hang_millis}, struct.pack(">i", len(asks)), table)
        letters = self._read(len(asks)).decode("ascii")
        rules = array("i", self._read(4 * len(asks)))
        rules.byteswap()
        errors = self._reply()
        return [
            Answer(letter, rule) if rule > Rule.ERROR else Answer(letter, Rule.ERROR, errors[Rule.ERROR - rule])
            for letter, rule in zip(letters, rules, strict=True)
        ]

    def _ask(self, letter: str, message: object) -> dict:
        self._send(letter, message)
        return self._reply()

    def _send(self, letter: str, message: object, *more: object) -> None:
        data = json.dumps(message).encode()
        try:
            for part in (letter.encode(), struct.pack(">i", len(data)), data, *more):
                self._process.stdin.write(part)
            self._process.stdin.flush()
        except BrokenPipeError as e:
            raise self._died() from e

    def _reply(self) -> object:
        (size,) = struct.unpack(">i", self._read(4))
        return json.loads(self._read(size))

    def _read(self, size: int) -> bytes:
        data = self._process.stdout.read(size)
        if len(data) < size:
            raise self._died()
        return data

    def _died(self) -> OracleError:
        self._process.wait(timeout=SECONDS)
        self._errors.seek(0)
        return OracleError(f"the oracle died ({self._process.returncode}): {self._errors.read().decode()[-2000:]}")


def _acl_row(entry: StandardAclWithId) -> list[object]:
    acl = entry.acl
    place = [acl.resource_type, acl.resource_name, acl.pattern_type]
    return [uuid_text(entry.id), *place, acl.principal, acl.host, acl.operation, acl.permission_type]
