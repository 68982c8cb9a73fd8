"""A ZooKeeper with many ACLs, users and tokens, concurrent changes, and reads that do not use aclog's decoders."""

import json
import random
import threading
from base64 import b64decode
from urllib.parse import quote, unquote_plus

from attrs import define, field
from kazoo.client import KazooClient

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.credentials.scram import ScramMechanism
from aclog.metalog.records import DelegationTokenRecord, UserScramCredentialRecord
from aclog.snapshots.image import Image
from aclog.zookeeper.acl_store import AclStore
from aclog.zookeeper.client import ZkSettings
from aclog.zookeeper.connect import open_client
from aclog.zookeeper.migration import AccessState, state_of_image
from aclog.zookeeper.stores import ScramStore, TokenStore
from aclog.zookeeper.znodes import AclEntry, resource_path

NOW = 1_790_000_000_000
_DIRECTORIES = {"Topic": "topic", "Group": "group", "TransactionalId": "tx"}
_OPERATIONS = ("Read", "Write", "Describe", "All")
_AT_ONCE = 500
_KEY = "c2FsdHNhbHQ="


def fill(client: KazooClient, *, acls: int, users: int, tokens: int, seed: int = 0) -> None:
    """Write entries in Kafka's JSON, with two ACLs per resource."""
    numbers = random.Random(seed)
    nodes = {}
    for number in range(0, acls, 2):
        kind, prefix = numbers.choice(list(_DIRECTORIES.items()))
        tree = numbers.choice(("/kafka-acl", "/kafka-acl", "/kafka-acl-extended/prefixed"))
        nodes[f"{tree}/{kind}/{prefix}-{number}"] = {
            "version": 1,
            "acls": rules(number, numbers, min(2, acls - number)),
        }
    for number in range(users):
        text = f"salt={_KEY},stored_key={_KEY},server_key={_KEY},iterations={4096 + number}"
        nodes[f"/config/users/{quote(f'user {number}', safe='')}"] = {"version": 1, "config": {"SCRAM-SHA-256": text}}
    for number in range(tokens):
        nodes[f"/delegation_token/tokens/token-{number}"] = {
            "version": 3, "owner": f"User%3Aowner{number}", "tokenRequester": "User%3Aadmin", "renewers": [],
            "issueTimestamp": NOW, "maxTimestamp": NOW + number, "expiryTimestamp": NOW, "tokenId": f"token-{number}",
        }  # fmt: skip
    for path in {path.rpartition("/")[0] for path in nodes} | set(EVENTS):
        client.ensure_path(path)
    items = list(nodes.items())
    for start in range(0, len(items), _AT_ONCE):
        transaction = client.transaction()
        for path, value in items[start : start + _AT_ONCE]:
            transaction.create(path, json.dumps(value).encode())
        assert all(isinstance(each, str) for each in transaction.commit())


EVENTS = ("/kafka-acl-changes", "/kafka-acl-extended-changes", "/config/changes", "/delegation_token/token_changes")


def rules(number: int, numbers: random.Random, count: int) -> list[dict[str, str]]:
    """Return different ACLs of one resource."""
    return [
        {
            "principal": f"User:u{(number + each) % 997}",
            "permissionType": numbers.choice(("Allow", "Allow", "Deny")),
            "host": numbers.choice(("*", "10.0.0.1")),
            "operation": numbers.choice(_OPERATIONS),
        }
        for each in range(count)
    ]


@define
class Changes:
    """A thread that adds, changes and removes ACLs, users and tokens, for use in a `with`."""

    connect: str
    seed: int = 0
    done: int = field(default=0, init=False)
    failure: BaseException | None = field(default=None, init=False)
    _stop: threading.Event = field(factory=threading.Event, init=False)
    _thread: threading.Thread = field(init=False)

    def __enter__(self):
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self) -> None:
        """Stop the thread."""
        self._stop.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        numbers = random.Random(self.seed)
        client = open_client(ZkSettings(connect=self.connect))
        try:
            while not self._stop.is_set():
                self._change(client, numbers)
                self.done += 1
        except BaseException as error:  # noqa: BLE001 - raised again by stop()
            self.failure = error
        finally:
            client.close()

    @staticmethod
    def _change(client, numbers: random.Random) -> None:
        number, what = numbers.randrange(300), numbers.random()
        if what < 0.8:
            pattern_type = numbers.choice((PatternType.LITERAL, PatternType.PREFIXED))
            pattern = ResourcePattern(
                resource_type=ResourceType.TOPIC, name=f"topic-{number}", pattern_type=pattern_type
            )
            entry = AclEntry(
                principal=f"User:new{numbers.randrange(5)}", permission_type=AclPermissionType.ALLOW, host="*",
                operation=AclOperation.READ,
            )  # fmt: skip
            AclStore(client=client).update(resource_path(pattern), lambda entries: entries ^ {entry})
        elif what < 0.9:
            record = UserScramCredentialRecord(
                name=f"user {number}", mechanism=ScramMechanism.SCRAM_SHA_512, salt=b"s", stored_key=b"k",
                server_key=b"v", iterations=numbers.randrange(4096, 9000),
            )  # fmt: skip
            ScramStore(client).put(record.name, [record] if numbers.random() < 0.7 else [])
        elif what < 0.97:
            token = DelegationTokenRecord(
                owner="User:new", requester="User:new", renewers=("User:r",), issue_timestamp=NOW, max_timestamp=NOW,
                expiration_timestamp=numbers.randrange(NOW), token_id=f"token-{number}",
            )  # fmt: skip
            TokenStore(client).put(token)
        else:
            TokenStore(client).remove(f"token-{number}")


def in_store(client: KazooClient) -> set[tuple]:
    """Return all entries in ZooKeeper as tuples."""
    found: set[tuple] = set()
    for tree, pattern in (("/kafka-acl", "LITERAL"), ("/kafka-acl-extended/prefixed", "PREFIXED")):
        for kind in children(client, tree):
            for name in children(client, f"{tree}/{kind}"):
                for acl in json.loads(client.get(f"{tree}/{kind}/{name}")[0])["acls"]:
                    texts = (acl["principal"], acl["permissionType"], acl["host"], acl["operation"])
                    found.add(("acl", kind, pattern, name, *texts))
    for node in children(client, "/config/users"):
        for mechanism, text in json.loads(client.get(f"/config/users/{node}")[0])["config"].items():
            parts = dict(part.partition("=")[::2] for part in text.split(","))
            keys = (b64decode(parts[key]) for key in ("salt", "stored_key", "server_key"))
            found.add(("scram", unquote_plus(node), mechanism, *keys, int(parts["iterations"])))
    for node in children(client, "/delegation_token/tokens"):
        token = json.loads(client.get(f"/delegation_token/tokens/{node}")[0])
        names = (
            unquote_plus(token["owner"]),
            unquote_plus(token["tokenRequester"]),
            *map(unquote_plus, token["renewers"]),
        )
        times = (token["issueTimestamp"], token["maxTimestamp"], token["expiryTimestamp"])
        found.add(("token", token["tokenId"], *names, *times))
    return found


def children(client: KazooClient, path: str) -> list[str]:
    """Return the children of a znode, which may be missing."""
    return client.get_children(path) if client.exists(path) else []


def camel(name: str) -> str:
    """Return AlterConfigs for ALTER_CONFIGS."""
    return "".join(word.capitalize() for word in name.split("_"))


def in_image(image: Image) -> set[tuple]:
    """Return all entries of an image as the same tuples."""
    return in_state(state_of_image(image))


def in_state(state: AccessState) -> set[tuple]:
    """Return all entries of a state as the same tuples."""
    acls = {
        (
            "acl", camel(ResourceType(acl.resource_type).name), PatternType(acl.pattern_type).name, acl.resource_name,
            acl.principal, camel(AclPermissionType(acl.permission_type).name), acl.host,
            camel(AclOperation(acl.operation).name),
        )
        for acl in state.acls
    }  # fmt: skip
    scram = {
        ("scram", r.name, ScramMechanism(r.mechanism).mechanism_name, r.salt, r.stored_key, r.server_key, r.iterations)
        for r in state.credentials.values()
    }
    tokens = {("token", t.token_id, t.owner, t.requester, *t.renewers, *_times(t)) for t in state.tokens.values()}
    return acls | scram | tokens


def _times(token: DelegationTokenRecord) -> tuple[int, int, int]:
    return token.issue_timestamp, token.max_timestamp, token.expiration_timestamp
