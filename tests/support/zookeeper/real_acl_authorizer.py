"""The real AclAuthorizer of Kafka 3.9 on a ZooKeeper, asked over a pipe (tests/jvm/java-3.9/AclPipe.java)."""

import json
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from aclog.authorizer.acl import AclBindingFilter, StandardAcl
from tests.support.kafka.jvm import KAFKA_39, java_command
from tests.support.processes.waiting import SECONDS


class Ask(NamedTuple):
    """One request; all codes are Kafka's. `name` None asks authorizeByResourceType."""

    principal: str
    host: str
    operation: int
    resource_type: int
    name: str | None


class RealError(Exception):
    """The real one threw, or its JVM died: class and message of the exception, and of what caused it."""


class RealAclAuthorizer:
    """One JVM with one AclAuthorizer. Not for several threads."""

    def __init__(
        self, properties: dict[str, str] | None = None, *, heap: str = "300m", options: Sequence[str] = ()
    ) -> None:
        """Configured with these properties, if there are any; `options` are further ones of its JVM."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process
        command = java_command("aclog.AclPipe", version=KAFKA_39, options=(f"-Xmx{heap}", *options))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, encoding="utf-8"
        )
        if properties is not None:
            try:
                self.configure(properties)
            except BaseException:
                self.end()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End the JVM, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
        self._errors.close()

    def configure(self, properties: dict[str, str]) -> float:
        """A new authorizer in place of the one before; the seconds that its configure() took."""
        return self._ask("configure", properties=properties)["nanos"] / 1e9

    def close(self) -> None:
        """Close the authorizer; the JVM stays."""
        self._ask("close")

    def create(self, acls: Sequence[StandardAcl]) -> list[str | None]:
        """createAcls: the error of each rule, or None."""
        return self._ask("create", acls=[row_of(acl) for acl in acls])["errors"]

    def delete(self, filters: Sequence[AclBindingFilter]) -> list[set[StandardAcl] | str]:
        """deleteAcls: what each filter deleted, or its error."""
        replies = self._ask("delete", filters=[row_of(acl_filter) for acl_filter in filters])["results"]
        failed = [row for reply in replies for row in reply["deleted"] if row[7] is not None]
        if failed:
            raise RealError(f"not deleted: {failed}")
        return [reply["error"] or {acl_of(row) for row in reply["deleted"]} for reply in replies]

    def acls(self, acl_filter: AclBindingFilter | None = None) -> set[StandardAcl]:
        """acls(filter); all rules without one."""
        rows = self._ask("acls", filter=row_of(acl_filter or AclBindingFilter()))["acls"]
        rules = [acl_of(row) for row in rows]
        if len(rules) != len(set(rules)):
            raise RealError("a rule stands twice")
        return set(rules)

    def decide(self, asks: Sequence[Ask]) -> str:
        """A letter a request: A allowed, D denied, E it throws."""
        codes: dict[str, int] = {}
        rows = []
        for ask in asks:
            numbers = [codes.setdefault(text, len(codes)) for text in (ask.principal, ask.host, ask.name or "")]
            rows.append([int(ask.name is None), *numbers[:2], ask.operation, ask.resource_type, numbers[2]])
        return self._ask("decide", strings=list(codes), rows=rows)["letters"]

    def wait_until(self, ask: Ask, *, allowed: bool, seconds: float = SECONDS) -> float:
        """When authorize() gave this answer first: seconds since 1970."""
        request = {"principal": ask.principal, "host": ask.host, "operation": ask.operation, "type": ask.resource_type}
        millis = int(seconds * 1000)
        return self._ask("await", **request, name=ask.name, allowed=allowed, millis=millis)["micros"] / 1e6

    def begin(self, op: str, **arguments: object) -> None:
        """Send a message, whose answer `reply` reads."""
        self._process.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
        self._process.stdin.flush()

    def reply(self) -> dict[str, Any]:
        """The answer to the message that was sent last."""
        line = self._process.stdout.readline()
        if not line:
            self._process.wait(timeout=SECONDS)
            self._errors.seek(0)
            raise RealError(f"it died ({self._process.returncode}): {self._errors.read().decode()[-2000:]}")
        reply = json.loads(line)
        if "error" in reply:
            raise RealError(reply["error"])
        return reply

    def _ask(self, op: str, **arguments: object) -> dict[str, Any]:
        self.begin(op, **arguments)
        return self.reply()


def row_of(acl: StandardAcl | AclBindingFilter) -> list[object]:
    """A rule or a filter as the pipe has it."""
    place = [acl.resource_type, acl.resource_name, acl.pattern_type]
    return [*place, acl.principal, acl.host, acl.operation, acl.permission_type]


def acl_of(row: Sequence[Any]) -> StandardAcl:
    """The way back."""
    return StandardAcl(
        resource_type=row[0],
        resource_name=row[1],
        pattern_type=row[2],
        principal=row[3],
        host=row[4],
        operation=row[5],
        permission_type=row[6],
    )
