"""Files with the rules of several clusters: a part for each, so that no two are compared or linted as one."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from aclog.authorizer.acl import FileOrigin
from aclog.metalog.errors import printable
from aclog.metalog.values import frozen
from aclog.sources.choice import AclsSource, ChosenSource
from aclog.sources.formats.unread import Dormant, Unread
from aclog.terminal.output import note

if TYPE_CHECKING:
    from aclog.sources.formats.clusters import Clusters, Layout
    from aclog.sources.formats.rule import LocatedRule


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
    with reading_ahead(choices[-1] if len(choices) > 1 else None):
        for each in choices:
            if each is not None and isinstance(each.source, AclsSource):
                each.image()
    sources = [None if each is None else each.source for each in choices]
    layouts = [each.layout for each in sources if isinstance(each, AclsSource) and each.layout is not None]
    if not layouts:
        return None
    from aclog.sources.formats.clusters import clusters_of  # here: JSON lines are read without formats

    clusters = clusters_of(layouts)
    if clusters is None or len(layouts) < sum(each is not None for each in sources):
        return None
    if not _have_common(clusters, layouts):
        return None
    parts = [_parts(each, clusters) for each in choices]
    by_name = {name: tuple(part.get(name) for part in parts) for name in clusters.names}
    if not any(_has_content(each) for each in by_name[clusters.rest]):
        del by_name[clusters.rest]
    guess = f"; a guess: if it is wrong, write {clusters.statement()}" if clusters.is_guess else ""
    return ClusterParts(by_name=by_name, note=f"a section for each of {clusters.listed()}{guess}")


@contextmanager
def reading_ahead(choice: ChosenSource | None) -> Iterator[None]:
    """Have another process read a source of many files during the `with`, in which another one is read."""
    if choice is not None and isinstance(choice.source, AclsSource):
        with choice.source.read_ahead():
            yield
    else:
        yield


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
    named = [{name for place in each.origins for name in clusters.of_place(each, place)} for each in layouts]
    sides = [each for each in named if each]
    return len(sides) < 2 or bool(set.intersection(*sides) - {clusters.rest})


def _parts(choice: ChosenSource | None, clusters: "Clusters") -> dict[str, ChosenSource]:
    """Return the part of a source for each cluster, also where it is empty; none of no source."""
    if choice is None or not isinstance(choice.source, AclsSource) or choice.source.layout is None:
        return {}
    source, layout = choice.source, choice.source.layout
    rules: defaultdict[str, list[LocatedRule]] = defaultdict(list)
    paths = defaultdict[str, set[str]](set)
    unread = defaultdict[str, list[Unread]](list)
    dormant = defaultdict[str, list[Dormant]](list)
    topics = defaultdict[str, list[tuple[str, FileOrigin]]](list)
    names = {place: clusters.of_place(layout, place) for place in layout.origins}  # many rules share a place
    for rule in layout.stated.located():
        for name in names[layout.place(rule.origin)]:
            rules[name].append(rule)
            paths[name] |= {layout.path_of[each.file] for each in rule.origin.steps if each.file in layout.path_of}
    for each in source.unread:
        for name in clusters.of(layout, each):
            unread[name].append(each)
    for statement in source.dormant:
        for name in clusters.of(layout, statement.unread):
            dormant[name].append(statement)
    for topic in source.topics:
        for name in clusters.of(layout, topic[1]):
            topics[name].append(topic)
    rest = topics[clusters.rest]
    return {
        name: ChosenSource(
            source.part(
                rules[name],
                unread[name],
                dormant[name],
                topics[name] if name == clusters.rest else [*topics[name], *rest],
                frozenset(paths[name]),
            ),
            choice.as_of,
        )
        for name in clusters.names
    }


def _has_content(choice: ChosenSource | None) -> bool:
    return choice is not None and bool(len(choice.image().acls) or choice.unread)
