"""What a controller serves from, once its log is open."""

from attrs import define

from metalog.log import Log
from nodes.controller.fetching import Fetching
from nodes.controller.quorum import Quorum
from nodes.controller.quorum_controller import QuorumController
from nodes.controller.snapshots import SnapshotFetching
from nodes.controller.token_writer import TokenWriter


@define(eq=False, kw_only=True)
class Serving:
    """An open log and those who serve it. `controller` and `tokens` are None until all of the log is replayed."""

    log: Log
    quorum: Quorum
    fetching: Fetching
    snapshots: SnapshotFetching
    controller: QuorumController | None = None
    tokens: TokenWriter | None = None
