"""AlterUserScramCredentials (KIP-554)."""

from datetime import timedelta
from typing import Any, Protocol

from attrs import define

from aclog.authorizer.acl import AclOperation
from aclog.credentials.scram_control import ScramDeletion, ScramResult, ScramUpsertion, alter_credentials
from aclog.nodes.apis.authorization import AuthHelper
from aclog.nodes.apis.request import Request
from aclog.nodes.controller.write_path.write_event import ControllerResult, Operation
from aclog.nodes.offload import MANY, committed, offload_if
from aclog.nodes.wire.api_keys import ALTER_USER_SCRAM_CREDENTIALS
from aclog.nodes.wire.message_builder import build, build_response
from aclog.snapshots.features import METADATA_VERSION
from aclog.snapshots.image import Image

SCRAM_SINCE = 11
"""The feature level of metadata.version 3.5-IV2, the first with SCRAM credentials."""


class Writer(Protocol):
    """The write path that ScramApis needs (QuorumController)."""

    def write(self, operation: Operation[Any], *, offload: bool = False) -> Any:
        """See QuorumController.write."""
        ...


@define
class ScramApis:
    """Changes SCRAM credentials through the controller."""

    auth: AuthHelper
    controller: Writer

    async def alter(self, request: Request) -> bytes:
        """Alter credentials, one result per user; responds once the records are committed."""
        self.auth.authorize_cluster_operation(request, AclOperation.ALTER)
        many = len(request.body.deletions) + len(request.body.upsertions) > MANY
        deletions, upsertions = await offload_if(many, _wanted, request.body)

        def operation(image: Image) -> ControllerResult[tuple[ScramResult, ...]]:
            """See Operation."""
            level = image.features.level(METADATA_VERSION)
            supported = level == 0 or level >= SCRAM_SINCE
            altered = alter_credentials(image.scram, deletions, upsertions, supported=supported)
            return ControllerResult(records=altered.records, response=altered.results)

        results: tuple[ScramResult, ...] = await committed(self.controller.write(operation, offload=many))
        return await offload_if(many, _encoded, request.header.api_version, results)


def _wanted(body: Any) -> tuple[list[ScramDeletion], list[ScramUpsertion]]:
    deletions = [ScramDeletion(name=each.name, mechanism=each.mechanism) for each in body.deletions]
    upsertions = [
        ScramUpsertion(
            name=each.name,
            mechanism=each.mechanism,
            iterations=each.iterations,
            salt=bytes(each.salt),
            salted_password=bytes(each.salted_password),
        )
        for each in body.upsertions
    ]
    return deletions, upsertions


def _encoded(version: int, results: tuple[ScramResult, ...]) -> bytes:
    return build_response(
        ALTER_USER_SCRAM_CREDENTIALS,
        version,
        throttle_time=timedelta(0),
        results=tuple(
            build(
                ALTER_USER_SCRAM_CREDENTIALS,
                version,
                "response",
                "AlterUserScramCredentialsResult",
                user=each.user,
                error_code=each.error_code,
                error_message=each.error_message,
            )
            for each in results
        ),
    )
