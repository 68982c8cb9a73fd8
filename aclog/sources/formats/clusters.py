"""The clusters whose rules files state: by what the files state of them, else by names of directories and files."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from attrs import field

from aclog.authorizer.acl import FileOrigin, StatedCluster
from aclog.metalog.errors import plural
from aclog.metalog.values import frozen
from aclog.sources.formats.rule import FileTree, StatedRules
from aclog.sources.formats.terraform.clusters import ROOT_MODULE
from aclog.sources.formats.unread import Located

# What the reading of a tree of files leaves of its clusters.


@frozen(kw_only=True, slots=False)
class Layout:
    """The rules of a tree of files, and where the files are."""

    tree: FileTree
    stated: StatedRules
    files: Sequence[str] = ()
    """The paths of all files that were looked at."""
    twins: frozenset[str] = frozenset()
    """Directories with resources that would replace each other in one cluster."""
    overlays: Mapping[str, frozenset[str]] = field(factory=dict)
    """The root kustomizations, by their directories, that take each file of rules, if several take the same ones."""

    @cached_property
    def path_of(self) -> Mapping[str, str]:
        """The path of each file, by its name in messages."""
        return {self.tree.display(path): path for path in self.files}

    @cached_property
    def origins(self) -> "frozenset[_Place]":
        """The places of the rules."""
        return frozenset(self.place(each.origin) for each in self.stated.located())

    @cached_property
    def overlay_roots(self) -> frozenset[str]:
        """The root kustomizations of `overlays`."""
        return frozenset(root for each in self.overlays.values() for root in each)

    def place(self, located: Located) -> "_Place":
        """Return the place of something in a file."""
        cluster = located.cluster if isinstance(located, FileOrigin) else None
        return _Place(path=self.path_of.get(located.file, ""), cluster=cluster)


@frozen
class _Place:
    """All that distinguishes clusters: two rules with equal places are of one cluster."""

    path: str
    """The path of the file in its tree; empty: unknown."""
    cluster: StatedCluster | None

    @property
    def directory(self) -> str:
        """The path by whose parts environments are distinguished: of Terraform, that of the root module."""
        if self.cluster is not None and self.cluster.root:
            return posixpath.join(self.cluster.root, "-")
        return self.path


# Environments by the names of directories and files.


_HOLDERS = frozenset({"clusters", "cluster", "environments", "environment", "envs", "env", "overlays", "stages"})
"""Directories whose directories are those of clusters."""
_ENVIRONMENTS = {
    **dict.fromkeys(("dev", "develop", "development"), "dev"),
    **dict.fromkeys(("test", "testing", "tst", "qa", "quality"), "test"),
    **dict.fromkeys(("stage", "staging", "stg", "uat", "acc", "acceptance"), "stage"),
    **dict.fromkeys(("preprod", "preproduction", "nonprod", "nonproduction"), "preprod"),
    **dict.fromkeys(("prod", "production", "prd", "live"), "prod"),
    **dict.fromkeys(("sandbox", "sbx", "lab"), "sandbox"),
    **dict.fromkeys(("dr", "recovery"), "dr"),
}
"""Words for environments, and one of equal meaning."""
_WORDS = re.compile(r"[-_.\s]+")


def _environments_in(name: str) -> frozenset[str]:
    """Return the environments that a name of a directory or file names, such as `kafka-prod`."""
    return frozenset(_ENVIRONMENTS[word] for word in _WORDS.split(name.rstrip("/").lower()) if word in _ENVIRONMENTS)


@frozen
class _Environments:
    """The parts of paths that name environments: those beside others that name another one."""

    _names: frozenset[tuple[str, str]]
    """A directory, and the name in it."""

    @staticmethod
    def of(paths: Iterable[str]) -> "_Environments":
        beside: dict[str, set[str]] = defaultdict(set)
        for path in paths:
            for directory, name in _parts(path):
                beside[directory].add(name)
        return _Environments(
            frozenset(
                (directory, name)
                for directory, names in beside.items()
                for name in (*_of_environments(names), *(_in_holder(directory, names)))
            )
        )

    def of_path(self, path: str) -> str:
        """Return the parts of a path that name its environment; empty without any."""
        return "/".join(name.rstrip("/") for directory, name in _parts(path) if (directory, name) in self._names)


def _of_environments(names: Collection[str]) -> Iterator[str]:
    """Yield the names that name environments, if most do: a team beside others may be called `dev-support`."""
    named = {name: each for name in names if (each := _environments_in(name))}
    if len(set(named.values())) > 1 and 2 * len(named) >= len(names):
        yield from named


def _in_holder(directory: str, names: Collection[str]) -> Iterator[str]:
    directories = [name for name in names if name.endswith("/")]
    if posixpath.basename(directory.rstrip("/")).lower() in _HOLDERS and len(directories) > 1:
        yield from directories


def _parts(path: str) -> Iterator[tuple[str, str]]:
    """Yield each directory above a path, and the name in it: a directory ends in `/`, a file has no suffix."""
    *directories, file = path.split("/")
    above = ""
    for name in directories:
        yield above, f"{name}/"
        above = f"{above}{name}/"
    yield above, file.partition(".")[0]


# The clusters of one tree, or of the two sides of a comparison.


_REST = "unassigned"
"""The name of what belongs to no cluster in particular, if no cluster has it."""
_NAMES = "names of directories and files"
_OVERLAYS = "kustomizations that take the same files"
_TWINS = "directories with different users of one name"
_GUESSES = frozenset({ROOT_MODULE, _NAMES, _OVERLAYS, _TWINS, "plan or state of Terraform"})
_LONGEST = 60
_MOST_SHOWN = 8
"""How many clusters are named."""

_Key = tuple[str, str, str]
"""Of rules of Terraform: the basis and the name; and the environment or the root module, if the name may be another
cluster in each, such as `localhost:9092`."""


@frozen
class _Groups:
    """The clusters of root modules of Terraform; empty if there is one."""

    names: Mapping[_Key, str]
    roots: Mapping[str, str]
    """The cluster of each root module that is of one."""

    def around(self, path: str) -> str | None:
        """Return the cluster of the nearest root module whose directory a file is in; None: of none."""
        directory = posixpath.dirname(path)
        while directory and directory not in self.roots:
            directory = posixpath.dirname(directory)
        return self.roots.get(directory)


@frozen(kw_only=True)
class Clusters:
    """Several clusters, whose rules some trees of files state."""

    names: tuple[str, ...]
    """Sorted; that of the rest comes last."""
    bases: tuple[str, ...]
    """What distinguishes them."""
    paths: Mapping[str, str]
    """The common directory, or the only file, of each with one of its own."""
    _known: frozenset[str]
    _environments: _Environments
    _groups: _Groups
    _has_names: bool
    """Whether files state different names."""

    def of(self, layout: Layout, located: Located) -> tuple[str, ...]:
        """Return the clusters of something in a file: of the rest if none is known."""
        place = layout.place(located)
        return self.of_place(layout, place)

    def of_place(self, layout: Layout, place: _Place) -> tuple[str, ...]:
        """Return the clusters of a place."""
        labels = _labels(layout, place, self._environments, self._groups, has_names=self._has_names)
        names = tuple(dict.fromkeys(name if name in self._known else self.rest for name, _ in labels))
        return names or (self.rest,)

    @property
    def rest(self) -> str:
        """The name of what belongs to no cluster in particular."""
        return self.names[-1]

    @property
    def is_guess(self) -> bool:
        """Whether nothing but names and directories distinguishes some."""
        return any(each in _GUESSES for each in self.bases)

    def listed(self) -> str:
        """Return their number, what distinguishes them, and the first names."""
        names = self.names[:-1]
        more = f" and {len(names) - _MOST_SHOWN:,} more" if names[_MOST_SHOWN:] else ""
        by = " and ".join(self.bases)
        return f"{plural(len(names), 'cluster')} by {by}: {', '.join(names[:_MOST_SHOWN])}{more}"

    def statement(self) -> str:
        """Return how aclog.toml states them."""
        name = next((each for each in self.names if each in self.paths), None)
        header, path = ("NAME", "PATH") if name is None else (_key(name), self.paths[name])
        one = f"[clusters.{header}], acls = {_quoted(path)}"
        return f"a table for each in aclog.toml ({one}), or one table for all"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else _quoted(name)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def clusters_of(layouts: Sequence[Layout]) -> Clusters | None:
    """Return the clusters of trees of files, such as both sides of a comparison; None: one, as far as is known."""
    places = sorted({place for layout in layouts for place in layout.origins}, key=repr)
    environments = _Environments.of({place.directory for place in places if place.directory})
    groups = _groups_of(places, environments)
    stated = {place.cluster.name for place in places if place.cluster is not None and not place.cluster.root}
    bases, own = dict[str, None](), defaultdict[str, set[str]](set)
    for layout in layouts:
        for place in sorted(layout.origins, key=repr):
            for name, basis in _labels(layout, place, environments, groups, has_names=len(stated) > 1):
                own[name].add(layout.tree.display(_stating_path(place)))
                bases.update(dict.fromkeys(basis if name else ()))
    names = sorted(name for name in own if name)
    if len(names) < 2:
        return None
    rest = _REST
    while rest in names:
        rest += "'"
    return Clusters(
        names=(*names, rest),
        known=frozenset(names),
        bases=tuple(bases),
        paths=_own_paths({name: own[name] for name in names}),
        environments=environments,
        groups=groups,
        has_names=len(stated) > 1,
    )


def _stating_path(place: _Place) -> str:
    return place.cluster.root if place.cluster is not None and place.cluster.root else place.path


def _own_paths(own: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Return the common directory of each cluster, else its only file, if no other one has a path in it."""
    paths = dict[str, str]()
    for name, files in own.items():
        others = {each for other, of_other in own.items() if other != name for each in of_other}
        directory = _common(
            posixpath.dirname(each) or "." if "." in posixpath.basename(each) else each for each in files
        )
        for path in (directory, _common(files)):
            if path not in ("", ".") and not any(f"{each}/".startswith(f"{path}/") for each in others):
                paths.setdefault(name, path)
    return paths


def _common(paths: Iterable[str]) -> str:
    """Return the common directory of paths, without commits in front of that kind; one path as it is."""
    try:
        return posixpath.commonpath([each.partition(":")[2] or each for each in paths])
    except ValueError:  # absolute and relative ones
        return ""


def _groups_of(places: Iterable[_Place], environments: _Environments) -> _Groups:
    """Return the clusters of root modules: several if something distinguishes the rules."""
    roots = defaultdict[_Key, set[str]](set)
    for place in places:
        if place.cluster is not None and place.cluster.root:
            roots[_key_of(place, environments)].add(place.cluster.root)
    if len(roots) < 2:
        return _Groups({}, {})
    common = {key: _common(directories) for key, directories in roots.items()}
    shared = {each for each in common.values() if list(common.values()).count(each) > 1}
    names: dict[_Key, str] = {}
    for key, directory in common.items():
        own = "" if directory in ("", ".") else directory
        if not own or directory in shared:
            own = "/".join(each for each in (own, key[1][:_LONGEST]) if each)
        while own in names.values():
            own += "'"
        names[key] = own
    of_root = defaultdict[str, set[str]](set)
    for key, directories in roots.items():
        for each in directories:
            of_root[each].add(names[key])
    return _Groups(names, {root: next(iter(each)) for root, each in of_root.items() if len(each) == 1})


def _key_of(place: _Place, environments: _Environments) -> _Key:
    cluster = place.cluster
    if cluster is None:
        return "", "", ""
    if cluster.basis != ROOT_MODULE and _is_relative(cluster.name):
        return cluster.basis, cluster.name, environments.of_path(place.directory) or cluster.root
    return cluster.basis, cluster.name, ""


_RELATIVE = re.compile(r"(127\..*|[^.]*|.*\.svc(\..*)?|.*\.(local|localdomain|internal|lan|test|example))(:\d+)?")
"""Addresses that may be of another cluster in each network, such as `localhost:9092` or `kafka.svc.cluster.local`."""


def _is_relative(servers: str) -> bool:
    """Return whether servers are no addresses that exist once; an id, such as `lkc-1`, does."""
    hosts = servers.split(",")
    return any(":" in each or "." in each for each in hosts) and all(map(_RELATIVE.fullmatch, hosts))


def _labels(
    layout: Layout, place: _Place, environments: _Environments, groups: _Groups, *, has_names: bool
) -> list[tuple[str, tuple[str, ...]]]:
    """Return the names of the clusters of a place, of which one may be empty, and what each is based on."""
    cluster, path = place.cluster, place.path
    if cluster is not None and cluster.root:
        if groups.names:
            return [(groups.names.get(_key_of(place, environments), ""), (cluster.basis,))]
        return [(environments.of_path(place.directory), (_NAMES,))]
    around = groups.around(path) if cluster is None else None
    if around is not None:
        return [(around, ())]
    name, basis = ("", "") if cluster is None or not has_names else (cluster.name, cluster.basis)
    return [
        ("/".join(each for each in (part, name) if each), tuple(each for each in (by if part else "", basis) if each))
        for part, by in _parts_of_path(layout, path, environments)
    ]


def _parts_of_path(layout: Layout, path: str, environments: _Environments) -> list[tuple[str, str]]:
    overlays = layout.overlays.get(path)
    if overlays:
        return [(environments.of_path(f"{each}/-") or each, _OVERLAYS) for each in sorted(overlays)]
    environment = environments.of_path(path)
    if environment:
        return [(environment, _NAMES)]
    around = max((each for each in layout.overlay_roots if path.startswith(f"{each}/")), key=len, default="")
    if around:
        return [(environments.of_path(f"{around}/-") or around, _OVERLAYS)]
    directory = posixpath.dirname(path)
    while directory and directory not in layout.twins:
        directory = posixpath.dirname(directory)
    return [(directory or ".", _TWINS)] if directory in layout.twins else [("", "")]
