"""The salts of unknown users: the same wherever the same is known, and nowhere else."""

from uuid import UUID

from aclog.metalog.control_records import KRaftVoters, SupportedVersions, Voter
from aclog.security.sasl import decoy_key


def voters(*numbers):
    versions = SupportedVersions(min_supported_version=0, max_supported_version=1)
    return KRaftVoters(
        voters=tuple(
            Voter(voter_id=each, voter_directory_id=UUID(int=each), endpoints=(), kraft_version_feature=versions)
            for each in numbers
        )
    )


def test_the_key_follows_from_cluster_and_voters():
    keys = [
        decoy_key("c", voters(1, 2), None),
        decoy_key("d", voters(1, 2), None),
        decoy_key("c", voters(1, 3), None),
        decoy_key("c", None, None),
        decoy_key("c", None, "a secret"),
        decoy_key("c", None, "another"),
    ]
    assert len(set(keys)) == len(keys)
    assert decoy_key("c", voters(2, 1), None) == keys[0], "in any order"


def test_with_a_secret_a_change_of_voters_changes_nothing():
    assert decoy_key("c", voters(1), "a secret") == decoy_key("c", voters(2), "a secret")
