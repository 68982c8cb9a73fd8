"""A node that is open, or locked, by mistake says so at its start, and shows it as a metric for as long as it is."""

import asyncio
import logging
import sys
from contextlib import asynccontextmanager
from types import ModuleType
from uuid import UUID

import pytest
from attrs import evolve

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import Authorizer
from aclog.authorizer.standard import KAFKAS_STANDARD_AUTHORIZER, StandardAuthorizer
from aclog.config.listeners import KINDS
from aclog.config.node_config import Role
from aclog.metalog.filelog.meta_properties import MetaProperties
from aclog.server.controller.activation import LOG_DIRECTORY
from aclog.server.node import AccessCheck, Node
from aclog.server.telemetry import Metrics
from aclog.snapshots.publisher import Publisher
from tests.support.builders.acls import acl, acl_record
from tests.support.builders.long_log import batch, begin_log
from tests.support.nodes.controllers import DIRECTORY_ID, formatted

OPEN = (
    "authorizer.class.name is not set: every client may perform every operation{}. Expected "
    f"authorizer.class.name={KAFKAS_STANDARD_AUTHORIZER}"
)
NOBODY = (
    "no client may change ACLs: super.users is empty, and no ACL allows ALTER on the cluster. "
    "Expected super.users=User:NAME"
)
EVERYBODY = (
    "allow.everyone.if.no.acl.found is true, and no ACL is on the cluster: every client may change ACLs. Expected an "
    "ACL that allows ALTER on the cluster to administrators only"
)
EVERYONE = {"allow.everyone.if.no.acl.found": "true"}


def on_cluster(operation=AclOperation.ALTER, principal="User:a", **fields):
    return acl("kafka-cluster", principal, operation=operation, resource_type=ResourceType.CLUSTER, **fields)


@asynccontextmanager
async def started(directory, acls, properties, name=KAFKAS_STANDARD_AUTHORIZER):
    config = evolve(formatted(directory), authorizer_class_name=name, properties=properties)
    begin_log(directory / LOG_DIRECTORY, *(batch([acl_record(1 + at, each)], at) for at, each in enumerate(acls)))
    meta = MetaProperties(cluster_id="a-cluster", node_id=1, directory_id=DIRECTORY_ID)
    node, stop = Node(config=config, meta=meta), asyncio.Event()
    running, serving = asyncio.create_task(node.run(stop)), asyncio.create_task(node.serving.wait())
    await asyncio.wait({running, serving}, return_when=asyncio.FIRST_COMPLETED)
    serving.cancel()
    try:
        yield node
    finally:
        stop.set()
        await running


def shown(node):
    return {kind for kind in KINDS if node.metrics.registry.get_sample_value("aclog_access_warning", {"warning": kind})}


def told(directory, caplog, *arguments, **named):
    """The sentences, and the kinds that the metric shows."""

    async def scenario():
        async with started(directory, *arguments, **named) as node:
            return shown(node)

    with caplog.at_level(logging.WARNING, "aclog.server.node"):
        kinds = asyncio.run(scenario())
    return [each.getMessage() for each in caplog.records if each.name == "aclog.server.node"], kinds


@pytest.mark.parametrize(
    ("acls", "properties", "although"),
    [
        ([], {}, [""]),
        ([acl("a")], {}, ["", ", although the log holds 1 ACL"]),
        ([acl("a"), acl("b")], {}, ["", ", although the log holds 2 ACLs"]),
        ([], {"super.users": "User:a"}, [", although super.users is set"]),
        ([acl("a")], {"super.users": "User:a"}, [", although super.users is set", ", although the log holds 1 ACL"]),
    ],
)
def test_without_an_authorizer(tmp_path, caplog, acls, properties, although):
    texts = [OPEN.format(each) for each in although]
    assert told(tmp_path, caplog, acls, properties, name=None) == (texts, {"no_authorizer"})


@pytest.mark.parametrize(
    ("acls", "properties"),
    [
        ([], {}),
        ([], {"super.users": " ; "}),
        ([acl("a")], {}),
        ([on_cluster(AclOperation.DESCRIBE)], {}),
        ([on_cluster(permission_type=AclPermissionType.DENY)], {}),
        ([on_cluster(permission_type=AclPermissionType.DENY)], EVERYONE),
        ([on_cluster(), on_cluster(AclOperation.ALL, "User:*", permission_type=AclPermissionType.DENY)], {}),
    ],
)
def test_nobody_may_change_acls(tmp_path, caplog, acls, properties):
    assert told(tmp_path, caplog, acls, properties) == ([NOBODY], {"no_administrator"})


@pytest.mark.parametrize("properties", [EVERYONE, EVERYONE | {"super.users": "User:a"}])
def test_everybody_may_change_acls(tmp_path, caplog, properties):
    assert told(tmp_path, caplog, [acl("a")], properties) == ([EVERYBODY], {"everybody_administers"})


@pytest.mark.parametrize(
    ("acls", "properties"),
    [
        ([], {"super.users": "User:a"}),
        ([on_cluster()], {}),
        ([on_cluster(AclOperation.ALL, "User:*")], {}),
        ([acl("*", "User:a", operation=AclOperation.ALL, resource_type=ResourceType.CLUSTER)], {}),
        ([acl("kafka", operation=2, resource_type=ResourceType.CLUSTER, pattern_type=PatternType.PREFIXED)], {}),
        ([on_cluster()], EVERYONE),
        ([on_cluster(), on_cluster(principal="User:b", permission_type=AclPermissionType.DENY)], {}),
    ],
)
def test_somebody_may(tmp_path, caplog, acls, properties):
    assert told(tmp_path, caplog, acls, properties) == ([], set())


@pytest.mark.parametrize("properties", [{}, EVERYONE])
def test_who_may_change_acls_is_up_to_controllers(tmp_path, properties):
    controller = evolve(formatted(tmp_path), authorizer_class_name=KAFKAS_STANDARD_AUTHORIZER, properties=properties)
    for roles, expected in (("controller", 1), ("broker", 0), ("controller broker", 1)):
        config = evolve(controller, roles=frozenset(map(Role, roles.split())))
        authorizer, publisher = StandardAuthorizer(), Publisher()
        check = AccessCheck(config=config, authorizer=authorizer, publisher=publisher, metrics=Metrics())
        assert len(list(check.of_acls())) == expected


def test_the_metric_follows_the_acls(tmp_path):
    async def scenario():
        async with started(tmp_path, [], {}) as node:
            assert shown(node) == {"no_administrator"}
            image, added = node.publisher.current, StandardAclWithId(id=UUID(int=9), acl=on_cluster())
            node.publisher.replace(evolve(image, acls=type(image.acls).from_acls([added])))
            assert shown(node) == set()

    asyncio.run(scenario())


class Foreign(Authorizer):
    """A plugin with semantics of its own."""

    def configure(self, properties):
        pass

    def authorize(self, context, actions):
        raise NotImplementedError

    authorize_by_resource_type = acls = create_acls = delete_acls = authorize


class Plugin(StandardAuthorizer):
    """A plugin with Kafka's."""


@pytest.mark.parametrize(("name", "texts"), [("Foreign", []), ("Plugin", [NOBODY])])
def test_an_authorizer_of_unknown_semantics_is_not_judged(tmp_path, caplog, monkeypatch, name, texts):
    module = ModuleType("a_plugin")
    module.Foreign, module.Plugin = Foreign, Plugin
    monkeypatch.setitem(sys.modules, "a_plugin", module)
    properties = {"super.users": "users from a directory", "allow.everyone.if.no.acl.found": "maybe"}
    given = properties if name == "Foreign" else {}
    assert told(tmp_path, caplog, [], given, name=f"a_plugin.{name}")[0] == texts
