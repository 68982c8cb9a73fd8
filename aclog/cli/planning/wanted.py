"""What a source of rules wants of a place, and what has to change for it."""

from collections.abc import Callable, Iterator

from attrs import frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.cidr import is_cidr
from aclog.authorizer.origin import NO_ORIGINS, Origins, places_text
from aclog.authorizer.rule_change import ChangedOrigins, RuleChange
from aclog.authorizer.rule_content import content_of, ranges_among
from aclog.cli.flags.plan import WantFlags
from aclog.cli.flags.source import parse_modules
from aclog.metalog.errors import ConfigError, EncodeError
from aclog.planning.planner import Held, PlannedChange, change_as_asked, change_to_want
from aclog.sources.change_lines import read_changes
from aclog.sources.formats.format import AclsFormat
from aclog.sources.name_file import NameFile
from aclog.sources.read_options import ReadOptions
from aclog.sources.rule_files import find_rules
from aclog.terminal.notices import note
from aclog.terminal.progress import BYTES, progress


@frozen(kw_only=True)
class Wanted:
    """All rules of a source, or changes of some; exactly one of the two is not None."""

    path: str
    rules: frozenset[bytes] | None = None
    changes: tuple[RuleChange, ...] | None = None
    origins: Origins = NO_ORIGINS
    """Where the rules stand."""

    def ranges(self) -> Iterator[str]:
        """Yield the hosts that are ranges of addresses."""
        yield from ranges_among(self.rules or ())
        yield from (each.acl.host for each in self.changes or () if is_cidr(each.acl.host))

    def change_of(self, held: Held, *, adopt: bool) -> PlannedChange:
        """Return what has to change where this is held. Raises RefusedError: as change_as_asked."""
        if self.rules is not None:
            return change_to_want(held, self.rules, adopt=adopt)
        return change_as_asked(held, self.changes or (), adopt=adopt)


def read_wanted(flags: WantFlags, change: str | None = None) -> Wanted:
    """Read what is wanted: --want, or the file of a change.

    Raises:
        ConfigError: not exactly one of them, or what is in the files is none.
        OSError: a file cannot be read.

    """
    if (flags.want is None) is (change is None):
        raise ConfigError("expected either --want PATH, with all rules of this source, or --change FILE")
    if change is not None:
        if flags.want_format is not None:
            raise ConfigError("--want-format: expected --want PATH")
        changes = tuple(read_changes(change))
        return Wanted(path=change, changes=changes, origins=ChangedOrigins.of_changes(NO_ORIGINS, changes))
    rules, origins = read_wanted_rules(flags)
    return Wanted(path=str(flags.want), rules=rules, origins=origins)


def read_wanted_rules(flags: WantFlags, tell: Callable[[str], None] = note) -> tuple[frozenset[bytes], Origins]:
    """Return the rules of --want, and where they stand; `tell` is called with what was read. Raises as read_wanted."""
    if flags.want is None:
        raise ConfigError("expected --want PATH, with all rules of this source")
    topics = None if flags.topics_file is None else NameFile(flags.topics_file).names
    with progress(f"reading {flags.want}", BYTES) as advance:
        options = ReadOptions(
            form=flags.want_format or AclsFormat.AUTO,
            modules=parse_modules(flags.modules),
            topics=topics,
            advance=advance,
            strict=True,  # a rule that never comes is no less wanted
        )
        found = find_rules(flags.want, options)
        rules = frozenset(_content(rule.acl, found.origins) for rule in found.rules)
    for text in found.notes:
        tell(text)
    return rules, found.origins


def _content(acl: StandardAcl, origins: Origins) -> bytes:
    try:
        return content_of(acl)
    except EncodeError as error:
        raise ConfigError(f"a rule{places_text(acl, origins)}: {error}") from error
