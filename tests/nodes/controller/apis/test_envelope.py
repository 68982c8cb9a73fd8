"""Envelopes: eligible requests, principals, and errors of the envelope versus errors of the embedded request."""

import pytest

from aclog.authorizer.interface import AclRequestError, AuthorizerNotReadyError
from aclog.authorizer.settings import KafkaPrincipal
from aclog.protocol import api_keys, responses
from aclog.protocol.headers import MalformedRequestError, OutcomeUnknownError, RequestError, decode_response_header
from aclog.protocol.messages import build
from aclog.protocol.responses import EnvelopeRequest, encode_principal
from aclog.server.controller.apis import EnvelopeHandler
from aclog.server.network.dispatch import Dispatcher
from aclog.server.telemetry import Metrics
from tests.support.nodes.node_requests import answer, frame, session

ALICE = encode_principal(KafkaPrincipal(type="User", name="alice"), token_authenticated=True)
CREATION = build(api_keys.CREATE_ACLS, 3, "request", "AclCreation", resource_type=2, resource_pattern_type=3)
CREATE = build(api_keys.CREATE_ACLS, 3, "request", creations=(CREATION,))


def inner(api_key=api_keys.CREATE_ACLS, version=3, message=CREATE):
    return frame(api_key, version, message, correlation_id=41)


async def sent(handler, version=1, *, data=None, principal=ALICE, address=bytes((10, 1, 2, 3))):
    envelopes = EnvelopeHandler(handlers={api_keys.CREATE_ACLS: handler}, apis=responses.CONTROLLER_APIS)
    message = EnvelopeRequest(
        request_data=inner() if data is None else data, request_principal=principal, client_host_address=address
    )
    dispatcher = Dispatcher(
        handlers={api_keys.ENVELOPE: envelopes.handle},
        apis=responses.CONTROLLER_APIS,
        metrics=Metrics(process=False),
    )
    _, body = await dispatcher.handle(frame(api_keys.ENVELOPE, version, message), session("broker"))
    return answer(api_keys.ENVELOPE, version, body)


async def body(_request):
    return b"the body"


def failing(error):
    async def handler(_request):
        raise error

    return handler


def results(response):
    _, position = decode_response_header(api_keys.CREATE_ACLS, 3, response.response_data)
    return answer(api_keys.CREATE_ACLS, 3, response.response_data[position:]).results


@pytest.mark.parametrize("version", [0, 1])
async def test_the_embedded_response_has_its_own_header(version):
    response = await sent(body, version)
    assert response.error_code == 0
    correlation_id, position = decode_response_header(api_keys.CREATE_ACLS, 3, response.response_data)
    assert correlation_id == 41
    assert response.response_data[position:] == b"the body"


async def test_the_embedded_request_has_the_clients_session():
    seen = []

    async def handler(found):
        seen.append(found)
        return b""

    await sent(handler, address=bytes(15) + b"\1")
    (found,) = seen
    assert found.context.principal == "User:alice"
    assert found.session.token_authenticated
    assert (found.session.host, found.session.listener_name) == ("0:0:0:0:0:0:0:1", "CONTROLLER")
    assert found.header.correlation_id == 41
    assert [each.pattern_type for each in found.body.creations] == [CREATION.resource_pattern_type]
    assert found.frame == inner()


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"principal": None}, 97),
        ({"principal": b"\0\1" + ALICE[2:]}, 97),
        ({"principal": b""}, 97),
        ({"principal": ALICE[:4]}, 97),
        ({"address": b"abc"}, 42),
        ({"address": b""}, 42),
        ({"data": b""}, 35),
        ({"data": inner()[:-3]}, 35),
        ({"data": inner()[:3] + b"\x09" + inner()[4:]}, 35),
        ({"data": frame(api_keys.FETCH, 17, build(api_keys.FETCH, 17, "request"))}, 42),
        ({"data": frame(api_keys.DESCRIBE_ACLS, 3, build(api_keys.DESCRIBE_ACLS, 3, "request"))}, 42),
    ],
)
async def test_a_failed_envelope_has_no_embedded_response(values, code):
    response = await sent(body, **values)
    assert (response.error_code, response.response_data) == (code, None)


@pytest.mark.parametrize(("version", "code"), [(1, 10801), (0, -1)])
async def test_authorizer_not_ready_fails_the_envelope(version, code):
    response = await sent(failing(AuthorizerNotReadyError("not yet")), version)
    assert (response.error_code, response.response_data) == (code, None)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (AclRequestError(31, "denied"), (31, "denied")),
        (RequestError(18, "large"), (18, "large")),
        (ZeroDivisionError("a secret"), (-1, None)),
    ],
)
async def test_errors_of_the_embedded_request_are_embedded(error, expected):
    response = await sent(failing(error))
    assert response.error_code == 0
    (result,) = results(response)
    assert (result.error_code, result.error_message) == expected


async def test_a_request_that_kafka_rejects_while_parsing():
    assert (await sent(failing(MalformedRequestError("code 0")))).error_code == 35


def test_every_forwardable_api_has_a_handler():
    from aclog.server.apis.acls import AuthHelper
    from aclog.server.controller.apis import FORWARDABLE, ControllerApis

    handlers = ControllerApis(auth=AuthHelper(None), node_id=1, serving=lambda: None).handlers()
    own = {api_keys.SASL_HANDSHAKE, api_keys.SASL_AUTHENTICATE, api_keys.API_VERSIONS}
    assert set(handlers) == {api.api_key for api in responses.CONTROLLER_APIS} - own
    assert set(FORWARDABLE) <= set(handlers)


@pytest.mark.parametrize("version", [0, 1])
async def test_not_controller_fails_the_envelope(version):
    answered = await sent(failing(RequestError(41, "This node is not the active controller.")), version)
    assert (answered.error_code, answered.response_data) == (41, None)


async def test_an_unknown_outcome_gets_no_response():
    with pytest.raises(OutcomeUnknownError):
        await sent(failing(OutcomeUnknownError("in doubt")))
