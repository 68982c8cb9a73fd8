"""With zookeeper.set.acl, only the owner of a node can read users and tokens."""

import pytest
from kazoo.exceptions import NoAuthError

from aclog.credentials.scram import ScramMechanism
from aclog.metalog.records import DelegationTokenRecord, UserScramCredentialRecord
from aclog.zookeeper.acl_store import AclStore
from aclog.zookeeper.client import ZkSettings
from aclog.zookeeper.connect import open_client
from aclog.zookeeper.stores import ScramStore, TokenStore
from tests.support.zookeeper.server import zookeeper_client


def test_only_the_owner_reads_users_and_tokens(zookeeper, connect):
    with zookeeper_client(zookeeper.connect) as root:
        root.ensure_path(f"/{connect.partition('/')[2]}")
    client = open_client(ZkSettings(connect=connect, secure_acls=True))
    client._kazoo.add_auth("digest", "maker:secret")
    try:
        AclStore(client=client).create_paths()
        ScramStore(client).put("ann", [UserScramCredentialRecord(
            name="ann", mechanism=ScramMechanism.SCRAM_SHA_256, salt=b"s", stored_key=b"k", server_key=b"v",
            iterations=4096,
        )])  # fmt: skip
        TokenStore(client).put(DelegationTokenRecord(
            owner="User:a", requester="User:a", renewers=(), issue_timestamp=1, max_timestamp=3,
            expiration_timestamp=2, token_id="t",
        ))  # fmt: skip
    finally:
        client.close()
    with zookeeper_client(connect) as stranger:
        for path in ("/config/users", "/config/users/ann", "/delegation_token/tokens", "/delegation_token/tokens/t"):
            with pytest.raises(NoAuthError):
                stranger.get(path)
        for path in ("/config", "/config/changes", "/delegation_token", "/kafka-acl/Topic"):
            stranger.get(path)
            with pytest.raises(NoAuthError):
                stranger.set(path, b"")
        stranger.add_auth("digest", "maker:secret")
        assert stranger.get("/config/users/ann")[0]
        assert stranger.get("/delegation_token/tokens/t")[0]
