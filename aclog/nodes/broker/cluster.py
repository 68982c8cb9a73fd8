"""What a broker tells clients of the cluster: itself, at the address of the listener that they came by."""

from collections.abc import Mapping

from attrs import field, frozen

from aclog.nodes.config.node_config import HostPort


@frozen(kw_only=True)
class ClusterView:
    """A cluster as its clients see it. `advertised` is this node's address by listener name."""

    cluster_id: str
    node_id: int
    advertised: Mapping[str, HostPort] = field(factory=dict)
    rack: str | None = None
