"""Large requests of every API are worked on off the event loop, and answered from one image."""

import asyncio
import sys
import threading
import typing
from dataclasses import fields, replace

import pytest
from attrs import evolve

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.standard import StandardAuthorizer
from aclog.config.node_config import HostPort
from aclog.credentials.tokens import TokenSettings
from aclog.protocol import api_keys
from aclog.protocol.headers import MalformedRequestError
from aclog.protocol.messages import build, message_type
from aclog.protocol.responses import BROKER_APIS, CONTROLLER_APIS
from aclog.protocol.session import SecurityProtocol
from aclog.server.apis.acls import AuthHelper
from aclog.server.broker.apis import ClusterView, LocalForwarder, MetadataApis
from aclog.server.broker.lifecycle import BrokerApis
from aclog.server.network.dispatch import Dispatcher
from aclog.server.telemetry import Metrics
from tests.support.builders.acls import acl, cluster_acl
from tests.support.nodes.controllers import formatted, handlers_of, running
from tests.support.nodes.node_requests import answer, frame, request, session

MANY = 4000
CLUSTER = ClusterView(cluster_id="c", node_id=4, advertised={"BROKER": HostPort(host="b4", port=9092)})
_APART = (api_keys.SASL_HANDSHAKE, api_keys.SASL_AUTHENTICATE, api_keys.API_VERSIONS, api_keys.ENVELOPE)
SERVED = {each.api_key: each for each in (*BROKER_APIS, *CONTROLLER_APIS) if each.api_key not in _APART}
TELLING = {
    "resource_type": 2,
    "resource_pattern_type": 3,
    "resource_type_filter": 2,
    "pattern_type_filter": 3,
    "operation": 3,
    "permission_type": 3,
    "mechanism": 1,
    "iterations": 4096,
    "salted_password": bytes(32),
    "salt": b"salt",
    "host": "*",
}
"""What makes an entry valid, by the name of its field."""
NUMBERED = ("name", "topic_name", "resource_name", "resource_name_filter", "principal_name", "topic")


def large(api_key, version):
    """A request with many different entries in each of its lists, and in each list of its first entry."""
    top = {name: TELLING[name] for name in ("operation", "permission_type") if api_key == api_keys.DESCRIBE_ACLS}
    top |= dict.fromkeys(("resource_type_filter", "pattern_type_filter"), 1) if top else {}
    message = build(api_key, version, "request", **top)
    kind = message_type(api_key, version, "request")
    return replace(message, **{name: _entries(api_key, version, entry) for name, entry in _lists(kind)})


def _lists(kind):
    for name, hint in typing.get_type_hints(kind).items():
        for each in (hint, *typing.get_args(hint)):  # a list, or a list that may be null
            if typing.get_origin(each) is tuple and hasattr(typing.get_args(each)[0], "__dataclass_fields__"):
                yield name, typing.get_args(each)[0]


def _entries(api_key, version, kind):
    known = {field.name for field in fields(kind)}
    said = {name: value for name, value in TELLING.items() if name in known}
    if {"principal", "principal_filter"} & known:
        said |= {name: "User:app" for name in ("principal", "principal_filter") if name in known}
    names = [name for name in NUMBERED if name in known]
    return tuple(
        build(api_key, version, "request", kind.__name__, **said, **dict.fromkeys(names, f"n-{number}"))
        for number in range(MANY)
    )


def dispatcher(server, authorizer, api_key):
    """What serves an API: a broker in the controller's process, or the controller itself."""
    handlers = handlers_of(server)
    if api_key not in {each.api_key for each in BROKER_APIS}:
        return Dispatcher(handlers=handlers, apis=CONTROLLER_APIS, metrics=Metrics(process=False))
    broker = BrokerApis(
        publisher=server.publisher,
        replayed=lambda: True,
        auth=AuthHelper(authorizer),
        cluster=CLUSTER,
        forwarder=LocalForwarder(handlers),
        tokens=TokenSettings(secret="hush"),
    ).handlers()
    return Dispatcher(handlers=broker, apis=BROKER_APIS, metrics=Metrics(process=False))


@pytest.mark.parametrize("api_key", SERVED)
@pytest.mark.sample(6)
def test_the_loop_does_not_work_through_the_entries_of_a_large_request(api_key, tmp_path):
    assert asyncio.run(calls_on_the_loop(api_key, tmp_path)) < MANY


async def calls_on_the_loop(api_key, tmp_path):
    """How many functions are called at most between two turns of the loop while a large request is answered."""
    version = SERVED[api_key].max_version
    payload = frame(api_key, version, large(api_key, version))
    client = evolve(session("admin", "BROKER"), security_protocol=SecurityProtocol.SASL_PLAINTEXT)
    calls = worst = 0

    def called(*_):
        nonlocal calls
        calls += 1

    async def turn():
        nonlocal calls, worst
        while True:
            worst, calls = max(worst, calls), 0
            await asyncio.sleep(0)

    async with running(formatted(tmp_path)) as server:
        serving, turning = dispatcher(server, server.authorizer, api_key), asyncio.create_task(turn())
        sys.setprofile(called)  # of this thread alone, which is the loop's
        try:
            await serving.handle(payload, client)
        except MalformedRequestError:
            pytest.fail("the request is not served")
        finally:
            sys.setprofile(None)
            turning.cancel()
    return max(worst, calls)


def test_a_large_metadata_answer_is_of_one_image_and_leaves_the_loop_its_turns():
    asyncio.run(asked_while_rules_change())


async def asked_while_rules_change():
    authorizer = StandardAuthorizer()
    rules = [acl("*", "User:bob", operation=8), cluster_acl("User:bob", 8)]
    images = image_of(rules), image_of([])
    authorizer.load(images[0])
    authorizer.complete_initial_load()
    topics = tuple(
        build(api_keys.METADATA, 10, "request", "MetadataRequestTopic", name=f"t{number}") for number in range(MANY)
    )
    asked = dict.fromkeys(("include_topic_authorized_operations", "include_cluster_authorized_operations"), True)
    asked["allow_auto_topic_creation"] = False
    message = build(api_keys.METADATA, 10, "request", topics=topics, **asked)
    handler = MetadataApis(CLUSTER, AuthHelper(authorizer)).metadata
    answering = asyncio.create_task(handler(request(api_keys.METADATA, 10, message, "bob", "BROKER")))
    await asyncio.sleep(0)
    turns = 0
    while not answering.done():
        turns += 1
        authorizer.load(images[turns % 2])
        await asyncio.sleep(0)
    found = answer(api_keys.METADATA, 10, answering.result())
    assert {int(each.error_code) for each in found.topics} == {3}, "allowed, and unknown"
    assert {each.topic_authorized_operations for each in found.topics} == {1 << 8}
    assert found.cluster_authorized_operations == 1 << 8
    assert turns > 3


def image_of(rules):
    return AclsImage.from_acls(StandardAclWithId(id=None, acl=each) for each in rules)


def test_messages_of_older_versions_are_imported_in_a_thread(monkeypatch):
    """Kafka has up to 14 versions of an API, whose first import takes 50 ms."""
    threads = []

    def noted(apis):
        threads.append((threading.current_thread(), sorted(apis)))

    monkeypatch.setattr("aclog.server.network.dispatch.warm_up", noted)
    authorizer = StandardAuthorizer()
    authorizer.configure({"super.users": "User:admin"})
    handlers = {api_keys.METADATA: MetadataApis(CLUSTER, AuthHelper(authorizer)).metadata}
    serving = Dispatcher(handlers=handlers, apis=BROKER_APIS, metrics=Metrics(process=False))
    assert (api_keys.METADATA, 13) in threads.pop()[1]
    for version in (13, 12, 0, 5, 9):
        message = build(api_keys.METADATA, version, "request", topics=())
        asyncio.run(serving.handle(frame(api_keys.METADATA, version, message), session("admin", "BROKER")))
    ((thread, warmed),) = threads
    assert thread is not threading.main_thread()
    assert warmed == [(api_keys.METADATA, version) for version in range(14)]
