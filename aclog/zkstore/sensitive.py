"""What only the brokers' own login may read, where nodes belong to it (kafka.zk.ZkData.SensitiveRootPaths)."""

from aclog.zkstore.scram_config import USERS_PATH
from aclog.zkstore.token_json import TOKENS_PATH

SENSITIVE_ROOTS = (USERS_PATH, TOKENS_PATH)
"""They and all below: SCRAM keys, and who may act for whom."""


def is_sensitive(path: str) -> bool:
    """Whether a node is kept from readers."""
    return any(path == root or path.startswith(f"{root}/") for root in SENSITIVE_ROOTS)
