"""aclog.kafka.version=4.4: the features that a node supports, its APIs, and what CreateAcls refuses."""

import pytest

from aclog.authorizer.settings import Generation
from aclog.config.server_properties import parse_config
from aclog.metalog.errors import ConfigError, NewerKafkaError
from aclog.metalog.records import FeatureLevelRecord, OpaqueRecord, UnregisterControllerRecord
from aclog.protocol.api_keys import API_VERSIONS, UNREGISTER_CONTROLLER
from aclog.protocol.headers import RequestError, decode_header
from aclog.protocol.messages import build, decode_response, encode_request
from aclog.protocol.responses import BROKER_APIS, CONTROLLER_APIS, served_by
from aclog.server.apis.acls import AuthHelper
from aclog.server.controller.apis import ControllerApis
from aclog.server.controller.registrations import unregister_controller
from aclog.server.feature_levels import supported_features
from aclog.server.network.dispatch import Dispatcher, NodeIdentity
from aclog.server.node import authorizer_of
from aclog.server.telemetry import Metrics
from aclog.snapshots.applier import Delta
from aclog.snapshots.image import Image, NewerKafka, Provenance
from tests.support.nodes.node_properties import COMBINED, changed

STANDARD = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
REGISTRATION = b"\1\x1b\0" + (2).to_bytes(4) + b"rest"


def config(**more: str):
    keys = {key.replace("_", "."): value for key, value in more.items()}
    return parse_config(changed(COMBINED | STANDARD, keys), "it", host_name=lambda: "here")


@pytest.mark.parametrize(
    ("keys", "generation", "cidr"),
    [
        ({}, Generation.V4_3, False),
        ({"aclog_kafka_version": "4.3.1"}, Generation.V4_3, False),
        ({"aclog_kafka_version": "4.4"}, Generation.V4_4, True),
        ({"aclog_kafka_version": " 4.4.0 "}, Generation.V4_4, True),
        ({"aclog_kafka_version": "4.4", "aclog_cidr_enabled": "true"}, Generation.V4_4, True),
        ({"aclog_cidr_enabled": "true"}, Generation.V4_3, True),
    ],
)
def test_the_property(keys, generation, cidr):
    found = config(**keys)
    assert (found.generation, found.cidr) == (generation, cidr)
    assert authorizer_of(found, None).cidr is cidr


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ({"aclog_kafka_version": "4.5"}, r"^it: aclog\.kafka\.version.*Kafka 4\.5 is not supported"),
        ({"aclog_kafka_version": "new"}, r"^it: aclog\.kafka\.version.*not a version of Kafka"),
        ({"aclog_kafka_version": "4.4", "aclog_cidr_enabled": "false"}, r"aclog\.cidr\.enabled"),
    ],
)
def test_what_is_wrong(keys, what):
    with pytest.raises(ConfigError, match=what):
        config(**keys)


def test_features():
    older, newer = (supported_features(each, cidr=False) for each in (Generation.V4_3, Generation.V4_4))
    assert (older["metadata.version"], older["share.version"]) == ((7, 30), (0, 1))
    assert (newer["metadata.version"], newer["share.version"]) == ((7, 33), (0, 2))
    assert {name: level for name, level in older.items() if newer[name] == level}.keys() == older.keys() - {
        "metadata.version",
        "share.version",
    }


def test_levels_that_the_node_does_not_support():
    record = FeatureLevelRecord(name="metadata.version", feature_level=31)
    NewerKafka(newest=33).check_feature(record, 7)
    with pytest.raises(NewerKafkaError, match=r"metadata\.version 31 .* at most 30, or aclog\.kafka\.version=4\.4 in"):
        NewerKafka(newest=30).check_feature(record, 7)
    with pytest.raises(NewerKafkaError, match=r"metadata\.version 34 of a newer Kafka: expected at most 33$"):
        NewerKafka().check_feature(FeatureLevelRecord(name="metadata.version", feature_level=34), 7)


@pytest.mark.parametrize("apis", [BROKER_APIS, CONTROLLER_APIS])
def test_apis(apis):
    assert served_by(apis, Generation.V4_3) == apis
    newer = {(each.api_key, each.min_version, each.max_version) for each in served_by(apis, Generation.V4_4)}
    older = {(each.api_key, each.min_version, each.max_version) for each in apis}
    assert newer - older == {(API_VERSIONS, 0, 5), (UNREGISTER_CONTROLLER, 0, 0)}
    assert older - newer == {(API_VERSIONS, 0, 4)}


def test_the_controller_handles_what_its_generation_has():
    def keys(generation):
        apis = ControllerApis(auth=AuthHelper(None), node_id=1, serving=lambda: None, generation=generation)
        return set(apis.handlers())

    assert keys(Generation.V4_4) - keys(Generation.V4_3) == {UNREGISTER_CONTROLLER}


def asked(cluster_id, node_id, *, identity):
    """The answer of a listener of Kafka 4.4 to ApiVersions in version 5."""
    handlers = dict.fromkeys((each.api_key for each in BROKER_APIS), None)
    apis = served_by(BROKER_APIS, Generation.V4_4)
    dispatcher = Dispatcher(handlers=handlers, apis=apis, metrics=Metrics(process=False), identity=identity)
    message = build(
        *(API_VERSIONS, 5, "request"),
        client_software_name="a", client_software_version="1", cluster_id=cluster_id, node_id=node_id,
    )  # fmt: skip
    frame = bytes.fromhex("0012 0005 00000007 ffff 00") + encode_request(message)
    header, position = decode_header(frame)
    misdirected = dispatcher._misdirected(header, frame, position)
    body = misdirected or dispatcher.api_versions(header, frame, position)[0]
    return decode_response(API_VERSIONS, 5, body, 0, whole=True), len(body)


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "code"),
    [(None, -1, 0), (None, 9, 0), ("here", 1, 0), ("here", -1, 129), ("here", 2, 129), ("there", 1, 129)],
)
def test_a_client_that_means_another_cluster_or_node_is_told(cluster_id, node_id, code):
    found, size = asked(cluster_id, node_id, identity=NodeIdentity(cluster_id="here", node_id=1))
    assert found.error_code == code
    assert (size == 8) is bool(code), "as Kafka: 12 bytes with the correlation id"
    assert asked(cluster_id, node_id, identity=None)[0].error_code == 0


def image_of(level, *values):
    delta = Delta(newer=NewerKafka())
    delta.replay(FeatureLevelRecord(name="metadata.version", feature_level=level), 0)
    for value in values:
        delta.replay(OpaqueRecord(api_key=27, version=0, value=value), 1)
    return delta.apply(Image.EMPTY, Provenance())


def test_a_controller_is_unregistered():
    record = unregister_controller(image_of(33, REGISTRATION), 2, active=1)
    assert record == UnregisterControllerRecord(controller_id=2)


@pytest.mark.parametrize(
    ("image", "controller_id", "code"),
    [(image_of(32, REGISTRATION), 2, 35), (image_of(33, REGISTRATION), 1, 42), (image_of(33), 2, 136)],
)
def test_what_unregistering_refuses(image, controller_id, code):
    with pytest.raises(RequestError) as refused:
        unregister_controller(image, controller_id, active=1)
    assert refused.value.code == code
