"""An image in the form in which Kafka's Admin client describes a cluster: rows to compare with acls.jsonl and so on."""

import json
from pathlib import Path

from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.credentials.scram import ScramMechanism
from aclog.credentials.tokens import token_hmac
from aclog.snapshots.image import Image


def acl_rows(image: Image) -> list[dict[str, str]]:
    """DescribeAcls, sorted by all keys in their order."""
    rows = [
        {
            "resourceType": ResourceType(rule.acl.resource_type).name,
            "resourceName": rule.acl.resource_name,
            "patternType": PatternType(rule.acl.pattern_type).name,
            "principal": rule.acl.principal,
            "host": rule.acl.host,
            "operation": AclOperation(rule.acl.operation).name,
            "permissionType": AclPermissionType(rule.acl.permission_type).name,
        }
        for rule in image.acls
    ]
    return sorted(rows, key=lambda row: tuple(row.values()))


def scram_rows(image: Image) -> list[dict]:
    """DescribeUserScramCredentials, by user."""
    return [
        {
            "user": user.user,
            "credentialInfos": [
                {"mechanism": ScramMechanism(info.mechanism).mechanism_name, "iterations": info.iterations}
                for info in user.credential_infos
            ],
        }
        for user in sorted(image.scram.describe(), key=lambda user: user.user)
    ]


def token_rows(image: Image, secret: str) -> list[dict]:
    """DescribeDelegationToken, by token id; `secret` is delegation.token.secret.key."""
    rows = [
        {
            "tokenId": token.token_id,
            "owner": token.owner,
            "requester": token.requester,
            "issueTimestamp": token.issue_timestamp,
            "expiryTimestamp": token.expiration_timestamp,
            "maxTimestamp": token.max_timestamp,
            "hmac": token_hmac(secret, token.token_id),
            "renewers": list(token.renewers),
        }
        for token in image.tokens.records()
    ]
    return sorted(rows, key=lambda row: row["tokenId"])


def json_lines(path: Path) -> list[dict]:
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
