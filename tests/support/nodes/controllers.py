"""Controllers on directories as `format` leaves them."""

import shutil
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

from attrs import evolve

from aclog.authorizer.standard import StandardAuthorizer
from aclog.config.node_config import CheckpointPolicy, HostPort, NodeConfig, Role
from aclog.metalog.control_records import Endpoint, KRaftVoters, SupportedVersions, Voter
from aclog.server.apis.acls import AuthHelper
from aclog.server.controller.activation import LOG_DIRECTORY
from aclog.server.controller.apis import ControllerApis
from aclog.server.controller.controller_server import ControllerServer
from aclog.server.controller.topic_controller import TopicController
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.image import Image, Provenance
from tests.support.nodes.node_requests import answer, request

BOOTSTRAP = Path(__file__).parents[2] / "data" / "kafka-4.3.1-small" / "bootstrap.checkpoint"
DIRECTORY_ID = UUID(int=77)


def formatted(directory: Path, *, kraft_version=1) -> NodeConfig:
    """What `kafka-storage format --standalone` leaves, but for meta.properties."""
    (directory / LOG_DIRECTORY).mkdir(parents=True)
    shutil.copy(BOOTSTRAP, directory / "bootstrap.checkpoint")
    voter = Voter(
        voter_id=1,
        voter_directory_id=DIRECTORY_ID,
        endpoints=(Endpoint(name="CONTROLLER", host="localhost", port=9093),),
        kraft_version_feature=SupportedVersions(min_supported_version=0, max_supported_version=1),
    )
    voters = KRaftVoters(voters=(voter,)) if kraft_version else None
    provenance = Provenance(end_offset=0, epoch=0, timestamp=0, kraft_version=kraft_version, voters=voters)
    write_checkpoint(Image.EMPTY.at(provenance), directory / LOG_DIRECTORY)
    return directory_config(directory)


def directory_config(directory: Path) -> NodeConfig:
    """The configuration of a controller on a formatted directory."""
    return NodeConfig(
        roles=frozenset({Role.CONTROLLER}),
        node_id=1,
        metadata_log_dir=directory,
        listeners=(),
        controller_listener_names=("CONTROLLER",),
        checkpoints=CheckpointPolicy(segment_bytes=8 << 20),
    )


def with_policy(config: NodeConfig, **policy) -> NodeConfig:
    return evolve(config, checkpoints=CheckpointPolicy(**policy))


def controller_server(config: NodeConfig, **options) -> ControllerServer:
    authorizer = StandardAuthorizer()
    authorizer.configure({"super.users": "User:admin"})
    return ControllerServer(
        config=config,
        cluster_id="a-cluster",
        directory_id=DIRECTORY_ID,
        authorizer=authorizer,
        advertised={"CONTROLLER": HostPort(host="c1", port=9093)},
        **options,
    )


@asynccontextmanager
async def running(config: NodeConfig, **options):
    server = controller_server(config, **options)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def handlers_of(server: ControllerServer | TopicController):
    contested = isinstance(server, TopicController)
    auth = AuthHelper(server.authorizer)
    return ControllerApis(
        auth=auth, node_id=server.config.node_id, serving=lambda: server.serving, contested=contested
    ).handlers()


async def call(server: ControllerServer, api_key, version, message, user="admin"):
    """The decoded answer of a handler."""
    body = await handlers_of(server)[api_key](request(api_key, version, message, user=user))
    return answer(api_key, version, body)
