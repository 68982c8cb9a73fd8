"""Files with the rules of several clusters: a part for each, so that no two are compared or linted as one."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from aclog.metalog.errors import printable
from aclog.sources.choice import AclsSource, ChosenSource
from aclog.sources.formats.unread import Located
from aclog.terminal.output import note

if TYPE_CHECKING:
    from aclog.sources.formats.clusters import Clusters, Layout


@frozen(kw_only=True)
class ClusterParts:
    """The parts of some sources, each a state of its own."""

    by_name: Mapping[str, tuple[ChosenSource | None, ...]]
    """A part of each source, by the names of the clusters; None where a source is None."""
    note: str
    """What distinguishes the clusters, and how to state them if that is a guess."""


def cluster_parts(choices: Sequence[ChosenSource | None]) -> ClusterParts | None:
    """Read sources that are files, and return their parts, by the clusters that the files state.

    None: all are of one cluster, as far as is known, or one of them is no files; two sides of a comparison may also
    have no cluster in common, as a directory and one of its directories have.

    Raises:
        ConfigError: malformed files; OSError: a file cannot be read.

    """
    for each in choices:
        if each is not None and isinstance(each.source, AclsSource):
            each.image()
    sources = [None if each is None else each.source for each in choices]
    layouts = [each.layout for each in sources if isinstance(each, AclsSource) and each.layout is not None]
    if not layouts:
        return None
    from aclog.sources.formats.clusters import REST, clusters_of  # here: JSON lines are read without formats

    clusters = clusters_of(layouts)
    if clusters is None or len(layouts) < sum(each is not None for each in sources):
        return None
    if not _have_common(clusters, layouts):
        return None
    by_name = {name: tuple(_part(each, clusters, name) for each in choices) for name in clusters.names}
    if not any(_has_content(each) for each in by_name[REST]):
        del by_name[REST]
    guess = f"; a guess: if it is wrong, write {clusters.statement()}" if clusters.is_guess else ""
    note = f"a section for each of {clusters.listed()}{guess}"
    return ClusterParts(by_name=by_name, note=note)


def note_union(choice: ChosenSource) -> None:
    """Note that the rules of several clusters in a source of files are read as those of one, if they are.

    Raises as cluster_parts.
    """
    if isinstance(choice.source, AclsSource):
        choice.image()
        if choice.source.layout is not None:
            from aclog.sources.rule_trees import union_notes

            for text in union_notes(choice.source.name, [choice.source.layout]):
                note(printable(text))


def _have_common(clusters: "Clusters", layouts: "Sequence[Layout]") -> bool:
    """Return whether all sides with rules have a cluster in common, which is not the rest."""
    from aclog.sources.formats.clusters import REST

    named = [{name for place in each.origins for name in clusters.of_place(each, place)} for each in layouts]
    sides = [each for each in named if each]
    return len(sides) < 2 or bool(set.intersection(*sides) - {REST})


def _part(choice: ChosenSource | None, clusters: "Clusters", name: str) -> ChosenSource | None:
    if choice is None or not isinstance(choice.source, AclsSource) or choice.source.layout is None:
        return None
    from aclog.sources.formats.clusters import REST

    layout = choice.source.layout

    def is_part(located: Located) -> bool:
        return name in clusters.of(layout, located)

    def is_topic_part(located: Located) -> bool:
        return bool({name, REST}.intersection(clusters.of(layout, located)))

    return ChosenSource(choice.source.part(is_part, is_topic_part), choice.as_of)


def _has_content(choice: ChosenSource | None) -> bool:
    return choice is not None and bool(len(choice.image().acls) or choice.unread)
