"""A broker that tells what a test says: rules, SCRAM users, its cluster's id, and every way to refuse or to mislead."""

from collections.abc import Callable, Iterable
from itertools import groupby

from aclog.authorizer.acl import StandardAcl
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.wire.api_keys import (
    DESCRIBE_ACLS,
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    METADATA,
)
from aclog.nodes.wire.api_versions import BROKER_APIS
from aclog.nodes.wire.message_builder import build
from tests.support.fakes.leader import FakeLeader
from tests.support.fakes.quorum import FakeQuorum


class FakeBroker(FakeLeader):
    """Its answers are made when they are asked for. `refusals` are (code, message) by API key.

    `next_rules`, if there is one, gives the rules of each answer, and `told` has them all, in order. `more` are bytes
    after each answer to DescribeAcls; `tamper_body` may change its body.
    """

    def __init__(self, rules: Iterable[StandardAcl] = (), *, cluster_id: str = "the-cluster", **settings) -> None:
        self.rules = list(rules)
        self.users: dict[str, list[tuple[int, int]]] = {}
        self.refusals: dict[int, tuple[int, str | None]] = {}
        self.next_rules: Callable[[], list[StandardAcl]] | None = None
        self.told: list[frozenset[StandardAcl]] = []
        self.more = b""
        self.others: list[HostPort] = []
        """The brokers that DescribeCluster names."""
        self.tamper_body: Callable[[bytes], bytes] = lambda body: body
        handlers = {
            METADATA: self._metadata,
            DESCRIBE_ACLS: self._acls,
            DESCRIBE_USER_SCRAM_CREDENTIALS: self._users,
            DESCRIBE_CLUSTER: self._cluster,
            DESCRIBE_QUORUM: self._quorum,
        }
        super().__init__(FakeQuorum(), **({"apis": BROKER_APIS, "handlers": handlers} | settings))
        self.cluster_id = cluster_id

    async def _answer(self, header, body, state) -> bytes | None:
        found = await super()._answer(header, body, state)
        return self.tamper_body(found) + self.more if header.api_key == DESCRIBE_ACLS else found

    def _acls(self, version, _body):
        if DESCRIBE_ACLS in self.refusals:
            code, message = self.refusals[DESCRIBE_ACLS]
            return build(DESCRIBE_ACLS, version, "response", error_code=code, error_message=message)
        rules = self.rules if self.next_rules is None else self.next_rules()
        self.told.append(frozenset(rules))
        return build(DESCRIBE_ACLS, version, "response", resources=tuple(_resources(version, rules)))

    def _users(self, version, _body):
        key = DESCRIBE_USER_SCRAM_CREDENTIALS
        if key in self.refusals:
            code, message = self.refusals[key]
            return build(key, version, "response", error_code=code, error_message=message)
        results = tuple(
            build(
                key,
                version,
                "response",
                "DescribeUserScramCredentialsResult",
                user=user,
                credential_infos=tuple(
                    build(key, version, "response", "CredentialInfo", mechanism=mechanism, iterations=iterations)
                    for mechanism, iterations in infos
                ),
            )
            for user, infos in self.users.items()
        )
        return build(key, version, "response", results=results)

    def _cluster(self, version, _body):
        key = DESCRIBE_CLUSTER
        code, message = self.refusals.get(key, (0, None))
        brokers = tuple(
            build(key, version, "response", "DescribeClusterBroker", broker_id=number, host=at.host, port=at.port)
            for number, at in enumerate(self.others, 2)
        )
        known = {"cluster_id": self.cluster_id, "brokers": brokers}
        return build(key, version, "response", error_code=code, error_message=message, **known)

    def _quorum(self, version, _body):
        """As a broker that forwards it; a refusal stands for a controller that is out of reach."""
        key = DESCRIBE_QUORUM
        code, message = self.refusals.get(key, (0, None))
        partition = build(key, version, "response", "PartitionData", partition_index=0, leader_id=1, leader_epoch=1)
        topic = build(key, version, "response", "TopicData", topic_name="__cluster_metadata", partitions=(partition,))
        return build(key, version, "response", error_code=code, error_message=message, topics=(topic,))

    def _metadata(self, version, _body):
        return build(METADATA, version, "response", cluster_id=self.cluster_id)


def _resources(version: int, rules: Iterable[StandardAcl]):
    def pattern(acl: StandardAcl):
        return acl.resource_type, acl.resource_name, acl.pattern_type

    for (kind, name, pattern_type), listed in groupby(sorted(rules, key=pattern), key=pattern):
        yield build(
            DESCRIBE_ACLS,
            version,
            "response",
            "DescribeAclsResource",
            resource_type=kind,
            resource_name=name,
            pattern_type=pattern_type,
            acls=tuple(
                build(
                    DESCRIBE_ACLS,
                    version,
                    "response",
                    "AclDescription",
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission_type,
                )
                for acl in listed
            ),
        )
