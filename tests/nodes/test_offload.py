"""Requests with many entries: the event loop serves other clients while they are processed."""

import asyncio

import pytest

from aclog.authorizer.settings import KafkaPrincipal
from aclog.authorizer.standard import StandardAuthorizer
from aclog.config.node_config import HostPort
from aclog.protocol import api_keys, responses
from aclog.protocol.headers import decode_response_header
from aclog.protocol.messages import build
from aclog.protocol.responses import EnvelopeRequest, encode_principal
from aclog.server.apis.acls import AuthHelper
from aclog.server.broker.apis import ClusterView, MetadataApis
from aclog.server.network.dispatch import Dispatcher
from aclog.server.telemetry import Metrics
from tests.support.nodes.controllers import formatted, handlers_of, running
from tests.support.nodes.node_requests import answer, frame, request, session

ENTRIES = 3000


def structures(api_key, version, name, /, **values):
    return tuple(
        build(api_key, version, "request", name, **{key: value(number) for key, value in values.items()})
        for number in range(ENTRIES)
    )


def creations(version=3):
    rule = {
        "resource_type": lambda _: 2, "resource_name": lambda number: f"t{number}", "operation": lambda _: 3,
        "resource_pattern_type": lambda _: 3, "principal": lambda _: "User:x", "host": lambda _: "*",
        "permission_type": lambda _: 3,
    }  # fmt: skip
    return build(30, version, "request", creations=structures(30, version, "AclCreation", **rule))


def alterations():
    deletions = structures(51, 0, "ScramCredentialDeletion", name=lambda number: f"u{number}", mechanism=lambda _: 1)
    return build(51, 0, "request", deletions=deletions, upsertions=())


async def with_turns(work):
    """Return the result of `work`; the event loop must have run other tasks meanwhile."""
    turns = 0

    async def others():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(others())
    await asyncio.sleep(0)
    before = turns
    found = await work
    other.cancel()
    assert turns - before > 1, "nobody else had a turn"
    return found


def authorizer():
    made = StandardAuthorizer()
    made.configure({"super.users": "User:admin"})
    made.complete_initial_load()
    return made


def test_metadata_of_many_topics():
    cluster = ClusterView(cluster_id="c", node_id=4, advertised={"CONTROLLER": HostPort(host="b4", port=9092)})
    handler = MetadataApis(cluster, AuthHelper(authorizer())).metadata
    topics = structures(3, 8, "MetadataRequestTopic", name=lambda number: f"t{number}")
    message = build(3, 8, "request", topics=topics)
    found = answer(3, 8, asyncio.run(with_turns(handler(request(3, 8, message)))))
    assert [each.name for each in found.topics] == [f"t{number}" for number in range(ENTRIES)]


@pytest.mark.parametrize("enveloped", [False, True])
@pytest.mark.parametrize(("api_key", "version", "message"), [(30, 3, creations()), (51, 0, alterations())])
def test_denied_bulk_requests_are_answered_in_a_thread(tmp_path, api_key, version, message, enveloped):
    async def scenario():
        async with running(formatted(tmp_path)) as server:
            dispatcher = Dispatcher(
                handlers=handlers_of(server), apis=responses.CONTROLLER_APIS, metrics=Metrics(process=False)
            )
            asked, user = frame(api_key, version, message), "bob"
            if enveloped:
                bob = encode_principal(KafkaPrincipal(type="User", name="bob"))
                inside = EnvelopeRequest(request_data=asked, request_principal=bob, client_host_address=bytes(4))
                asked, user = frame(api_keys.ENVELOPE, 1, inside), "admin"
            _, body = await with_turns(dispatcher.handle(asked, session(user)))
            return body

    body = asyncio.run(scenario())
    if enveloped:
        inside = answer(api_keys.ENVELOPE, 1, body)
        assert inside.error_code == 0
        _, position = decode_response_header(api_key, version, inside.response_data)
        body = inside.response_data[position:]
    results = answer(api_key, version, body).results
    assert [each.error_code for each in results] == [31] * ENTRIES
