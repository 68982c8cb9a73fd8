"""The two sides of a review: the rules of a commit, and those of another or of the working tree."""

from functools import cache, cached_property, partial
from pathlib import Path

from attrs import frozen

from aclog.analysis.policy import Policy
from aclog.analysis.review.move import Placement
from aclog.authorizer.generation import Generation
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.repository import authorizer_flags, source_flags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.policies import policy_by
from aclog.cli.review.flags import ChangeFlags
from aclog.metalog.errors import ConfigError
from aclog.snapshots.deciding_kafka import deciding_kafka
from aclog.snapshots.image import Image
from aclog.sources.choice import ChosenSource
from aclog.sources.formats.format import AclsFormat
from aclog.sources.git.git_commit import way_out
from aclog.sources.git.git_history import changed_files, commit_id, exists, merge_base, path_from_top, top_directory
from aclog.sources.git.git_place import GitPlace
from aclog.sources.name_file import NameFile
from aclog.sources.repository.settings import RepositorySettings
from aclog.terminal.notices import note

_SHORT = 10
"""Digits of a commit's id, as people read it."""


@frozen(eq=False, kw_only=True)
class Side:
    """The rules of one side."""

    name: str
    """Such as `main (3fa08c21d4)`, or `the working tree`."""
    ref: str | None
    chosen: ChosenSource | None
    """None if the path is not there: no rules."""
    image: Image
    authorizer: AuthorizerFlags

    @property
    def placement(self) -> Placement:
        """Where the rules stand."""
        if self.chosen is None:
            return Placement()
        ref = self.ref
        if ref is None:
            return Placement(origins=self.chosen.origins, path_of=cache(partial(path_from_top, top=top_directory())))
        return Placement(origins=self.chosen.origins, path_of=lambda file: file.removeprefix(f"{ref}:"))


@frozen(eq=False, kw_only=True)
class ReviewSides:
    """Both sides, and the files that are not the same in both."""

    base: Side
    head: Side
    changed: frozenset[str]
    """From the top of the repository; all files, not only those of rules."""
    path: str
    """Of the rules, from the top of the repository; empty for the top itself."""
    base_commit: str
    head_commit: str | None
    """None for the working tree."""
    doubts: tuple[str, ...] = ()
    """Why the sides may not be what people think they are."""

    @cached_property
    def generations(self) -> tuple[Generation, ...]:
        """The generations of Kafka that may decide on both sides, if they do not decide alike; else one of them."""
        sides = (self.base, self.head)
        return max((deciding_kafka(each.image, each.authorizer.generation).generations for each in sides), key=len)

    def policies(self, side: Side, authorizer: AuthorizerFlags | None = None) -> dict[Generation, Policy]:
        """Return the policy of a side for each of them; `authorizer`: by other flags than its own, and what they name.

        Warns of super users in other flags that are hardly meant; those of the sides are warned of as they are read.

        Raises:
            ConfigError: a super user without a colon.

        """
        if authorizer is None or authorizer == side.authorizer:
            return self._own_policies[side]
        authorizer.warn_of_super_users()
        return self._policies(side, authorizer)

    @cached_property
    def _own_policies(self) -> dict[Side, dict[Generation, Policy]]:
        """The policies of both sides by their own flags, by side."""
        return {side: self._policies(side, side.authorizer) for side in (self.base, self.head)}

    def _policies(self, side: Side, flags: AuthorizerFlags) -> dict[Generation, Policy]:
        generations = self.generations if flags.generation is None else (flags.generation,)
        return {each: policy_by(side.image, flags.of_generation(each)) for each in generations}

    def head_has(self, file: str) -> bool:
        """Return whether the head has a file, by its path from the top of the repository."""
        if self.head_commit is None:
            return (top_directory() / file).exists()
        return exists(GitPlace(ref=self.head_commit, path=file))


@frozen(kw_only=True)
class SideReader:
    """Reads both sides the same way."""

    change: ChangeFlags
    path: str
    topics: NameFile | None
    settings: RepositorySettings

    def read(self) -> ReviewSides:
        """Read both sides; warn of super users that are hardly meant.

        Raises:
            ConfigError: a commit that this clone does not have, a path that is on neither side, malformed files, or a
                super user without a colon.
            OSError: a file cannot be read.

        """
        authorizer_flags(self.settings).warn_of_super_users()
        path = path_from_top(self.path)
        head_ref = self.change.head
        head_commit = None if head_ref is None else _known(head_ref)
        base_ref, doubts = _parted(self.change.base, head_commit or "HEAD", head_ref or "HEAD")
        base = self._side(GitPlace(ref=base_ref, path=path))
        head = self._working_tree() if head_ref is None else self._side(GitPlace(ref=head_ref, path=path))
        if base.chosen is head.chosen is None:
            raise ConfigError(f"{self.path}: neither {base.name} nor {head.name} has it")
        doubts += [
            f"{self.path}: {side.name} does not have it, so it has no rules"
            for side in (base, head)
            if side.chosen is None
        ]
        doubts += _unknown_kafka(base, head)
        for each in doubts:
            note(each)
        return ReviewSides(
            base=base,
            head=head,
            changed=frozenset(changed_files(base_ref, head_commit)),
            path=path,
            base_commit=_known(base_ref),
            head_commit=head_commit,
            doubts=tuple(doubts),
        )

    def _side(self, place: GitPlace) -> Side:
        commit = _known(place.ref)
        name = place.ref if commit.startswith(place.ref) else f"{place.ref} ({commit[:_SHORT]})"
        if not exists(place):
            return _without_rules(name, authorizer_flags(self.settings))
        return self._read(name, self._flags(ref=place.name), place.ref)

    def _working_tree(self) -> Side:
        if not Path(self.path).exists():
            return _without_rules("the working tree", authorizer_flags(self.settings))
        return self._read("the working tree", self._flags(acls=self.path), None)

    def _flags(self, *, ref: str | None = None, acls: str | None = None) -> SourceFlags:
        known = self.settings.source.format if self.change.path is None else None  # it is that of source.acls
        form = self.change.acls_format or (None if known is None else AclsFormat(known))
        flags = SourceFlags(acls=acls, ref=ref, acls_format=form, modules=self.change.modules)
        return source_flags(flags, self.settings)

    def _read(self, name: str, flags: SourceFlags, ref: str | None) -> Side:
        chosen = flags.choose(topics=self.topics)
        image = chosen.image()
        return Side(name=name, ref=ref, chosen=chosen, image=image, authorizer=authorizer_flags(self.settings))


def _without_rules(name: str, authorizer: AuthorizerFlags) -> Side:
    image = Image()
    return Side(name=name, ref=None, chosen=None, image=image, authorizer=authorizer)


def _unknown_kafka(*sides: Side) -> list[str]:
    """Return that it is not known which Kafka decides, if that matters."""
    for side in reversed(sides):
        kafka = deciding_kafka(side.image, side.authorizer.generation)
        if not kafka.is_known:
            return [kafka.ambiguity()]
    return []


def _known(ref: str) -> str:
    found = commit_id(ref)
    if found is None:
        raise ConfigError(f"{ref}: this clone has no such commit{way_out(ref, ref)}")
    return found


def _parted(base: str, head: str, head_name: str) -> tuple[str, list[str]]:
    """Return the commit at which the head parted from the base: what came to the base since is not the head's.

    With it come doubts: this clone may not tell.
    """
    found = _known(base)
    parted = merge_base(found, head)
    if parted is None:
        doubt = (
            f"{base}: this clone does not tell where {head_name} parted from it (a shallow one?), so changes that it "
            "got since count as reverted: fetch the history, such as with fetch-depth: 0"
        )
        return base, [doubt]
    return base if parted == found else parted[:_SHORT], []
