"""Each right in the table of docs/operations.md: who has it and nothing else is served, who has all others is not."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from aclog.authorizer.audit import API_NAMES, api_name
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.metalog.errors import DecodeError
from aclog.protocol import api_keys
from aclog.protocol.messages import build
from tests.docs.api_rights import BROKER, CONTROLLER, NEEDS, NOT_SERVED, SERVED, versions
from tests.support.nodes.api_cluster import OPERATIONS, Cluster, codes
from tests.support.nodes.api_requests import RequestValues, embedded, envelope
from tests.support.nodes.node_requests import frame, session
from tests.support.nodes.served_listener import CONTROLLER_APIS, SASL, run

LOGINS = {api_keys.SASL_HANDSHAKE, api_keys.API_VERSIONS, api_keys.SASL_AUTHENTICATE}
HOLDERS = {api_keys.RENEW_DELEGATION_TOKEN, api_keys.EXPIRE_DELEGATION_TOKEN}
OLDEST = {
    api_keys.FETCH: 13,
    api_keys.METADATA: 4,  # the first that need not ask for the creation of topics
    api_keys.CREATE_DELEGATION_TOKEN: 3,  # the first that can name another owner
}
"""The oldest version that works, or that needs the right, where that is not the oldest served."""
IMPLIED_BY = {
    AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}
SERVED_CODES = {
    (BROKER, api_keys.METADATA): {3},  # there are no topics here
    (CONTROLLER, api_keys.DESCRIBE_CLUSTER, 0): {42},  # version 0 can ask for brokers only
    (CONTROLLER, api_keys.BROKER_REGISTRATION, 0): {119},  # older than log directories, without which nobody registers
}
"""The error codes in the answer to a valid request where that is not 0."""


def ends(listener, api_key):
    """The oldest version of interest, and the newest."""
    api = versions(listener, api_key)
    return sorted({OLDEST.get(api_key, api.min_version), api.max_version})


CASES = [
    pytest.param(
        listener, api_key, version, right, id=f"{listener}-{api_name(api_key)}-{version}-{right.operation.name}"
    )
    for listener, needs in NEEDS.items()
    for api_key, need in needs.items()
    for right in need.rights
    for version in ends(listener, api_key)
]


@pytest.fixture(scope="module")
def event_loop_runner():
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def cluster(event_loop_runner, tmp_path_factory):
    stack = AsyncExitStack()
    running = Cluster.running(Path(tmp_path_factory.mktemp("rights")) / "data")
    yield event_loop_runner.run(stack.enter_async_context(running))
    event_loop_runner.run(stack.aclose())


def served(listener, api_key, version, found):
    expected = SERVED_CODES.get((listener, api_key), SERVED_CODES.get((listener, api_key, version), set()))
    return codes(found) == expected and (api_key != api_keys.DESCRIBE_DELEGATION_TOKEN or bool(found.tokens))


def refused(need, found):
    return not codes(found) and not found.tokens if need.refused is None else codes(found) == {need.refused}


@pytest.mark.parametrize(("listener", "api_key", "version", "right"), CASES)
def test_the_right_alone_is_enough_and_needed(event_loop_runner, cluster, listener, api_key, version, right):
    need = NEEDS[listener][api_key]
    accepted = {(each.operation, each.resource_type) for each in need.rights}
    accepted |= {(other, kind) for operation, kind in accepted for other in IMPLIED_BY.get(operation, ())}
    others = [(op, kind) for kind in (*ResourceType,)[2:] for op in OPERATIONS if (op, kind) not in accepted]

    async def scenario():
        may = await cluster.user_with([(right.operation, right.resource_type)])
        may_not = await cluster.user_with(others)

        async def asked(user):
            message = await cluster.request(listener, api_key, version)
            return await cluster.ask(listener, api_key, version, message, user)

        assert served(listener, api_key, version, await asked(may))
        assert served(listener, api_key, version, await asked("admin"))
        assert refused(need, await asked(may_not))

    event_loop_runner.run(scenario())


@pytest.mark.parametrize("version", [0, 13])
def test_a_topic_that_would_be_created_needs_create(event_loop_runner, cluster, version):
    asked = {"topics": (build(api_keys.METADATA, version, "request", "MetadataRequestTopic", name="orders"),)}
    message = build(api_keys.METADATA, version, "request", **asked, allow_auto_topic_creation=True)
    create, describe = AclOperation.CREATE, (AclOperation.DESCRIBE, ResourceType.TOPIC)
    others = [(operation, kind) for kind in (*ResourceType,)[2:] for operation in OPERATIONS - {create}]

    async def scenario():
        for rules, error_codes in (
            ([describe, (create, ResourceType.TOPIC)], {3}),
            ([describe, (create, ResourceType.CLUSTER)], {3}),
            ([(create, ResourceType.TOPIC), (create, ResourceType.CLUSTER)], {29}),
            (others, {29}),
        ):
            user = await cluster.user_with(rules)
            assert codes(await cluster.ask(BROKER, api_keys.METADATA, version, message, user)) == error_codes

    event_loop_runner.run(scenario())


@pytest.mark.parametrize("listener", [BROKER, CONTROLLER])
def test_who_may_renew_and_expire_a_token(event_loop_runner, cluster, listener):
    async def scenario():
        everything = await cluster.user_with((op, kind) for kind in (*ResourceType,)[2:] for op in OPERATIONS)
        for api_key in sorted(HOLDERS):
            for version in ends(listener, api_key):
                message = await cluster.request(listener, api_key, version)
                assert codes(await cluster.ask(listener, api_key, version, message, "owner")) == set()
                for other in (everything, "admin"):
                    assert codes(await cluster.ask(listener, api_key, version, message, other)) == {63}

    event_loop_runner.run(scenario())


def test_who_needs_no_right(event_loop_runner, cluster):
    async def scenario():
        nobody = await cluster.user_with([])

        async def asked(listener, api_key, version, user=nobody):
            return await cluster.ask(
                listener, api_key, version, await cluster.request(listener, api_key, version), user
            )

        for version in ends(BROKER, api_keys.DESCRIBE_CLUSTER):
            assert codes(await asked(BROKER, api_keys.DESCRIBE_CLUSTER, version)) == set()
        for listener in (BROKER, CONTROLLER):
            assert codes(await asked(listener, api_keys.CREATE_DELEGATION_TOKEN, 1)) == set()  # for itself
        assert (await asked(BROKER, api_keys.METADATA, 13)).brokers
        assert (await asked(BROKER, api_keys.DESCRIBE_DELEGATION_TOKEN, 3, "owner")).tokens
        for api_key in (api_keys.LIST_GROUPS, api_keys.ALTER_CLIENT_QUOTAS):
            version = versions(BROKER, api_key).max_version
            for user in (nobody, "admin"):
                assert codes(await asked(BROKER, api_key, version, user)) == {35}

    event_loop_runner.run(scenario())


@pytest.mark.parametrize("listener", [BROKER, CONTROLLER])
@pytest.mark.parametrize(
    ("kind", "name", "keys"),
    [(4, "1", None), (4, "1", ("super.users", "log.dirs")), (4, "5", ("super.users",)), (2, "1", ("super.users",))],
)
def test_no_other_configuration_is_told(event_loop_runner, cluster, listener, kind, name, keys):
    asked = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    told = {"resource_type": 4, "resource_name": "1", "configuration_keys": ("super.users",)}
    resources = tuple(build(32, 4, "request", "DescribeConfigsResource", **each) for each in (told, asked))

    async def scenario():
        nobody = await cluster.user_with([])
        for user in (nobody, "admin"):
            found = await cluster.ask(listener, 32, 4, build(32, 4, "request", resources=resources), user)
            assert codes(found) == {35}
            assert not any(each.configs for each in found.results)

    event_loop_runner.run(scenario())


def test_an_embedded_request_needs_the_right_of_its_principal(event_loop_runner, cluster):
    async def scenario():
        sender = await cluster.user_with([(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)])
        for user, error_codes in (("admin", set()), (sender, {31})):
            message = envelope(user, RequestValues(number=0, hmac=b""))
            found = await cluster.ask(CONTROLLER, api_keys.ENVELOPE, 0, message, sender)
            assert codes(embedded(found)) == error_codes

    event_loop_runner.run(scenario())


@pytest.mark.parametrize("apis", [SERVED[BROKER], CONTROLLER_APIS], ids=["broker", "controller"])
def test_the_login_needs_no_right(apis):
    async def scenario(listener):
        client = await listener.connect()
        assert (await client.versions()).error_code == 0
        assert (await client.log_in()).error_code == 0

    run(scenario, SASL, apis=apis)


def test_every_served_request_has_its_need():
    for listener, apis in SERVED.items():
        assert {api.api_key for api in apis} == set(NEEDS[listener])
        proved = {case.values[1] for case in CASES if case.values[0] == listener}
        free = {api_keys.DESCRIBE_CLUSTER} if listener == BROKER else set()
        unsupported = {api_keys.LIST_GROUPS, api_keys.ALTER_CLIENT_QUOTAS}
        assert set(NEEDS[listener]) - proved <= LOGINS | HOLDERS | free | unsupported


@pytest.mark.parametrize("listener", [BROKER, CONTROLLER])
def test_the_rest_of_kip_11_is_not_served(event_loop_runner, cluster, listener):
    for each in NOT_SERVED:
        for name in each.names:
            api_key = API_NAMES.index(name)
            if listener in each.except_at:
                continue
            assert api_key not in NEEDS[listener]
            rest = frame(api_keys.LIST_GROUPS, 0, build(api_keys.LIST_GROUPS, 0, "request"))[4:]
            dispatched = cluster.dispatchers[listener].handle(bytes((0, api_key, 0, 0)) + rest, session())
            with pytest.raises(DecodeError, match=r"not served on this listener|unknown API key"):
                event_loop_runner.run(dispatched)
