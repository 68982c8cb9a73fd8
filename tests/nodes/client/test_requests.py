"""The cluster id of a broker of any age."""

import asyncio

import pytest

from aclog.client.connection import connect
from aclog.client.requests import broker_cluster_id
from aclog.config.node_config import ClientSecurity
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.protocol.api_keys import DESCRIBE_CLUSTER, METADATA
from aclog.protocol.headers import RequestError
from aclog.protocol.responses import BROKER_APIS, ApiVersion
from tests.support.fakes.broker import FakeBroker

WITHOUT = tuple(api for api in BROKER_APIS if api.api_key not in {DESCRIBE_CLUSTER, METADATA})


def asked(broker):
    async def go():
        async with await connect(broker.address, ClientSecurity()) as connection:
            return await broker_cluster_id(connection)

    return asyncio.run(go())


@pytest.mark.parametrize("newest", [0, 1, 2])
def test_described(newest):
    with FakeBroker(apis=(*WITHOUT, ApiVersion(DESCRIBE_CLUSTER, 0, newest)), cluster_id="c") as broker:
        assert asked(broker) == "c"
        assert METADATA not in broker.requests


@pytest.mark.parametrize("newest", [2, 8, 13, 99])
def test_by_metadata(newest):
    with FakeBroker(apis=(*WITHOUT, ApiVersion(METADATA, 0, newest)), cluster_id="c") as broker:
        assert asked(broker) == "c"


def test_neither():
    for served in ((), (ApiVersion(METADATA, 0, 1),)):
        with (
            FakeBroker(apis=(*WITHOUT, *served)) as broker,
            pytest.raises(ConfigError, match=r"Metadata is (not )?supported"),
        ):
            asked(broker)


def test_no_cluster_id():
    with FakeBroker(cluster_id="") as broker, pytest.raises(DecodeError, match="no cluster id"):
        asked(broker)


def test_a_refusal():
    with FakeBroker() as broker:
        broker.refusals[DESCRIBE_CLUSTER] = 31, "no"
        with pytest.raises(RequestError, match="no"):
            asked(broker)
