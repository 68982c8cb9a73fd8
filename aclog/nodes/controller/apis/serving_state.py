"""What a controller serves from, once its log is open."""

from collections.abc import Callable

from attrs import define

from aclog.authorizer.errors import AuthorizerNotReadyError
from aclog.metalog.log import LogReader
from aclog.nodes.apis.request import RequestError
from aclog.nodes.controller.apis.fetch import Fetching
from aclog.nodes.controller.apis.fetch_snapshot import SnapshotFetching
from aclog.nodes.controller.apis.quorum_state import Quorum
from aclog.nodes.controller.write_path.quorum_controller import QuorumController
from aclog.nodes.controller.write_path.token_writer import TokenWriter
from aclog.nodes.wire.error_codes import NOT_CONTROLLER


@define(eq=False, kw_only=True)
class ServingState:
    """An open log and those who serve it. `controller` and `tokens` are None until changes are accepted.

    That is when all of the log is replayed, and, where several controllers share it, while this one is active.
    """

    log: LogReader
    replayed: Callable[[], bool]
    """Whether the image holds all that was committed when this node started."""
    quorum: Quorum
    fetching: Fetching
    snapshots: SnapshotFetching
    controller: QuorumController | None = None
    tokens: TokenWriter | None = None

    def active(self) -> QuorumController:
        """Who decides on changes.

        Raises:
            AuthorizerNotReadyError: the log is not replayed yet.
            RequestError: NOT_CONTROLLER: another node may be active, this one is not.

        """
        self.check_replayed()
        if self.controller is None:
            raise RequestError(NOT_CONTROLLER, "This node is not the active controller.")
        return self.controller

    def check_replayed(self) -> None:
        """Stop before there is an image to answer from.

        Raises:
            AuthorizerNotReadyError: the log is not replayed yet.

        """
        if not self.replayed():
            raise AuthorizerNotReadyError("the controller has not replayed its log yet")
