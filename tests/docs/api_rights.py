"""The table of docs/operations.md that says who may send what: `python -m tests.docs.api_rights` writes it.

Requests and versions come from the code. The rights are declared here, since handlers ask for them in many ways;
tests/nodes/test_api_rights.py proves each of them against the handlers, and that none is missing.
"""

import re
from pathlib import Path

from attrs import frozen

from aclog.authorizer.audit import api_name
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.protocol import api_keys
from aclog.protocol.responses import BROKER_APIS, CONTROLLER_APIS, ApiVersion
from aclog.server.broker.lifecycle import UNSUPPORTED

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
TABLE = re.compile(r"(?<=### Who may do what on a node\n\n).*?(?=\n\n[^|])", re.DOTALL)

BROKER, CONTROLLER = "broker", "controller"
SERVED = {BROKER: BROKER_APIS, CONTROLLER: CONTROLLER_APIS}


@frozen(kw_only=True)
class Right:
    """An operation on a resource; `on` names the resource in the table."""

    operation: AclOperation
    resource_type: ResourceType = ResourceType.CLUSTER
    on: str = "the cluster"

    def __str__(self) -> str:
        return f"{self.operation.name} on {self.on}"


@frozen(kw_only=True)
class Need:
    """What a request needs: any one of `rights`, or, without any, nothing; `text` says what is more to it.

    `refused` is the error code for those who lack it; None: what they may not see is left out.
    """

    rights: tuple[Right, ...] = ()
    text: str = ""
    refused: int | None = 31

    def __str__(self) -> str:
        return " ".join(part for part in (" or ".join(map(str, self.rights)), self.text) if part)


def _cluster(operation: AclOperation, text: str = "") -> Need:
    return Need(rights=(Right(operation=operation),), text=text)


_ALTER, _DESCRIBE = _cluster(AclOperation.ALTER), _cluster(AclOperation.DESCRIBE)
_ACTION = _cluster(AclOperation.CLUSTER_ACTION)
_OPEN = Need(text="none, because it is answered before the login")
_NEVER = Need(text="none, because every client gets UNSUPPORTED_VERSION (35)")
_HOLDERS = Need(
    text="the client must be the owner or a renewer of the token; all others, including super users, get 63", refused=63
)
_TOPIC = Right(operation=AclOperation.DESCRIBE, resource_type=ResourceType.TOPIC, on="each topic in the request")
_CREATE_TOKENS = Right(
    operation=AclOperation.CREATE_TOKENS, resource_type=ResourceType.USER, on="the future owner of the token"
)
_DESCRIBE_TOKENS = Right(
    operation=AclOperation.DESCRIBE_TOKENS, resource_type=ResourceType.USER, on="the owner of the token"
)
_DESCRIBE_TOKEN = Right(
    operation=AclOperation.DESCRIBE, resource_type=ResourceType.DELEGATION_TOKEN, on="the id of the token"
)

_ANYWHERE: dict[int, Need] = {
    api_keys.SASL_HANDSHAKE: _OPEN,
    api_keys.API_VERSIONS: _OPEN,
    api_keys.SASL_AUTHENTICATE: _OPEN,
    api_keys.DESCRIBE_ACLS: _DESCRIBE,
    api_keys.CREATE_ACLS: _ALTER,
    api_keys.DELETE_ACLS: _ALTER,
    api_keys.CREATE_DELEGATION_TOKEN: Need(
        rights=(_CREATE_TOKENS,), text="(without it: 65); none if the client is the future owner", refused=65
    ),
    api_keys.RENEW_DELEGATION_TOKEN: _HOLDERS,
    api_keys.EXPIRE_DELEGATION_TOKEN: _HOLDERS,
    api_keys.ALTER_USER_SCRAM_CREDENTIALS: _ALTER,
    api_keys.DESCRIBE_QUORUM: _DESCRIBE,
    api_keys.UNREGISTER_BROKER: _ALTER,
    api_keys.DESCRIBE_CONFIGS: _cluster(
        AclOperation.DESCRIBE_CONFIGS,
        "for `super.users`, `allow.everyone.if.no.acl.found` and `authorizer.class.name` of the node itself, if the "
        "request contains the name of the property; everything else gets UNSUPPORTED_VERSION (35)",
    ),
}

NEEDS: dict[str, dict[int, Need]] = {
    BROKER: _ANYWHERE
    | {
        api_keys.METADATA: Need(
            rights=(_TOPIC,),
            text="(without it: 29). CREATE on the topic or on the cluster, if the request would create the topic "
            "(`allow_auto_topic_creation`, `auto.create.topics.enable`). None for the list of brokers",
            refused=29,
        ),
        api_keys.DESCRIBE_CLUSTER: Need(text="none"),
        api_keys.DESCRIBE_DELEGATION_TOKEN: Need(
            rights=(_DESCRIBE_TOKEN, _DESCRIBE_TOKENS),
            text="(other tokens are not returned); none for tokens that the client owns, requested or may renew",
            refused=None,
        ),
        api_keys.DESCRIBE_CLIENT_QUOTAS: _cluster(AclOperation.DESCRIBE_CONFIGS),
        api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS: _DESCRIBE,
    }
    | dict.fromkeys(UNSUPPORTED, _NEVER),
    CONTROLLER: _ANYWHERE
    | {
        api_keys.DESCRIBE_CLUSTER: _ALTER,
        api_keys.FETCH: _ACTION,
        api_keys.FETCH_SNAPSHOT: _ACTION,
        api_keys.ENVELOPE: _cluster(
            AclOperation.CLUSTER_ACTION,
            "for the sender; the principal in the Envelope needs the permission for the enclosed request",
        ),
        api_keys.BROKER_REGISTRATION: _ACTION,
        api_keys.BROKER_HEARTBEAT: _ACTION,
    },
}
"""What each request needs, by kind of listener and API key."""


@frozen(kw_only=True)
class NotServed:
    """Requests of KIP-11's table that no node here serves, but on the listeners in `except_at`."""

    names: tuple[str, ...]
    kip: str
    except_at: tuple[str, ...] = ()


NOT_SERVED = (
    NotServed(names=("Produce",), kip="WRITE on the topic"),
    NotServed(names=("Fetch",), kip="READ on the topic", except_at=(CONTROLLER,)),
    NotServed(names=("JoinGroup", "OffsetFetch", "Heartbeat", "OffsetCommit"), kip="READ on the group"),
    NotServed(names=("ListOffsets", "FindCoordinator"), kip="DESCRIBE on the topic"),
    NotServed(
        names=("CreateTopics", "DeleteTopics", "AlterConfigs"),
        kip="CREATE on the cluster, DELETE on the topic, and ALTER on the topic, respectively",
    ),
    NotServed(
        names=("LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown"),
        kip="CLUSTER_ACTION on the cluster; Kafka 4 does not have these requests",
    ),
)
"""The rest of KIP-11's table, under today's names; its GetTopicMetaData is Metadata."""


def table() -> str:
    """The table: one row for each request and need, then what is not served."""
    rows = ["| request | versions | listener | permission needed |", "|---|---|---|---|"]
    for api_key in sorted(NEEDS[BROKER].keys() | NEEDS[CONTROLLER].keys()):
        rows.extend(_rows(api_key))
    for each in NOT_SERVED:
        where = f" at a {BROKER}" if each.except_at else ""
        rows.append(f"| {', '.join(each.names)}{where} | not served | | KIP-11: {each.kip} |")
    return "\n".join(rows)


def _rows(api_key: int) -> list[str]:
    at = [listener for listener in SERVED if api_key in NEEDS[listener]]
    same = len({(NEEDS[each][api_key], versions(each, api_key)) for each in at}) == 1
    groups = [at] if same else [[each] for each in at]
    return [
        f"| {api_name(api_key)} ({api_key}) | {_range(versions(each[0], api_key))} | {', '.join(each)} "
        f"| {NEEDS[each[0]][api_key]} |"
        for each in groups
    ]


def versions(listener: str, api_key: int) -> ApiVersion:
    """The versions of a request that nodes serve on listeners of a kind."""
    [found] = [api for api in SERVED[listener] if api.api_key == api_key]
    return found


def _range(api: ApiVersion) -> str:
    return str(api.min_version) if api.min_version == api.max_version else f"{api.min_version} to {api.max_version}"


def written(page: str) -> str:
    """The page with the table as it is declared now."""
    return TABLE.sub(lambda _: table(), page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
