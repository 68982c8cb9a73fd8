"""The DescribeUserScramCredentials request to a broker."""

from aclog.credentials.scram import CredentialInfo, UserCredentials
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.connection import Connection
from aclog.nodes.wire.api_keys import DESCRIBE_USER_SCRAM_CREDENTIALS
from aclog.nodes.wire.message_builder import build


async def describe_scram(connection: Connection) -> list[UserCredentials]:
    """Return every user's mechanisms and iterations; Kafka discloses no more.

    Raises:
        RequestError: the server refuses; has its code and message.
        UnreachableError, DecodeError: as Connection.ask; ConfigError: a controller, which does not support it.

    """
    version = connection.version(DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0)
    response = await connection.ask(build(DESCRIBE_USER_SCRAM_CREDENTIALS, version, "request", users=None))
    if response.error_code:
        raise RequestError(int(response.error_code), response.error_message)
    return [
        UserCredentials(
            user=found.user,
            credential_infos=tuple(
                CredentialInfo(mechanism=info.mechanism, iterations=info.iterations) for info in found.credential_infos
            ),
        )
        for found in response.results
    ]
