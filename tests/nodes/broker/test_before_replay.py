"""Before the log is replayed no API of a broker tells of rules, users, tokens or quotas, not even to a super user."""

import asyncio
from pathlib import Path

import pytest
from attrs import evolve

from aclog.authorizer.standard import StandardAuthorizer
from aclog.config.node_config import HostPort
from aclog.credentials.tokens import TokenSettings
from aclog.protocol import api_keys
from aclog.protocol.headers import OutcomeUnknownError
from aclog.protocol.responses import BROKER_APIS
from aclog.protocol.session import SecurityProtocol
from aclog.server.apis.acls import AuthHelper
from aclog.server.broker.apis import ClusterView
from aclog.server.broker.lifecycle import BEFORE_REPLAY, BrokerApis
from aclog.server.network.dispatch import Dispatcher
from aclog.server.telemetry import Metrics
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import Publisher, recover
from tests.support.nodes.api_sweep import full_request
from tests.support.nodes.node_requests import frame, session

SMALL = Path(__file__).parents[2] / "data/kafka-4.3.1-small/__cluster_metadata-0"
CLUSTER = ClusterView(cluster_id="c", node_id=4, advertised={"BROKER": HostPort(host="b4", port=9092)})
TELLING = {
    api_keys.DESCRIBE_ACLS,
    api_keys.DESCRIBE_CLIENT_QUOTAS,
    api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS,
    api_keys.DESCRIBE_DELEGATION_TOKEN,
}
SWEPT = [
    (api.api_key, version)
    for api in BROKER_APIS
    if api.api_key not in (api_keys.API_VERSIONS, api_keys.SASL_HANDSHAKE, api_keys.SASL_AUTHENTICATE)
    for version in range(api.min_version, api.max_version + 1)
]


class Forwarded:
    """Answers as a controller would that is asked nothing about this broker's image."""

    async def forward(self, asked):
        return bytes((asked.header.api_key,))

    async def close(self):
        pass


def broker(image, *, replayed):
    publisher, authorizer = Publisher(), StandardAuthorizer()
    publisher.replace(image)
    authorizer.configure({"super.users": "User:admin"})
    authorizer.load(image.acls)
    if replayed:
        authorizer.complete_initial_load()
    apis = BrokerApis(
        publisher=publisher,
        replayed=lambda: replayed,
        auth=AuthHelper(authorizer),
        cluster=CLUSTER,
        forwarder=Forwarded(),
        tokens=TokenSettings(secret="hush"),
    )
    return Dispatcher(handlers=apis.handlers(), apis=BROKER_APIS, metrics=Metrics())


def told(dispatcher, api_key, version, user):
    client = evolve(session(user, "BROKER"), security_protocol=SecurityProtocol.SASL_PLAINTEXT)
    try:
        return asyncio.run(dispatcher.handle(frame(api_key, version, full_request(api_key, version)), client))
    except OutcomeUnknownError as error:  # closes the connection
        return str(error)


@pytest.fixture(scope="module")
def partly():
    """What may be there before everything is: rules, users, tokens and quotas."""
    return recover(SMALL).image


@pytest.mark.parametrize("user", ["admin", "alice"])
def test_no_answer_depends_on_what_has_been_replayed_so_far(user, partly):
    nothing, something = broker(Image(), replayed=False), broker(partly, replayed=False)
    for api_key, version in SWEPT:
        assert told(nothing, api_key, version, user) == told(something, api_key, version, user), (api_key, version)


def test_the_sweep_would_see_what_a_broker_tells(partly):
    nothing, something = broker(Image(), replayed=True), broker(partly, replayed=True)
    differing = {each[0] for each in SWEPT if told(nothing, *each, "admin") != told(something, *each, "admin")}
    assert differing == TELLING
    assert not differing & BEFORE_REPLAY
