"""Kafka client libraries against a listener: login, and retry while credentials are not ready."""

import asyncio
import contextlib

import pytest
from confluent_kafka.admin import AdminClient

from aclog.credentials.scram import ScramMechanism
from aclog.protocol.api_keys import METADATA
from aclog.protocol.messages import build, build_response
from tests.nodes.server.test_dispatch import SCRAM, credential
from tests.support.nodes.served_listener import FixedCredentials, run
from tests.support.processes.waiting import SECONDS

# kafka-python reads its schemas by a function of importlib that is on its way out.
pytestmark = pytest.mark.filterwarnings("ignore:(read_text|open_text) is deprecated:DeprecationWarning")


def metadata(served):
    async def handler(request):
        version = request.header.api_version
        broker = build(
            METADATA, version, "response", "MetadataResponseBroker", node_id=1, host="127.0.0.1", port=served[0]
        )
        return build_response(METADATA, version, brokers=(broker,), cluster_id="c", controller_id=1)

    return handler


def librdkafka(port, errors, password="bob-secret"):
    client = AdminClient(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "bob",
            "sasl.password": password,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "error_cb": lambda error: errors.append(error.name()),
            "log_level": 0,
        }
    )
    return list(client.list_topics(timeout=SECONDS).brokers)


def kafka_python(port, errors, password="bob-secret"):
    from kafka import KafkaAdminClient
    from kafka.errors import KafkaError

    with contextlib.suppress(KafkaError):
        client = KafkaAdminClient(
            bootstrap_servers=f"127.0.0.1:{port}",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-256",
            sasl_plain_username="bob",
            sasl_plain_password=password,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=100,
            bootstrap_timeout_ms=20_000,
        )
        found = client.describe_cluster()
        client.close()
        return [broker["node_id"] if "node_id" in broker else broker["broker_id"] for broker in found["brokers"]]
    return None


@pytest.mark.parametrize("client", [librdkafka, kafka_python])
def test_a_scram_client_retries_until_the_credentials_are_replayed(client):
    port = [0]

    async def scenario(served):
        port[0], errors = served.server.port, []
        asking = asyncio.create_task(asyncio.to_thread(client, port[0], errors))
        await served.settled(
            lambda: served.sample("aclog_connections_closed_total", listener="SASL", reason="authentication") >= 3
        )
        assert not asking.done()
        served.server.credentials.ready = True
        assert await asking == [1]

    users = FixedCredentials({("bob", ScramMechanism.SCRAM_SHA_256): credential()}, ready=False)
    run(scenario, SCRAM, credentials=users, handlers={METADATA: metadata(port)})
