"""The state that a controller serves requests from once its log is open."""

from collections.abc import Callable

from attrs import define

from aclog.authorizer.errors import AuthorizerNotReadyError
from aclog.metalog.log import LogReader
from aclog.nodes.apis.request import RequestError
from aclog.nodes.controller.apis.fetch import FetchHandler
from aclog.nodes.controller.apis.fetch_snapshot import FetchSnapshotHandler, OpenCheckpoints
from aclog.nodes.controller.apis.quorum_state import Quorum
from aclog.nodes.controller.write_path.broker_writer import BrokerWriter
from aclog.nodes.controller.write_path.quorum_controller import QuorumController
from aclog.nodes.controller.write_path.token_writer import TokenWriter
from aclog.nodes.wire.error_codes import NOT_CONTROLLER


@define(eq=False, kw_only=True)
class ServingState:
    """An open log and the objects that serve it.

    `controller`, `tokens` and `brokers` are None unless writes are accepted: after the log is replayed completely and,
    if several controllers share it, while this one is active.
    """

    log: LogReader
    replayed: Callable[[], bool]
    """Whether the image covers everything that was committed when this node started."""
    quorum: Quorum
    fetching: FetchHandler
    snapshots: FetchSnapshotHandler
    controller: QuorumController | None = None
    tokens: TokenWriter | None = None
    brokers: BrokerWriter | None = None

    @classmethod
    def of(
        cls, log: LogReader, quorum: Quorum, files: OpenCheckpoints, *, replayed: Callable[[], bool]
    ) -> "ServingState":
        """Return the state of an open log that does not accept writes yet."""
        return cls(
            log=log,
            replayed=replayed,
            quorum=quorum,
            fetching=FetchHandler(log=log, quorum=quorum),
            snapshots=FetchSnapshotHandler(quorum=quorum, files=files),
        )

    def active(self) -> QuorumController:
        """Return the QuorumController of this node.

        Raises:
            AuthorizerNotReadyError: The log is not replayed yet.
            RequestError: NOT_CONTROLLER: this node is not active; another one may be.

        """
        self.check_replayed()
        if self.controller is None:
            raise RequestError(NOT_CONTROLLER, "This node is not the active controller.")
        return self.controller

    def check_replayed(self) -> None:
        """Require a complete image.

        Raises:
            AuthorizerNotReadyError: The log is not replayed yet.

        """
        if not self.replayed():
            raise AuthorizerNotReadyError("the controller has not replayed its log yet")
