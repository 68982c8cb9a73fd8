"""The key from which nodes derive the salts that they tell for users who do not exist.

All nodes of a cluster must tell the same salt for a user, or else whoever asks two of them knows that there is no such
user. So the key comes from what all of them have: the directory ids of the quorum's voters, which are random and which
DescribeQuorum shows only to those who may list the users anyway, and the cluster id. No password, SCRAM key or other
secret goes into it that a person may have chosen: salts are told to everyone, so that it could be guessed offline.

Where the log names no voters (a static quorum, or a log on a topic) only the cluster id is left, which every client
with a login can learn: `aclog.scram.decoy.secret` then makes up for it.
"""

import hmac

from aclog.credentials.scram import ScramMechanism
from aclog.credentials.scram_keys import kafka_salt
from aclog.metalog.control_records import KRaftVoters


def decoy_key(cluster_id: str, voters: KRaftVoters | None, secret: str | None) -> bytes:
    """Return 64 bytes that are the same for the same arguments; with a secret, the voters are not read."""
    ids = [] if voters is None or secret else sorted(each.voter_directory_id.bytes for each in voters.voters)
    common = b"\0".join((b"SCRAM decoys", cluster_id.encode(), b"".join(ids)))
    return hmac.digest((secret or "").encode(), common, "sha512")


def decoy_salt(key: bytes, mechanism: ScramMechanism, user: str) -> bytes:
    """Return the salt of a user who does not exist, in the style of Kafka's tools; delegation tokens have it anyway."""
    return kafka_salt(hmac.digest(key, f"{mechanism.mechanism_name}\0{user}".encode(), "sha512"))
