"""A controller's handlers behind the dispatcher, as connections use them."""

import pytest

from aclog.authorizer.settings import KafkaPrincipal
from aclog.protocol import api_keys, responses
from aclog.protocol.headers import decode_response_header
from aclog.protocol.messages import build
from aclog.protocol.responses import EnvelopeRequest, encode_principal
from aclog.server.network.dispatch import Dispatcher
from aclog.server.telemetry import Metrics
from tests.support.nodes.controllers import controller_server, formatted, handlers_of, running
from tests.support.nodes.node_requests import answer, frame, session


async def asked(server, api_key, version, message, user="admin"):
    dispatcher = Dispatcher(
        handlers=handlers_of(server), apis=responses.CONTROLLER_APIS, metrics=Metrics(process=False)
    )
    header, body = await dispatcher.handle(frame(api_key, version, message), session(user))
    correlation_id, position = decode_response_header(api_key, version, header)
    assert (correlation_id, position) == (7, len(header))
    return answer(api_key, version, body)


def creation(name):
    one = build(
        api_keys.CREATE_ACLS, 3, "request", "AclCreation", resource_type=2, resource_pattern_type=3, resource_name=name,
        principal="User:x", host="*", operation=3, permission_type=3,
    )  # fmt: skip
    return build(api_keys.CREATE_ACLS, 3, "request", creations=(one,))


def envelope(user):
    return EnvelopeRequest(
        request_data=frame(api_keys.CREATE_ACLS, 3, creation("t"), correlation_id=99),
        request_principal=encode_principal(KafkaPrincipal(type="User", name=user)),
        client_host_address=bytes((10, 0, 0, 5)),
    )


def inside(found):
    assert found.error_code == 0
    _, position = decode_response_header(api_keys.CREATE_ACLS, 3, found.response_data)
    return answer(api_keys.CREATE_ACLS, 3, found.response_data[position:]).results[0]


@pytest.mark.parametrize("version", [0, 1])
async def test_envelopes_of_both_versions(tmp_path, version):
    async with running(formatted(tmp_path)) as server:
        assert inside(await asked(server, api_keys.ENVELOPE, version, envelope("admin"))).error_code == 0
        denied = inside(await asked(server, api_keys.ENVELOPE, version, envelope("alice")))
        assert denied.error_code == 31
        assert "needs ALTER permission" in denied.error_message
        refused = await asked(server, api_keys.ENVELOPE, version, envelope("admin"), user="alice")
        assert (refused.error_code, refused.response_data) == (31, None)
        assert len(server.publisher.current.acls) == 1


@pytest.mark.parametrize(("version", "code"), [(0, -1), (1, 10801)])
async def test_before_the_log_is_replayed(tmp_path, version, code):
    server = controller_server(formatted(tmp_path))
    for sender in ("admin", "alice"):
        found = await asked(server, api_keys.ENVELOPE, version, envelope("admin"), user=sender)
        assert (found.error_code, found.response_data) == (code, None), sender
    told = await asked(server, api_keys.CREATE_ACLS, 3, creation("t"), user="alice")
    assert told.results[0].error_code == -1
    assert told.results[0].error_message.startswith("AUTHORIZER_NOT_READY")


async def test_an_old_version_of_fetch_is_refused_in_that_version(tmp_path):
    partition = build(api_keys.FETCH, 12, "request", "FetchPartition", partition=0)
    topic = build(api_keys.FETCH, 12, "request", "FetchTopic", topic="__cluster_metadata", partitions=(partition,))
    async with running(formatted(tmp_path)) as server:
        found = await asked(server, api_keys.FETCH, 12, build(api_keys.FETCH, 12, "request", topics=(topic,)))
        assert found.error_code == 42
