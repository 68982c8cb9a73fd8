"""UnregisterController on a controller of Kafka 4.4 (KIP-1312)."""

from attrs import evolve

from aclog.authorizer.settings import Generation
from aclog.metalog.codec import encode_record
from aclog.metalog.filelog import open_log
from aclog.metalog.records import FeatureLevelRecord
from aclog.protocol.api_keys import UNREGISTER_CONTROLLER
from aclog.protocol.messages import build, decode_response
from aclog.protocol.responses import CONTROLLER_APIS, served_by
from aclog.server.apis.acls import AuthHelper
from aclog.server.controller.activation import LOG_DIRECTORY
from aclog.server.controller.apis import ControllerApis
from aclog.server.network.dispatch import Dispatcher
from aclog.server.telemetry import Metrics
from aclog.snapshots.publisher import recover
from tests.support.nodes.controllers import formatted, running
from tests.support.nodes.node_requests import frame, session

REGISTRATION = b"\1\x1b\0" + (2).to_bytes(4) + b"rest"


async def test_a_request_to_unregister_a_controller(tmp_path):
    config = evolve(formatted(tmp_path), generation=Generation.V4_4)
    async with running(config):
        pass
    with open_log(tmp_path / LOG_DIRECTORY, force=True) as log:
        level = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=33))
        log.append([level, REGISTRATION], timestamp=1).result(60)
    async with running(config) as server:
        auth = AuthHelper(server.authorizer)
        apis = ControllerApis(auth=auth, node_id=1, serving=lambda: server.serving, generation=Generation.V4_4)
        dispatcher = Dispatcher(
            handlers=apis.handlers(),
            apis=served_by(CONTROLLER_APIS, Generation.V4_4),
            metrics=Metrics(process=False),
        )

        async def code(controller_id, user="admin"):
            """The error code of the response."""
            message = build(UNREGISTER_CONTROLLER, 0, "request", controller_id=controller_id)
            header, body = await dispatcher.handle(frame(UNREGISTER_CONTROLLER, 0, message), session(user))
            assert len(header) == 5
            return decode_response(UNREGISTER_CONTROLLER, 0, body, 0, whole=True).error_code

        assert [await code(2, "alice"), await code(1), await code(7), await code(2), await code(2)] == [
            *(31, 42, 136, 0, 136)
        ]
        assert not server.publisher.current.opaque.has_controller(2)
    assert not recover(tmp_path / LOG_DIRECTORY).image.opaque.has_controller(2)
