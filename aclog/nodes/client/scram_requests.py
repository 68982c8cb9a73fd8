"""DescribeUserScramCredentials, as a client asks it of a broker."""

from aclog.credentials.scram import CredentialInfo, UserCredentials
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.connection import Connection
from aclog.nodes.wire.api_keys import DESCRIBE_USER_SCRAM_CREDENTIALS
from aclog.nodes.wire.message_builder import build


async def describe_scram(connection: Connection) -> list[UserCredentials]:
    """What may be told of every user's credentials.

    Raises:
        RequestError: the server refuses; its code and message.
        UnreachableError, DecodeError: as Connection.ask; ConfigError: a controller, which does not serve it.

    """
    version = connection.version(DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0)
    answer = await connection.ask(build(DESCRIBE_USER_SCRAM_CREDENTIALS, version, "request", users=None))
    if answer.error_code:
        raise RequestError(int(answer.error_code), answer.error_message)
    return [
        UserCredentials(
            user=found.user,
            credential_infos=tuple(
                CredentialInfo(mechanism=info.mechanism, iterations=info.iterations) for info in found.credential_infos
            ),
        )
        for found in answer.results
    ]
