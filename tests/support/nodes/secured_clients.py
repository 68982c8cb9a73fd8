"""Clients of a secured node: Kafka's tools, librdkafka, and one by hand that can misbehave behind TLS too."""

import re
import ssl
import struct
import time
from http.client import HTTPConnection
from typing import Any, Self

import confluent_kafka as ck
import confluent_kafka.admin as cka

from tests.support.kafka.tools import MAINS
from tests.support.kafka.warm_jvms import Printed, ToolPipe
from tests.support.nodes.secured_node import LISTENERS, STORE, Estate, SecuredNode, confluent_client, java_client
from tests.support.nodes.wire_client import ClosedError, WireClient, encode_request, request_header
from tests.support.processes.waiting import SECONDS

DESCRIBE_ACLS, API_VERSIONS = 29, 18
_ANY = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1, "principal_filter": None}
EVERYTHING = _ANY | {"host_filter": None, "operation": 1, "permission_type": 1}


class Java:
    """Kafka's own tools on the listeners of a node."""

    def __init__(self, pipe: ToolPipe, node: SecuredNode) -> None:
        self._pipe, self._node = pipe, node

    def run(self, listener: str, *arguments: str, tool: str = "acls", **client: Any) -> Printed:
        """A tool's command line with a client's settings (see `java_client`)."""
        path = self._node.home / "client.properties"
        path.write_text(java_client(self._node.estate, LISTENERS[listener], **client), encoding="utf-8")
        flag = "--bootstrap-controller" if listener == "CONTROLLER" else "--bootstrap-server"
        address = f"localhost:{self._node.at[listener]}"
        return self._pipe.run(MAINS[tool], [flag, address, "--command-config", str(path), *arguments])


def confluent_says(node: SecuredNode, listener: str, **client: Any) -> str:
    """What librdkafka makes of DescribeAcls: the number of rules, or the first error that it tells of."""
    errors: list[str] = []
    config = confluent_client(node.estate, node.at[listener], LISTENERS[listener], **client)

    def on_error(error: ck.KafkaError) -> None:
        if error.name() != "_ALL_BROKERS_DOWN":  # says nothing of why
            errors.append(error.str())

    admin = cka.AdminClient(config | {"error_cb": on_error})
    everything = cka.AclBindingFilter(
        cka.ResourceType.ANY, None, cka.ResourcePatternType.ANY, None, None, cka.AclOperation.ANY,
        cka.AclPermissionType.ANY,
    )  # fmt: skip
    future = admin.describe_acls(everything, request_timeout=SECONDS)
    deadline = time.monotonic() + SECONDS
    while not future.done() and not errors and time.monotonic() < deadline:
        admin.poll(0.02)
    if errors:
        return errors[0]
    try:
        return str(len(future.result(timeout=SECONDS)))
    except ck.KafkaException as error:
        return str(error.args[0].str())


def context(estate: Estate, key: str | None = None) -> ssl.SSLContext:
    """TLS with a certificate or without."""
    tls = ssl.create_default_context(cafile=str(estate.pem("trusted")))
    if key is not None:
        tls.load_cert_chain(estate.pem(key), password=STORE)
    return tls


class Wire(WireClient):
    """A connection to a listener of a node, behind TLS where the listener has it."""

    def __init__(self, node: SecuredNode, listener: str, key: str | None = None) -> None:
        super().__init__(node.at[listener])
        if LISTENERS[listener].endswith("SSL"):
            self._socket = context(node.estate, key).wrap_socket(self._socket, server_hostname="localhost")

    @property
    def server(self) -> str:
        """The common name in the server's certificate."""
        assert isinstance(self._socket, ssl.SSLSocket)
        return dict(pair for rdn in self._socket.getpeercert()["subject"] for pair in rdn)["commonName"]

    def framed(self, api_key: int, version: int, body: bytes | None = None, /, **fields: Any) -> bytes:
        """A request as bytes, with its length; it counts as sent."""
        self.correlation_id += 1
        payload = encode_request(api_key, version, **fields) if body is None else body
        whole = request_header(api_key, version, self.correlation_id) + payload
        return struct.pack(">i", len(whole)) + whole

    def described(self) -> int:
        """The error code of a DescribeAcls."""
        return int(self.ask(DESCRIBE_ACLS, 3, **EVERYTHING).error_code)

    def frames_until_closed(self) -> list[bytes]:
        """All answers that still come."""
        frames = []
        try:
            while True:
                frames.append(self.read_frame())
        except ClosedError:
            return frames

    def __enter__(self) -> Self:
        return self


def samples(node: SecuredNode, name: str) -> dict[str, float]:
    """A metric's values by listener and mechanism, such as `BASIC/PLAIN`."""
    text = metrics(node)
    rows = re.findall(rf'^{name}{{listener="(\w+)",mechanism="([^"]+)"}} (\S+)$', text, re.MULTILINE)
    return {f"{listener}/{mechanism}": float(value) for listener, mechanism, value in rows}


def metrics(node: SecuredNode) -> str:
    """What /metrics says."""
    connection = HTTPConnection("127.0.0.1", node.at["HTTP"], timeout=SECONDS)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    finally:
        connection.close()
