"""The voter of `--initial-controllers`: `id@host:port:directory id` (org.apache.kafka.raft.DynamicVoter)."""

import re
from uuid import UUID

from attrs import frozen

from aclog.metalog.control_records import Endpoint, KRaftVoters, SupportedVersions, Voter
from aclog.metalog.errors import ConfigError
from aclog.metalog.uuids import parse_uuid
from aclog.nodes.config.node_config import HostPort

_VOTER = re.compile(r"([0-9]{1,10})@(?:\[([^\]]+)\]|([^:\[\]]+)):([0-9]{1,5}):(.+)")
_MAX_PORT = 65_535
_MAX_ID = (1 << 31) - 1
_SUPPORTED_KRAFT_VERSIONS = SupportedVersions(min_supported_version=0, max_supported_version=1)


@frozen(kw_only=True)
class InitialVoter:
    """A quorum's only voter: its node id, its metadata log directory's id, and its address."""

    node_id: int
    address: HostPort
    directory_id: UUID

    def as_voters(self, listener_name: str) -> KRaftVoters:
        """Return the VotersRecord of a quorum of this voter; its endpoint is the first controller listener."""
        endpoint = Endpoint(name=listener_name.upper(), host=self.address.host, port=self.address.port)
        voter = Voter(
            voter_id=self.node_id,
            voter_directory_id=self.directory_id,
            endpoints=(endpoint,),
            kraft_version_feature=_SUPPORTED_KRAFT_VERSIONS,
        )
        return KRaftVoters(voters=(voter,))


def parse_initial_voter(text: str) -> InitialVoter:
    """Parse the one voter.

    Raises:
        ConfigError: malformed, or several voters.

    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if len(parts) > 1:
        raise ConfigError(
            f"--initial-controllers: {len(parts)} voters: expected one; a quorum of several voters is not supported"
        )
    found = _VOTER.fullmatch(parts[0]) if parts else None
    if found is None or int(found[1]) > _MAX_ID or int(found[4]) > _MAX_PORT:
        raise ConfigError(f"--initial-controllers {text!r}: expected <id>@<host>:<port>:<directory id>")
    return InitialVoter(
        node_id=int(found[1]),
        address=HostPort(host=found[2] or found[3], port=int(found[4])),
        directory_id=parse_uuid(found[5]),
    )
