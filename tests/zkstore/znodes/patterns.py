"""Generated resource patterns that can be stored in ZooKeeper."""

from hypothesis import strategies as st

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.zookeeper.znodes import name_problem

patterns = st.builds(
    ResourcePattern,
    resource_type=st.sampled_from([kind for kind in ResourceType if kind > 1]),
    name=st.text(min_size=1).filter(lambda name: name_problem(name) is None),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
)
