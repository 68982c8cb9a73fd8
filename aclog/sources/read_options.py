"""How files of rules are read, and the rules and gaps that reading results in."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from aclog.authorizer.acl import FileOrigin, Origins, StandardAclWithId
from aclog.metalog.values import frozen
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.unread import Dormant, Unread
from aclog.terminal.notices import Advance

if TYPE_CHECKING:
    from aclog.sources.formats.clusters import Layout

# How GitOps files are read.


@frozen(kw_only=True)
class ModuleInputs:
    """What Terraform's command line gives root modules."""

    var_files: tuple[str, ...] = ()
    """Files of variables, in the order in which they are read."""
    values: Mapping[str, str] = {}
    """Values of variables, by name."""
    workspace: str | None = None
    """None: `default`."""

    def over(self, others: "ModuleInputs") -> "ModuleInputs":
        """Return these beside others, over which they win."""
        return ModuleInputs(
            var_files=(*others.var_files, *self.var_files),
            values={**others.values, **self.values},
            workspace=self.workspace or others.workspace,
        )


NO_INPUTS = ModuleInputs()


@frozen(kw_only=True)
class ReadOptions:
    """How GitOps files are read."""

    form: AclsFormat = AclsFormat.AUTO
    modules: Mapping[str, str] = {}
    """The directory of each Terraform module that is not among the files, by its source."""
    inputs: ModuleInputs = NO_INPUTS
    topics: Callable[[], Sequence[str]] | None = None
    """The existing topics; None if unknown."""
    exclude: tuple[str, ...] = ()
    """Globs of files that are not read, as lines of a .gitignore at the root of the tree."""
    accept_unread: frozenset[str] = frozenset()
    """Labels of content that may stay unread (aclog.sources.choice.parse_accepted)."""
    may_be_empty: bool = False
    """Whether a directory without a file of rules is a state without rules, instead of an error."""
    strict: bool = False
    """Whether all rules must come: a stated rule that its tool makes nothing of is refused, a file that is empty beside
    others though its format has something in every file, and a path that is neither a regular file nor a directory."""
    notes_clusters: bool = True
    """Whether a note states that the rules of several clusters are read as those of one."""
    advance: Advance | None = None
    """Called with how far a single file is read, in bytes."""


# What was read: rules, as a stream or a list, and what is beside them.


@frozen(kw_only=True)
class FoundRules:
    """Rules, to be read once; then `origins` has their locations."""

    rules: Iterable[StandardAclWithId]
    origins: Origins
    notes: tuple[str, ...] = ()
    unread: tuple[Unread, ...] = ()
    """Content that may hold rules and was not read."""
    dormant: tuple[Dormant, ...] = ()
    """Statements that make no rules by the values that were read."""
    nothing_read: str | None = None
    """Why no file was read, where that is no error (ReadOptions.may_be_empty)."""
    layout: "Layout | None" = None
    """What distinguishes the clusters of the rules; None: they are of one."""
    topics: tuple[tuple[str, FileOrigin], ...] = ()
    """The names of the topics that the files declare, and where; one with an unknown part is a symbol."""
