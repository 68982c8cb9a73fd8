"""Resources in Kubernetes' manner: documents with apiVersion, kind, metadata and spec, one by one or in lists."""

from collections.abc import Iterable, Iterator

from attrs import frozen

from aclog.sources.formats.node import Node


@frozen
class Resource:
    """A document that has a kind."""

    node: Node
    api_version: str
    kind: str

    @property
    def name(self) -> str:
        """The name in its metadata. Raises ConfigError: it has none."""
        name = self.node.required("metadata", self.kind).required("name", "metadata")
        if not name.text("metadata.name"):
            raise name.error("metadata.name is empty")
        return name.raw

    @property
    def namespace(self) -> Node | None:
        """The namespace in its metadata; None if it is left to whoever applies it."""
        metadata = self.node.get("metadata")
        return None if metadata is None else metadata.get("namespace")

    @property
    def spec(self) -> Node:
        """The spec. Raises ConfigError: it has none."""
        return self.node.required("spec", self.kind)


def resources(documents: Iterable[Node]) -> Iterator[Resource]:
    """Yield the resources in documents, those of lists one by one, and documents without a kind as of the kind ``.

    Raises:
        ConfigError: kind or apiVersion is not text, or the items of a list are no list.

    """
    for node in documents:
        kind, version = (node.get(key) for key in ("kind", "apiVersion"))
        text = "" if kind is None else kind.text("kind")
        if text.endswith("List") and node.get("items") is not None:
            yield from resources(node.members("items"))
        else:
            yield Resource(node, "" if version is None else version.text("apiVersion"), text)
