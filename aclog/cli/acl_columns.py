"""The columns of ACLs, wherever they are listed: the keys of `acls list --format jsonl`."""

from aclog.terminal.columns import Column

ACL_COLUMNS = (
    Column(key="resourceType", title="TYPE"),
    Column(key="resourceName", title="NAME", cut=True),
    Column(key="patternType", title="PATTERN"),
    Column(key="principal", cut=True),
    Column(key="host", cut=True),
    Column(key="operation"),
    Column(key="permissionType", title="PERMISSION"),
)
"""What an ACL is."""

RULE_COLUMNS = (*ACL_COLUMNS, Column(key="id", spare=True))
"""The same, and its id."""

ORIGIN_COLUMNS = (Column(key="file", cut=True), Column(key="line"))
"""The first place where it stands."""

PLACE = Column(key="place", cut=True, spare=True)
"""All places where it stands, in a table."""
