"""The `quorum-state` file: the epoch of a KRaft quorum, its leader and this node's vote, as JSON.

Mirrors Kafka's `FileQuorumStateStore` and `QuorumStateData`: version 1 if the voters are in the log (kraft.version 1),
version 0, with the voters in the file, if they are in the configuration.
"""

import json
from pathlib import Path
from typing import cast

from attrs import evolve, frozen

from aclog.metalog.errors import DecodeError
from aclog.metalog.filelog.filesystem import read_small, replace_durably

QUORUM_STATE_FILE = "quorum-state"
_MAX_INT32 = 2**31 - 1
_NO_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"


@frozen(kw_only=True)
class QuorumState:
    """The content of the file. `voters` (ids) is None in version 1; an id of -1 means none."""

    leader_id: int
    leader_epoch: int
    voted_id: int = -1
    voted_directory_id: str = _NO_DIRECTORY
    voters: tuple[int, ...] | None = None

    def led_by(self, leader_id: int, leader_epoch: int) -> "QuorumState":
        """Return the state in which `leader_id` leads a new epoch and no vote has been cast."""
        return evolve(
            self, leader_id=leader_id, leader_epoch=leader_epoch, voted_id=-1, voted_directory_id=_NO_DIRECTORY
        )


def read_quorum_state(directory: Path) -> QuorumState | None:
    """Return the quorum state of a log directory; None if there is none.

    Raises:
        DecodeError: the file is not in Kafka's format.
        LogError: it cannot be read.

    """
    path = directory / QUORUM_STATE_FILE
    data = read_small(path)
    if data is None:
        return None
    try:
        return decode_quorum_state(data)
    except DecodeError as error:
        raise error.at(path=str(path)) from error


def write_quorum_state(directory: Path, state: QuorumState) -> None:
    """Replace the file durably.

    Raises:
        LogError: the disk is full or fails.

    """
    replace_durably(directory / QUORUM_STATE_FILE, encode_quorum_state(state))


def encode_quorum_state(state: QuorumState) -> bytes:
    """Return the file's content: keys in Kafka's order, without whitespace."""
    led: dict[str, object] = {"leaderId": state.leader_id, "leaderEpoch": state.leader_epoch, "votedId": state.voted_id}
    if state.voters is None:
        content = {**led, "votedDirectoryId": state.voted_directory_id, "data_version": 1}
    else:
        voters = [{"voterId": voter} for voter in state.voters]
        # appliedOffset and an empty clusterId are what Kafka writes in version 0.
        content = {"clusterId": "", **led, "appliedOffset": 0, "currentVoters": voters, "data_version": 0}
    return json.dumps(content, separators=(",", ":")).encode("ascii")


def decode_quorum_state(data: bytes) -> QuorumState:
    """Parse the file's content.

    Raises:
        DecodeError: not JSON, an unknown version, or a key that is missing or of the wrong type.

    """
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DecodeError("not JSON") from error
    if not isinstance(content, dict):
        raise DecodeError("not a JSON object")
    version = _int(content, "data_version")
    if version not in {0, 1}:
        raise DecodeError(f"unknown data_version {version}: expected 0 or 1")
    return QuorumState(
        leader_id=_int(content, "leaderId"),
        leader_epoch=_int(content, "leaderEpoch"),
        voted_id=_int(content, "votedId"),
        voted_directory_id=str(content.get("votedDirectoryId", _NO_DIRECTORY)),
        voters=None if version == 1 else _voters(content),
    )


def _voters(content: dict[str, object]) -> tuple[int, ...]:
    voters = content.get("currentVoters")
    if not isinstance(voters, list) or not all(isinstance(voter, dict) for voter in voters):
        raise DecodeError("currentVoters is not a list of objects")
    return tuple(_int(cast("dict[str, object]", voter), "voterId") for voter in voters)


def _int(content: dict[str, object], key: str) -> int:
    value = content.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not -1 <= value <= _MAX_INT32:
        raise DecodeError(f"{key} is missing or not an integer from -1 to {_MAX_INT32}")
    return value
