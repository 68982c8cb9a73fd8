"""Reads from a broker's image: cluster, SCRAM users, client quotas, and their authorization."""

import asyncio
from pathlib import Path

import pytest

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.interface import AclRequestError, AuthorizerNotReadyError
from aclog.authorizer.standard import StandardAuthorizer
from aclog.config.node_config import HostPort
from aclog.protocol import api_keys
from aclog.protocol.headers import RequestError
from aclog.protocol.messages import build
from aclog.server.apis.acls import AuthHelper
from aclog.server.broker.apis import ClusterView
from aclog.server.broker.lifecycle import BrokerApis
from aclog.snapshots.publisher import Publisher, recover
from tests.support.builders.acls import acl
from tests.support.nodes.node_requests import answer, request

SMALL = Path(__file__).parents[2] / "data/kafka-4.3.1-small/__cluster_metadata-0"
CLUSTER = ClusterView(cluster_id="c", node_id=4, advertised={"BROKER": HostPort(host="b4", port=9092)})
NOT_ASKED = -(2**31)


class Forwarded:
    """Records forwarded requests, and responds with the API key."""

    async def forward(self, asked):
        return bytes((asked.header.api_key,))

    async def close(self):
        pass


def rule(operation, user="bob", name="kafka-cluster", kind=ResourceType.CLUSTER):
    return StandardAclWithId(id=None, acl=acl(name, f"User:{user}", operation=operation, resource_type=kind))


def authorizer(*rules, ready=True):
    made = StandardAuthorizer()
    made.configure({"super.users": "User:admin"})
    made.load(AclsImage.from_acls(rules))
    if ready:
        made.complete_initial_load()
    return made


def broker(*rules, ready=True, image=None, **settings):
    publisher = Publisher()
    if image is not None:
        publisher.replace(image)
    auth = AuthHelper(authorizer(*rules, ready=ready))
    return BrokerApis(
        publisher=publisher, replayed=lambda: ready, auth=auth, cluster=CLUSTER, forwarder=Forwarded(), **settings
    ).handlers()


def ask(handlers, api_key, version, user="admin", **fields):
    asked = request(api_key, version, build(api_key, version, "request", **fields), user, "BROKER")
    return answer(api_key, version, asyncio.run(handlers[api_key](asked)))


@pytest.fixture(scope="module")
def small():
    return recover(SMALL).image


class TestMetadata:
    @pytest.mark.parametrize("version", range(14))
    def test_metadata_names_this_broker_in_every_version(self, version):
        found = ask(broker(), api_keys.METADATA, version, topics=())
        assert [(b.node_id, b.host, b.port) for b in found.brokers] == [(4, "b4", 9092)]
        if version >= 1:
            assert found.controller_id == 4
        if version >= 2:
            assert found.cluster_id == "c"

    def test_topics_are_unknown_to_authorized_clients(self):
        def topic(name):
            return build(api_keys.METADATA, 9, "request", "MetadataRequestTopic", name=name)

        may = broker(rule(AclOperation.DESCRIBE, name="t", kind=ResourceType.TOPIC))
        asked = {"topics": (topic("t"), topic("u")), "allow_auto_topic_creation": False}
        found = ask(may, api_keys.METADATA, 9, user="bob", **asked)
        assert [(t.name, int(t.error_code)) for t in found.topics] == [("t", 3), ("u", 29)]

    @pytest.mark.parametrize(
        ("rights", "enabled", "error"),
        [
            ([], True, 29),
            ([], False, 3),
            ([rule(AclOperation.CREATE)], True, 3),
            ([rule(AclOperation.CREATE, name="t", kind=ResourceType.TOPIC)], True, 3),
        ],
    )
    def test_a_missing_topic_that_is_to_be_created_needs_the_right_to_that(self, rights, enabled, error):
        handlers = broker(
            rule(AclOperation.DESCRIBE, name="t", kind=ResourceType.TOPIC), *rights, auto_create_topics=enabled
        )
        topic = build(api_keys.METADATA, 9, "request", "MetadataRequestTopic", name="t")
        asked = {"topics": (topic,), "allow_auto_topic_creation": True}
        assert [int(t.error_code) for t in ask(handlers, api_keys.METADATA, 9, user="bob", **asked).topics] == [error]

    def test_topic_ids_are_unknown(self):
        topic = build(api_keys.METADATA, 12, "request", "MetadataRequestTopic", name=None)
        assert [int(t.error_code) for t in ask(broker(), api_keys.METADATA, 12, topics=(topic,)).topics] == [100]

    def test_topics_without_a_name_are_refused_in_versions_that_know_no_ids(self):
        topic = build(api_keys.METADATA, 10, "request", "MetadataRequestTopic", name=None)
        with pytest.raises(RequestError) as refused:
            ask(broker(), api_keys.METADATA, 10, topics=(topic,))
        assert refused.value.code == 42

    def test_cluster_operations_are_included_on_request(self):
        handlers = broker(rule(AclOperation.DESCRIBE), rule(AclOperation.CREATE))
        asked = {"topics": (), "include_cluster_authorized_operations": True}
        found = ask(handlers, api_keys.METADATA, 9, user="bob", **asked)
        assert found.cluster_authorized_operations == 1 << AclOperation.DESCRIBE | 1 << AclOperation.CREATE
        assert ask(handlers, api_keys.METADATA, 9, user="carol", **asked).cluster_authorized_operations == 0
        assert ask(handlers, api_keys.METADATA, 9, user="bob", topics=()).cluster_authorized_operations == NOT_ASKED


class TestDescribeCluster:
    @pytest.mark.parametrize("version", range(3))
    def test_describe_cluster_names_this_broker(self, version):
        found = ask(broker(), api_keys.DESCRIBE_CLUSTER, version, endpoint_type=1)
        assert (found.cluster_id, found.controller_id) == ("c", 4)
        assert [(b.broker_id, b.host, b.port) for b in found.brokers] == [(4, "b4", 9092)]

    @pytest.mark.parametrize(("endpoint_type", "code"), [(2, 114), (0, 115), (77, 115)])
    def test_other_endpoints_are_refused(self, endpoint_type, code):
        found = ask(broker(), api_keys.DESCRIBE_CLUSTER, 1, endpoint_type=endpoint_type)
        assert (int(found.error_code), found.brokers) == (code, ())


class TestScram:
    def users(self, *names):
        return tuple(build(api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, "request", "UserName", name=n) for n in names)

    def test_all_users_or_the_named_ones(self, small):
        handlers, key = broker(image=small), api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS
        everybody = [each.user for each in small.scram.describe()]
        assert [r.user for r in ask(handlers, key, 0, users=None).results] == everybody
        assert [r.user for r in ask(handlers, key, 0, users=()).results] == everybody
        found = ask(handlers, key, 0, users=self.users(everybody[0], "nobody", "twice", "twice")).results
        assert [(r.user, int(r.error_code)) for r in found] == [(everybody[0], 0), ("nobody", 91), ("twice", 92)]
        assert found[0].credential_infos
        assert found[1].error_message == "Attempt to describe a user credential that does not exist: nobody"
        assert not found[2].credential_infos

    def test_needs_describe_on_the_cluster(self, small):
        with pytest.raises(RequestError) as refused:
            ask(broker(image=small), api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, user="bob", users=())
        assert refused.value.code == 31


class TestClientQuotas:
    def quotas(self, image, *components, strict=False):
        made = tuple(
            build(
                api_keys.DESCRIBE_CLIENT_QUOTAS, 1, "request", "ComponentData",
                entity_type=kind, match_type=match_type, match=match,
            )
            for kind, match_type, match in components
        )  # fmt: skip
        found = ask(broker(image=image), api_keys.DESCRIBE_CLIENT_QUOTAS, 1, components=made, strict=strict)
        return [
            ({e.entity_type: e.entity_name for e in entry.entity}, {v.key: v.value for v in entry.values})
            for entry in found.entries
        ]

    def test_quotas_from_kafkas_log_are_described(self, small):
        quota = ({"client-id": "c1", "user": None}, {"request_percentage": 50.5})
        assert self.quotas(small) == [quota]
        assert self.quotas(small, ("client-id", 0, "c1")) == [quota]
        assert self.quotas(small, ("client-id", 2, None), ("user", 1, None)) == [quota]

    @pytest.mark.parametrize(
        "components",
        [(("client-id", 0, "c2"),), (("user", 2, None), ("ip", 2, None)), (("user", 0, "alice"),)],
    )
    def test_quotas_that_do_not_match_are_omitted(self, small, components):
        assert self.quotas(small, *components) == []

    def test_strictly_all_of_an_entity_must_be_named(self, small):
        assert self.quotas(small, ("client-id", 2, None), strict=True) == []
        assert len(self.quotas(small, ("client-id", 2, None), ("user", 1, None), strict=True)) == 1

    def test_a_quota_that_was_removed_is_gone(self, small):
        """The fixture gave alice a quota and removed it."""
        before = recover(SMALL, 183).image
        assert self.quotas(before, ("user", 0, "alice")) == [({"user": "alice"}, {"producer_byte_rate": 1048576.0})]
        assert self.quotas(small, ("user", 0, "alice")) == []

    @pytest.mark.parametrize(
        ("components", "text"),
        [
            ((("", 2, None),), "empty"),
            ((("user", 2, None), ("user", 1, None)), "user"),
            ((("user", 0, None),), "MATCH_TYPE_EXACT"),
            ((("user", 1, "x"),), "MATCH_TYPE_DEFAULT"),
            ((("user", 2, "x"),), "MATCH_TYPE_SPECIFIED"),
            ((("user", 9, None),), "Unknown match type 9"),
        ],
    )
    def test_invalid_filters_are_rejected(self, small, components, text):
        with pytest.raises(RequestError, match=text) as refused:
            self.quotas(small, *components)
        assert refused.value.code == 42

    def test_needs_describe_configs_on_the_cluster(self, small):
        with pytest.raises(RequestError) as refused:
            ask(broker(image=small), api_keys.DESCRIBE_CLIENT_QUOTAS, 1, user="bob", components=(), strict=False)
        assert refused.value.code == 31


class TestAcls:
    def described(self, handlers, user="admin", version=3, **fields):
        anything = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
        nothing = {"resource_name_filter": None, "principal_filter": None, "host_filter": None}
        return ask(handlers, api_keys.DESCRIBE_ACLS, version, user=user, **anything | nothing | fields)

    def test_acls_are_listed_for_authorized_clients(self):
        handlers = broker(rule(AclOperation.DESCRIBE))
        assert [r.resource_name for r in self.described(handlers, "bob").resources] == ["kafka-cluster"]
        with pytest.raises(AclRequestError, match="needs DESCRIBE permission"):
            self.described(handlers, "carol")

    @pytest.mark.parametrize("user", ["admin", "bob"])
    def test_before_the_log_is_replayed_nobody_is_answered(self, user):
        with pytest.raises(AuthorizerNotReadyError):
            self.described(broker(ready=False), user)


class TestForwarding:
    @pytest.mark.parametrize(
        ("api_key", "fields"),
        [
            (api_keys.CREATE_ACLS, {"creations": ()}),
            (api_keys.DELETE_ACLS, {"filters": ()}),
            (api_keys.ALTER_USER_SCRAM_CREDENTIALS, {"deletions": (), "upsertions": ()}),
            (api_keys.DESCRIBE_QUORUM, {"topics": ()}),
        ],
    )
    def test_writes_are_forwarded_to_the_controller(self, api_key, fields):
        version = 0 if api_key in (51, 55) else 3
        asked = request(api_key, version, build(api_key, version, "request", **fields), "bob", "BROKER")
        assert asyncio.run(broker()[api_key](asked)) == bytes((api_key,))
