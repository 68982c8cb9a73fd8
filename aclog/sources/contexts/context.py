"""A context: a cluster or a log by name, and what is known of it."""

from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

KINDS = ("log", "snapshot", "acls", "ref", "bootstrap-controller", "bootstrap-server", "zookeeper")
"""The sources that a context may be, each as the flag of this name takes it."""


@frozen(kw_only=True)
class Context:
    """One source and its settings; None: the file says nothing of it. Paths are absolute."""

    name: str
    kind: str
    """One of KINDS."""
    value: str
    """The path, the servers, or GITREF:PATH in the repository of the working directory."""
    acls_format: str | None = None
    modules: Mapping[str, str] = field(factory=dict)
    """The directory of each Terraform module, by its source."""
    topics: str | None = None
    """A file of the topics that exist."""
    command_config: Path | None = None
    """Client properties, with which a cluster is reached."""
    zookeeper_config: Path | None = None
    """zookeeper.* properties, with which a ZooKeeper is reached."""
    super_users: str | None = None
    """As in the broker's super.users: separated by semicolons."""
    allow_everyone: bool | None = None
    semantics: str | None = None
    kafka_version: str | None = None
    """The Kafka that decides."""
    cidr: bool | None = None
    """Whether that takes a host with a slash for a range of addresses."""
    timezone: str | None = None
    format: str | None = None
    """How lists and answers are printed where nothing else is asked for."""
    place: str = field(default="", eq=False)
    """File and line that name it."""

    @property
    def address(self) -> str:
        """What it is, as the flag that would name it: `--bootstrap-server HOST:PORT`."""
        return f"--{self.kind} {self.value}"

    def decides(self) -> dict[str, str]:
        """Return the settings that change decisions, as people read them, by the names of their fields here."""
        named = {
            "super_users": ("super.users", self.super_users or None),
            "allow_everyone": ("allow.everyone.if.no.acl.found", "true" if self.allow_everyone else None),
            "semantics": ("semantics", self.semantics if self.semantics != "kafka" else None),
            "cidr": (
                ("kafka-version", self.kafka_version) if self.kafka_version else ("cidr", "true" if self.cidr else None)
            ),
        }
        return {name: f"{key}={value}" for name, (key, value) in named.items() if value is not None}
