"""A broker that tells what a test says: rules, SCRAM users, its cluster's id, and every way to refuse or to mislead."""

from collections.abc import Callable, Iterable
from itertools import groupby

from attrs import evolve, fields

from aclog.authorizer.acl import AclBindingFilter, StandardAcl
from aclog.authorizer.index.queries import filter_matches
from aclog.config.node_config import HostPort
from aclog.protocol.api_keys import (
    CREATE_ACLS,
    CREATE_DELEGATION_TOKEN,
    DELETE_ACLS,
    DESCRIBE_ACLS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_DELEGATION_TOKEN,
    DESCRIBE_QUORUM,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    EXPIRE_DELEGATION_TOKEN,
    METADATA,
    RENEW_DELEGATION_TOKEN,
)
from aclog.protocol.messages import build
from aclog.protocol.responses import BROKER_APIS, ApiVersion
from tests.support.fakes.leader import FakeLeader
from tests.support.fakes.quorum import FakeQuorum

ACL_APIS = DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS
_TOKEN_APIS = CREATE_DELEGATION_TOKEN, RENEW_DELEGATION_TOKEN, EXPIRE_DELEGATION_TOKEN, DESCRIBE_DELEGATION_TOKEN
_LATER = {*ACL_APIS, *_TOKEN_APIS, DESCRIBE_CLUSTER, DESCRIBE_QUORUM, DESCRIBE_USER_SCRAM_CREDENTIALS}

CREATION = {field.name: field.name for field in fields(StandardAcl)} | {"pattern_type": "resource_pattern_type"}
_FILTER = {field.name: field.name for field in fields(AclBindingFilter)} | {
    name: f"{name}_filter" for name in ("resource_type", "resource_name", "pattern_type", "principal", "host")
}
"""The names of an ACL's and a filter's fields, and those in requests."""


def older_apis(acls: int, tokens: int | None = None) -> tuple[ApiVersion, ...]:
    """The APIs of a broker of an earlier Kafka, whose ACL APIs, and those for tokens, end at these versions."""
    ends = dict.fromkeys(ACL_APIS, acls) | ({} if tokens is None else dict.fromkeys(_TOKEN_APIS, tokens))
    apis = (api for api in BROKER_APIS if api.api_key not in _LATER)
    return (*apis, *(ApiVersion(key, 0, end) for key, end in ends.items()))


class FakeBroker(FakeLeader):
    """Its answers are made when they are asked for. `refusals` are (code, message) by API key.

    `next_rules`, if there is one, gives the rules of each answer, and `told` has them all, in order. `more` are bytes
    after each answer to DescribeAcls; `tamper_body` may change its body. CreateAcls and DeleteAcls change `rules`. A
    request in a version that `apis` does not have closes the connection, as in Kafka; `versions` has the newest one
    that was asked in, by API key.
    """

    def __init__(self, rules: Iterable[StandardAcl] = (), *, cluster_id: str = "the-cluster", **settings) -> None:
        self.rules = list(rules)
        self.users: dict[str, list[tuple[int, int]]] = {}
        self.refusals: dict[int, tuple[int, str | None]] = {}
        self.next_rules: Callable[[], list[StandardAcl]] | None = None
        self.told: list[frozenset[StandardAcl]] = []
        self.more = b""
        self.versions: dict[int, int] = {}
        self.topics: list[str] = []
        self.others: list[HostPort] = []
        """The brokers that DescribeCluster names besides this one, which is number 1."""
        self.configs: dict[str, str | None] = {}
        """What DescribeConfigs tells; None for what it hides."""
        self.committed = 0
        """The high-water mark that DescribeQuorum tells; `applied` is how far this broker is."""
        self.refused_rules: dict[StandardAcl, tuple[int, str]] = {}
        """What CreateAcls and DeleteAcls refuse, by (code, message), while they do the rest."""
        self.deleted_at_once: list[list[AclBindingFilter]] = []
        """The filters of each DeleteAcls request."""
        self.tamper_body: Callable[[bytes], bytes] = lambda body: body
        handlers = {
            METADATA: self._metadata,
            DESCRIBE_ACLS: self._acls,
            CREATE_ACLS: self._create,
            DELETE_ACLS: self._delete,
            DESCRIBE_USER_SCRAM_CREDENTIALS: self._users,
            DESCRIBE_CLUSTER: self._cluster,
            DESCRIBE_QUORUM: self._quorum,
            DESCRIBE_CONFIGS: self._configs,
        }
        super().__init__(FakeQuorum(), **({"apis": BROKER_APIS, "handlers": handlers} | settings))
        self.cluster_id = cluster_id

    @property
    def applied(self) -> int:
        """How far this broker is, as its finalized features tell: the offset of the last record; -1 is not told."""
        return self.features.finalized_epoch

    @applied.setter
    def applied(self, offset: int) -> None:
        self.features = evolve(self.features, finalized_epoch=offset)

    async def _answer(self, header, body, state) -> bytes | None:
        key, version = header.api_key, header.api_version
        if not any(api.api_key == key and version in api for api in self.apis):
            return None
        self.versions[key] = max(version, self.versions.get(key, 0))
        answer = await super()._answer(header, body, state)
        return self.tamper_body(answer) + self.more if header.api_key == DESCRIBE_ACLS else answer

    def _acls(self, version, body):
        if DESCRIBE_ACLS in self.refusals:
            code, message = self.refusals[DESCRIBE_ACLS]
            return build(DESCRIBE_ACLS, version, "response", error_code=code, error_message=message)
        acl_filter, present = filter_of(body), self.rules if self.next_rules is None else self.next_rules()
        rules = [acl for acl in present if filter_matches(acl_filter, acl)]
        self.told.append(frozenset(rules))
        return build(DESCRIBE_ACLS, version, "response", resources=tuple(resources_of(version, rules)))

    def _create(self, version, body):
        created = [
            StandardAcl(**{name: getattr(each, key) for name, key in CREATION.items()}) for each in body.creations
        ]
        self.rules += [acl for acl in created if acl not in self.rules and acl not in self.refused_rules]
        outcomes = [self.refused_rules.get(acl, (0, "")) for acl in created]
        results = tuple(
            build(CREATE_ACLS, version, "response", "AclCreationResult", error_code=code, error_message=message)
            for code, message in outcomes
        )
        return build(CREATE_ACLS, version, "response", results=results)

    def _delete(self, version, body):
        filters = [filter_of(each) for each in body.filters]
        self.deleted_at_once.append(filters)
        results = tuple(self._deleted(version, each) for each in filters)
        return build(DELETE_ACLS, version, "response", filter_results=results)

    def _deleted(self, version, acl_filter: AclBindingFilter):
        removed = [acl for acl in self.rules if filter_matches(acl_filter, acl)]
        for acl in removed:
            if acl in self.refused_rules:
                code, message = self.refused_rules[acl]
                refused = {"error_code": code, "error_message": message}
                return build(DELETE_ACLS, version, "response", "DeleteAclsFilterResult", **refused)
        self.rules = [acl for acl in self.rules if acl not in removed]
        rows = [{name: getattr(acl, name) for name in CREATION} for acl in removed]
        matching = tuple(build(DELETE_ACLS, version, "response", "DeleteAclsMatchingAcl", **each) for each in rows)
        return build(DELETE_ACLS, version, "response", "DeleteAclsFilterResult", matching_acls=matching)

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
            for number, at in enumerate([self.address, *self.others], 1)
        )
        values = {"cluster_id": self.cluster_id, "brokers": brokers}
        return build(key, version, "response", error_code=code, error_message=message, **values)

    def _quorum(self, version, _body):
        """As a broker that forwards it; a refusal stands for a controller that is out of reach."""
        key = DESCRIBE_QUORUM
        code, message = self.refusals.get(key, (0, None))
        partition = build(
            key,
            version,
            "response",
            "PartitionData",
            partition_index=0,
            leader_id=1,
            leader_epoch=1,
            high_watermark=self.committed,
        )
        topic = build(key, version, "response", "TopicData", topic_name="__cluster_metadata", partitions=(partition,))
        return build(key, version, "response", error_code=code, error_message=message, topics=(topic,))

    def _configs(self, version, body):
        key = DESCRIBE_CONFIGS
        code, message = self.refusals.get(key, (0, None))
        keys = body.resources[0].configuration_keys
        values = tuple(
            build(key, version, "response", "DescribeConfigsResourceResult", name=name, value=value)
            for name, value in self.configs.items()
            if keys is None or name in keys
        )
        result = build(
            key, version, "response", "DescribeConfigsResult", error_code=code, error_message=message, configs=values
        )
        return build(key, version, "response", results=(result,))

    def _metadata(self, version, _body):
        topics = tuple(build(METADATA, version, "response", "MetadataResponseTopic", name=name) for name in self.topics)
        return build(METADATA, version, "response", cluster_id=self.cluster_id, topics=topics)


def filter_of(each) -> AclBindingFilter:
    """Return the filter of a request to describe or delete ACLs."""
    return AclBindingFilter(**{name: getattr(each, key) for name, key in _FILTER.items()})


def resources_of(version: int, rules: Iterable[StandardAcl]):
    """Yield the resources of a response to DescribeAcls."""

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
