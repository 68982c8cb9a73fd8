"""Requests as a node's handlers get them, and answers as a client reads them."""

from aclog.authorizer.settings import KafkaPrincipal
from aclog.protocol.api_keys import ENVELOPE
from aclog.protocol.headers import Request, RequestHeader, decode_header, encode_header
from aclog.protocol.messages import decode_request, decode_response, encode_request
from aclog.protocol.responses import decode_envelope_request, decode_envelope_response, encode_envelope_request
from aclog.protocol.session import SecurityProtocol, Session


def session(user="admin", listener="CONTROLLER"):
    return Session(
        listener_name=listener,
        security_protocol=SecurityProtocol.PLAINTEXT,
        host="10.0.0.9",
        address=bytes((10, 0, 0, 9)),
        principal=KafkaPrincipal(type="User", name=user),
    )


def frame(api_key, version, message, correlation_id=7):
    header = RequestHeader(api_key=api_key, api_version=version, correlation_id=correlation_id, client_id="a-client")
    body = encode_envelope_request(message) if api_key == ENVELOPE else encode_request(message)
    return encode_header(header) + body


def request(api_key, version, message, user="admin", listener="CONTROLLER"):
    data = frame(api_key, version, message)
    header, position = decode_header(data)
    decode = decode_envelope_request if api_key == ENVELOPE else lambda *at: decode_request(api_key, version, *at)
    return Request(header=header, body=decode(data, position), session=session(user, listener), frame=data)


def answer(api_key, version, body):
    if api_key == ENVELOPE:
        return decode_envelope_response(body, 0)
    return decode_response(api_key, version, body, 0)
