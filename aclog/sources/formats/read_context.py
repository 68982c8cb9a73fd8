"""What readers of GitOps files need besides the files, and what they leave out."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from attrs import define, field

from aclog.sources.formats.file_tree import FileTree
from aclog.sources.formats.node import Node


@define(eq=False, kw_only=True)
class ReadContext:
    """One reading of a tree; owned by whoever reads it."""

    tree: FileTree
    topics: Callable[[], Sequence[str]] | None = None
    """Returns the topics that exist; None if nobody told."""
    modules: Mapping[str, str] = field(factory=dict)
    """The directory of each module of Terraform that is not in the tree, by its source."""
    strict: bool = False
    """Whether a stated rule that the tool makes nothing of is refused, instead of left out as the tool does; and a file
    that was emptied."""
    ignored: Counter[str] = field(factory=Counter, init=False)
    """How many things of each kind cannot make rules, such as `KafkaTopic`."""

    def ignore(self, kind: str) -> None:
        """Count something that cannot make a rule."""
        self.ignored[kind] += 1

    def makes_nothing(self, kind: str, stated: Node, why: str) -> None:
        """Count a stated rule that the tool makes nothing of. Raises ConfigError: `strict`; with its place and why."""
        if self.strict:
            raise stated.error(why)
        self.ignore(kind)
