"""Namespaces: each has the Kafka user that what is granted to it is for."""

from attrs import define, field, frozen

from aclog.authorizer.origin import FileOrigin, origin_text
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.ns4kafka.entry import PUBLIC, Entry
from aclog.sources.formats.resources import Resource


@frozen(kw_only=True)
class Namespace:
    """A namespace (com.michelin.ns4kafka.model.Namespace)."""

    name: str
    principal: str
    cluster: str
    """Empty if it is left to the server."""
    transactions: bool
    """Whether its groups come with transactional ids for connectors."""
    origin: FileOrigin


def parse_namespace(resource: Resource) -> Namespace:
    """Return a namespace. Raises ConfigError: it has no name or no Kafka user, with its line."""
    user = resource.spec.required("kafkaUser", "the spec of a Namespace")
    if not user.text("kafkaUser").strip():
        raise user.error("kafkaUser is empty")
    transactions = resource.spec.get("transactionsEnabled")
    cluster = resource.node.required("metadata").get("cluster")
    return Namespace(
        name=resource.name,
        principal=f"User:{user.raw}",
        cluster="" if cluster is None else cluster.text("metadata.cluster"),
        transactions=transactions is not None and transactions.boolean("transactionsEnabled"),
        origin=resource.node.origin,
    )


@define
class Namespaces:
    """All namespaces of the files, which must be those of one cluster."""

    _by_name: dict[str, Namespace] = field(factory=dict, init=False)
    _of_a_cluster: Namespace | None = field(default=None, init=False)
    """The first that names its cluster."""

    def __len__(self) -> int:
        return len(self._by_name)

    def add(self, namespace: Namespace) -> None:
        """Add one. Raises ConfigError: there is one of its name, or of another cluster."""
        first = self._by_name.setdefault(namespace.name, namespace)
        if first is not namespace:
            raise _second(namespace, f"is in {origin_text(first.origin)} already")
        if self._of_a_cluster is None and namespace.cluster:
            self._of_a_cluster = namespace
        other = self._of_a_cluster
        if other is not None and namespace.cluster not in ("", other.cluster):
            where = f"that of {origin_text(other.origin)} of {other.cluster[:60]!r}"
            raise _second(namespace, f"is of the cluster {namespace.cluster[:60]!r}, {where}")

    def get(self, name: str) -> Namespace | None:
        """Return the namespace of a name."""
        return self._by_name.get(name)

    def granted_to(self, entry: Entry) -> Namespace | None:
        """Return the namespace that an entry is granted to; None for everybody.

        Raises:
            ConfigError: that, or the one it belongs to, is not in the files; with the line of the entry.

        """
        if entry.namespace and entry.namespace not in self._by_name:
            raise entry.node.error(f"its namespace {entry.namespace[:60]!r} is not in the files")
        if entry.granted_to == PUBLIC:
            return None
        found = self._by_name.get(entry.granted_to)
        if found is None:
            raise entry.node.error(
                f"it is granted to the namespace {entry.granted_to[:60]!r}, which is not in the files"
            )
        return found


def _second(namespace: Namespace, what: str) -> ConfigError:
    where = origin_text(namespace.origin)
    return ConfigError(f"{where}: Namespace {namespace.name[:60]} {what}: read the files of one cluster at a time")
