"""DescribeUserScramCredentials (ScramImage.describe, KafkaApis.handleDescribeUserScramCredentialsRequest)."""

from collections import Counter
from typing import Any

from kio.schema.errors import ErrorCode

from aclog.credentials.scram import CredentialInfo, ScramImage
from aclog.nodes.apis.request import Request
from aclog.nodes.wire.api_keys import DESCRIBE_USER_SCRAM_CREDENTIALS
from aclog.nodes.wire.message_builder import build, build_response

_API = DESCRIBE_USER_SCRAM_CREDENTIALS
_TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
_ABSENT = "Attempt to describe a user credential that does not exist: "


def describe_scram_users(scram: ScramImage, request: Request) -> bytes:
    """Return the encoded response with mechanisms and iterations of the named users; of all users if none is named."""
    known = {each.user: each.credential_infos for each in scram.describe()}
    asked = Counter(each.name for each in request.body.users or ()) or Counter(list(known))
    return build_response(
        _API,
        request.header.api_version,
        results=tuple(_result(user, times, known.get(user, ())) for user, times in asked.items()),
    )


def _result(user: str, times: int, infos: tuple[CredentialInfo, ...]) -> Any:
    error, message = 0, ""
    if times > 1:
        error, message, infos = ErrorCode.duplicate_resource, _TWICE + user, ()
    elif not infos:
        error, message = ErrorCode.resource_not_found, _ABSENT + user
    return build(
        _API,
        0,
        "response",
        "DescribeUserScramCredentialsResult",
        user=user,
        error_code=error,
        error_message=message,
        credential_infos=tuple(
            build(_API, 0, "response", "CredentialInfo", mechanism=each.mechanism, iterations=each.iterations)
            for each in infos
        ),
    )
