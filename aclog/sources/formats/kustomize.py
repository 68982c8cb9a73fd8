"""Kustomizations: the KafkaUsers that they change, which are then not those of the files.

The output of `kustomize build` is not evaluated. A file of resources is read as it is unless a kustomization changes it
on every way from a root; what a kustomization makes or takes from elsewhere is unread.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from attrs import field

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.sources.formats.nodes import Node
from aclog.sources.formats.rule import ReadContext, SourceFile
from aclog.sources.formats.unread import UnreadKind
from aclog.sources.formats.verdicts import KUSTOMIZATIONS, rule_in

_ADVICE = "give the output of `kustomize build` (--acls -)"
_LISTS = ("resources", "bases", "components")
_PATCHES = ("patches", "patchesStrategicMerge", "patchesJson6902")
_CHANGES = ("namePrefix", "nameSuffix", "replacements", "vars", "transformers", "configurations", "openapi")
_MAKERS = ("generators", "helmCharts", "helmChartInflationGenerator", "inflate")
_WORD = re.compile(r"[A-Za-z]+")
_USER = "KafkaUser"
_GROUP = "kafka.strimzi.io"
_MOST = 20_000
"""Pairs of a kustomization and a change above it."""


@frozen(kw_only=True)
class _Kustomization:
    """A kustomization, and the directory that it is in."""

    directory: str
    node: Node

    def entries(self) -> Iterator[tuple[str, Node]]:
        """Yield the resources, with the key that lists them."""
        for key in _LISTS:
            for item in self.node.items_of(key):
                yield key, item

    def path(self, text: str) -> str:
        """Return a path in the tree."""
        return posixpath.normpath(posixpath.join(self.directory, text))


@define(eq=False, slots=False)
class Kustomizations:
    """The kustomizations of a tree. Owned by the reading of the tree."""

    context: ReadContext
    paths: Sequence[str]
    """The files of the tree that are read."""
    _by_path: dict[str, _Kustomization | None] = field(factory=dict, init=False)

    def not_to_read(self, with_rules: Sequence[str]) -> frozenset[str]:
        """Return the files whose resources are not as they are in a cluster, and report what is unread therefore.

        `with_rules`: the files of the tree that have KafkaUsers.
        """
        files = [path for path in self.paths if posixpath.basename(path) in KUSTOMIZATIONS]
        every = [each for path in files if (each := self._of_file(path)) is not None]
        if not every:
            return frozenset()
        if any(each.node.get(key) is not None for each in every for key in (*_PATCHES, *_CHANGES, "components")):
            self.context.declare_topic(None, every[0].node)  # the name of a KafkaTopic in a cluster may be another one
        patches = {path for each in every for path in self._patch_files(each)}
        entries = {each.path(item.raw) for each in every for _, item in each.entries()}
        roots = [each for each in every if each.directory not in entries]
        ways = _Ways(self, frozenset(with_rules))
        for root in roots or every:
            ways.follow(root, None)
        self._report_others(every, {id(change.node) for _, change in ways.changes})
        for path, change in ways.changes:
            name = self.context.tree.display(path)
            why = f"{change.what} of a kustomization changes, or may change, the KafkaUsers of {name}: {_ADVICE}"
            self.context.not_read(UnreadKind.KUSTOMIZATION, change.node, why, name=change.what)
        return frozenset(({path for path, _ in ways.changes} - ways.unchanged) | patches)

    def overlays(self, with_rules: frozenset[str]) -> dict[str, frozenset[str]]:
        """Return the root kustomizations of each file with KafkaUsers, if they take one that others take as well.

        `with_rules`: the files of the tree that have KafkaUsers; those of `not_to_read` have been judged.
        """
        every = [each for each in self._by_path.values() if each is not None]
        entries = {each.path(item.raw) for each in every for _, item in each.entries()}
        takers = defaultdict[str, set[str]](set)
        for root in every:
            if root.directory not in entries:
                for path in self._files_used(root, with_rules):
                    takers[path].add(root.directory)
        shared = {each for roots in takers.values() if len(roots) > 1 for each in roots}
        return {path: frozenset(roots) for path, roots in takers.items() if roots <= shared}

    def _files_used(self, root: _Kustomization, with_rules: frozenset[str]) -> set[str]:
        """Return the files with KafkaUsers that a kustomization takes, by others as well."""
        used, visited, pending = set[str](), {root.directory}, [root]
        while pending:
            each = pending.pop()
            for _, item in each.entries():
                path = each.path(item.raw)
                if path in with_rules:
                    used.add(path)
                elif path not in visited and not path.startswith(".."):
                    visited.add(path)
                    inner = self._by_directory.get(path)
                    pending.extend([inner] if inner is not None else ())
        return used

    @cached_property
    def _by_directory(self) -> dict[str, _Kustomization]:
        return {each.directory: each for each in self._by_path.values() if each is not None}

    def _report_others(self, every: Sequence[_Kustomization], reported: Collection[int]) -> None:
        """Report patches of KafkaUsers that are not among the files."""
        for each in every:
            for item, key in _patches(each):
                if id(item) not in reported and self._names_users(each, item):
                    why = f"a patch of KafkaUsers that are not among these files: {_ADVICE}"
                    self.context.not_read(UnreadKind.KUSTOMIZATION, item, why, name=key)

    def _names_users(self, each: _Kustomization, item: Node) -> bool:
        target = item.get("target")
        kind = None if target is None else target.get("kind")
        if target is not None:
            return kind is not None and kind.raw == _USER
        text = item if not isinstance(item.value, Mapping) else item.get("patch") or item.get("path")
        return text is not None and _USER in self._kinds(each, text)

    def at(self, directory: str) -> _Kustomization | None:
        """Return the kustomization of a directory; None if it has no such file. Raises as FileTree.read."""
        for name in KUSTOMIZATIONS:
            path = posixpath.normpath(posixpath.join(directory, name))
            if self.context.tree.is_file(path):
                return self._of_file(path)
        return None

    def _of_file(self, path: str) -> _Kustomization | None:
        if path not in self._by_path:
            documents = SourceFile(self.context.tree, path).documents
            directory = posixpath.dirname(path) or "."
            self._by_path[path] = _Kustomization(directory=directory, node=documents[0]) if documents else None
        return self._by_path[path]

    def _patch_files(self, each: _Kustomization) -> Iterator[str]:
        """Yield the files of patches, which are no resources of their own."""
        for item, _ in _patches(each):
            text = item.get("path") if isinstance(item.value, Mapping) else item
            if text is not None and isinstance(text.value, str) and "\n" not in text.raw:
                yield each.path(text.raw)

    def concerns_users(self, each: _Kustomization, item: Node) -> bool:
        """Return whether a patch may change a KafkaUser."""
        target = item.get("target")
        if target is not None:
            for key, own in (("kind", _USER), ("group", _GROUP)):
                selector = target.get(key)
                if selector is not None and selector.raw != own and _WORD.fullmatch(selector.raw.replace(".", "")):
                    return False  # it is a regular expression: a plain word selects no other one
            return True
        text = item if not isinstance(item.value, Mapping) else item.get("patch") or item.get("path")
        if text is None or not isinstance(text.value, str):
            return True
        return any(kind in ("", _USER, "List", f"{_USER}List") for kind in self._kinds(each, text))

    def _kinds(self, each: _Kustomization, text: Node) -> list[str]:
        """Return the kinds of the resources in a patch, as text or as a file; an empty one if they are not known."""
        from aclog.sources.formats.yaml_nodes import parse_documents

        try:
            if "\n" in text.raw or ":" in text.raw:
                documents = parse_documents(text.raw.encode(), text.file)
            else:
                file = SourceFile(self.context.tree, each.path(text.raw))
                documents = parse_documents(file.content, file.name)
        except (ConfigError, OSError):
            return [""]
        kinds = [node.get("kind") for node in documents]
        return ["" if kind is None else kind.raw for kind in kinds] or [""]


@frozen
class _Change:
    """A part of a kustomization that changes KafkaUsers, or makes some."""

    node: Node
    what: str
    """Its key."""


def _patches(each: _Kustomization) -> Iterator[tuple[Node, str]]:
    for key in _PATCHES:
        for item in each.node.items_of(key):
            yield item, key


@define(eq=False)
class _Ways:
    """All ways from root kustomizations to files with KafkaUsers."""

    of: Kustomizations
    with_rules: frozenset[str]
    changes: dict[tuple[str, _Change], None] = field(factory=dict, init=False)
    """Files whose KafkaUsers are changed on a way, and by what, in order."""
    unchanged: set[str] = field(factory=set, init=False)
    """Files whose KafkaUsers reach a root as they are."""
    _steps: set[tuple[str, int]] = field(factory=set, init=False)
    """The directories that were followed, and by what change."""
    _directories: set[str] = field(factory=set, init=False)
    """The directories of the steps."""
    _changing: dict[str, bool] = field(factory=dict, init=False)
    """Whether a component changes KafkaUsers, by its path."""

    def follow(self, each: _Kustomization, change: _Change | None) -> None:
        """Follow the resources of a kustomization; `change`: that of the nearest to the root."""
        step = each.directory, 0 if change is None else id(change.node)
        if step in self._steps:
            return
        if len(self._steps) == _MOST:
            raise each.node.error(f"more than {_MOST:,} changes of kustomizations: give the files of one")
        if each.directory not in self._directories:
            self._report_makers(each)
        self._steps.add(step)
        self._directories.add(each.directory)
        own = change or next(self._changes_of(each), None)
        for key, item in each.entries():
            if isinstance(item.value, str):
                self._follow_entry(each, item, own or (_Change(item, key) if key == "components" else None))

    def _follow_entry(self, each: _Kustomization, item: Node, change: _Change | None) -> None:
        context, path = self.of.context, each.path(item.raw)
        if "://" in item.raw or "?ref=" in item.raw or item.raw.startswith(("github.com/", "git@")):
            why = f"resources of {item.raw[:80]!r}, which are not here, may have rules: {_ADVICE}"
            context.not_read(UnreadKind.KUSTOMIZATION, item, why, name="remote")
            return
        try:
            is_directory = bool(context.tree.entries(path))
            inner = self.of.at(path) if is_directory else None
            users = path in self.with_rules or (inner is None and path.startswith("..") and self._has_rules(path))
            is_missing = not is_directory and not context.tree.is_file(path)
        except (ConfigError, OSError):
            inner, users, is_missing = None, False, True
        if is_missing:
            why = f"the resource {item.raw[:80]!r} is not here, and may have rules: {_ADVICE}"
            context.not_read(UnreadKind.KUSTOMIZATION, item, why, name="missing")
            return
        if inner is not None and inner is not each:
            self.follow(inner, change)
        elif users and path.startswith(".."):
            why = f"takes KafkaUsers of {context.tree.display(path)}, outside of {context.tree.name}: {_ADVICE}"
            context.not_read(UnreadKind.KUSTOMIZATION, item, why, name="outside")
        elif users and change is not None:
            self.changes[path, change] = None
        elif users:
            self.unchanged.add(path)

    def _has_rules(self, path: str) -> bool:
        context = self.of.context
        if not context.tree.is_file(path):
            return False
        return any(rule_in(each) is not None for each in SourceFile(context.tree, path).documents)

    def _changes_of(self, each: _Kustomization) -> Iterator[_Change]:
        """Yield what changes KafkaUsers, or may."""
        for item, key in _patches(each):
            if self.of.concerns_users(each, item):
                yield _Change(item, key)
        for key in _CHANGES:
            member = each.node.get(key)
            if member is not None and member.value not in ("", (), {}):
                yield _Change(member, key)
        for item in each.node.items_of("components"):  # they change the resources of what names them
            if self._is_changing(each, item):
                yield _Change(item, "components")

    def _is_changing(self, each: _Kustomization, item: Node) -> bool:
        """Return whether a component changes KafkaUsers, or is not here."""
        path = each.path(item.raw)
        if path not in self._changing:
            self._changing[path] = True  # one that leads back to itself, which Kustomize refuses
            try:
                inner = self.of.at(path) if isinstance(item.value, str) else None
            except (ConfigError, OSError):
                inner = None
            self._changing[path] = inner is None or next(self._changes_of(inner), None) is not None
        return self._changing[path]

    def _report_makers(self, each: _Kustomization) -> None:
        for key in _MAKERS:
            member = each.node.get(key)
            if member is not None and member.value not in ((), {}):
                why = f"{key} of a kustomization may make rules: {_ADVICE}"
                self.of.context.not_read(UnreadKind.KUSTOMIZATION, member, why, name=key)
