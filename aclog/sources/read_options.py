"""What tells how GitOps files are read."""

from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from aclog.sources.formats.format import AclsFormat
from aclog.terminal.progress import Advance


@frozen(kw_only=True)
class ReadOptions:
    """How GitOps files are read."""

    form: AclsFormat = AclsFormat.AUTO
    modules: Mapping[str, str] = {}
    """The directory of each Terraform module that is not among the files, by its source."""
    topics: Callable[[], Sequence[str]] | None = None
    """The topics that exist; None if nobody knows."""
    strict: bool = False
    """Whether all rules must come: a stated rule that its tool makes nothing of is refused, a file that is empty beside
    others though its format has something in every file, and what is neither a regular file nor a directory."""
    advance: Advance | None = None
    """Called with how far a single file is read, in bytes."""
