"""What a cluster's admin API tells of it, its rules and its credentials; a refusal says what is missing."""

from aclog.authorizer.acl import AclBindingFilter, StandardAcl
from aclog.credentials.scram import UserCredentials
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.acl_requests import describe_acls
from aclog.nodes.client.cluster_id import broker_cluster_id
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.scram_requests import describe_scram
from aclog.nodes.wire.error_codes import CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED

ANSWER_SECONDS = 120.0
"""How long an answer with all rules may take: a hundred thousand take a broker a second or two."""

_HINTS = {
    CLUSTER_AUTHORIZATION_FAILED: "whoever --command-config logs in needs DESCRIBE on the cluster",
    SECURITY_DISABLED: "without authorizer.class.name a cluster has no rules to tell",
}


async def describe_cluster_id(connection: Connection) -> str:
    """The id of the broker's cluster. Raises as aclog.nodes.client.cluster_id.broker_cluster_id."""
    try:
        return await broker_cluster_id(connection)
    except RequestError as error:
        raise _explained(connection, "DescribeCluster", error) from None


async def describe_rules(connection: Connection) -> list[StandardAcl]:
    """All rules of the cluster (DescribeAcls), each once, in the order of the answer.

    Raises:
        RequestError: the broker refuses: it has no authorizer, or the caller may not; its code, and what is missing.
        UnreachableError: no answer, or one of more than 256 MiB; DecodeError: an answer that is none.
        ConfigError: a server that is too old.

    """
    try:
        rules = await describe_acls(connection, AclBindingFilter(), ANSWER_SECONDS)
    except RequestError as error:
        raise _explained(connection, "DescribeAcls", error) from None
    return list(dict.fromkeys(rules))


async def describe_users(connection: Connection) -> tuple[UserCredentials, ...]:
    """Everybody's SCRAM credentials without their keys (DescribeUserScramCredentials), by user. Raises as above."""
    try:
        users = await describe_scram(connection)
    except RequestError as error:
        raise _explained(connection, "DescribeUserScramCredentials", error) from None
    return tuple(sorted(users, key=lambda each: each.user))


def _explained(connection: Connection, request: str, error: RequestError) -> RequestError:
    hint = _HINTS.get(error.code)
    return RequestError(error.code, f"{connection.address}: {request}: {error}{f' ({hint})' if hint else ''}")
