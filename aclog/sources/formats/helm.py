"""Charts of Helm: files of resources that it may not render, whose rules are then in no cluster.

A template with `{{` is judged as any other one. Here are the files without: Helm writes those of `templates` and `crds`
as they are, except partials, files of a library or in .helmignore, and subcharts that values can disable. Which of the
others reach a cluster depends on values and on templates, so they are unread.
"""

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from attrs import field

from aclog.authorizer.acl import FileOrigin
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define
from aclog.sources.formats.nodes import Node
from aclog.sources.formats.rule import ReadContext, SourceFile
from aclog.sources.formats.unread import UnreadKind

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

CHART = "Chart.yaml"
_ADVICE = "give the output of `helm template` (--acls -)"
_DEPENDENCIES = (CHART, "requirements.yaml")
"""Files of a chart that list its subcharts."""


@define(eq=False, slots=False)
class Charts:
    """The charts of a tree. Owned by the reading of the tree."""

    context: ReadContext
    paths: Sequence[str]
    """The files of the tree that are read."""
    _documents: dict[str, Node | None] = field(factory=dict, init=False)
    _ignores: "dict[str, GitIgnoreSpec | str]" = field(factory=dict, init=False)
    """By chart: see _read_ignore."""

    def not_to_read(self, with_resources: Iterable[str]) -> frozenset[str]:
        """Return the files of resources that Helm may not render, and report them as unread."""
        left_out = set()
        for path in with_resources if self._directories else ():
            why = next(self._reasons(path), None)
            if why is not None:
                place = FileOrigin(file=self.context.tree.display(path), line=1)
                self.context.not_read(UnreadKind.TEMPLATE, place, f"{why}: {_ADVICE}", name="helm")
                self.context.declare_topic(None, place)
                left_out.add(path)
        return frozenset(left_out)

    @cached_property
    def _directories(self) -> frozenset[str]:
        return frozenset(posixpath.dirname(path) for path in self.paths if posixpath.basename(path) == CHART)

    def _reasons(self, path: str) -> Iterator[str]:
        """Yield why Helm may not render a file as it is; of no chart, it has nothing to do with Helm."""
        charts = [each for each in _above(path) if each in self._directories]
        if not charts:
            return
        inner = charts[0]
        inside = posixpath.relpath(path, inner or ".")
        if not inside.startswith(("templates/", "crds/")):
            yield "Helm writes the files in templates/ and crds/ of a chart, and this one only if a template reads it"
        if inside.startswith("templates/"):
            if posixpath.basename(path).startswith("_"):
                yield "a partial of Helm, which is rendered only where another template includes it"
            kind = self._member(posixpath.join(inner, CHART), "type")
            if kind is not None and kind.raw == "library":
                yield "Helm renders no file of a library chart"
        for chart in charts:
            ignored = self._ignored(chart, posixpath.relpath(path, chart or "."))
            if ignored:
                yield f"{self.context.tree.display(posixpath.join(chart, '.helmignore'))} {ignored}"
            parent = posixpath.dirname(posixpath.dirname(chart))
            if chart == posixpath.join(parent, "charts", posixpath.basename(chart)) and parent in self._directories:
                yield from self._conditions(parent, chart)

    def _conditions(self, parent: str, chart: str) -> Iterator[str]:
        """Yield what disables a subchart."""
        name = self._member(posixpath.join(chart, CHART), "name")
        for file in _DEPENDENCIES:
            listed = self._document(posixpath.join(parent, file))
            for each in () if listed is None else listed.items_of("dependencies"):
                own = each.get("name")
                if name is None or own is None or own.raw != name.raw:
                    continue
                for key in ("condition", "tags"):
                    value = each.get(key)
                    if value is not None and value.value not in ("", ()):
                        yield f"{value.file}:{value.line}: {key} decides whether Helm renders the subchart {name.raw}"

    def _ignored(self, chart: str, path: str) -> str:
        """Return how the .helmignore of a chart leaves a file out; empty: it does not, or there is no such file."""
        if chart not in self._ignores:
            self._ignores[chart] = self._read_ignore(posixpath.join(chart, ".helmignore"))
        ignore = self._ignores[chart]
        return ignore if isinstance(ignore, str) else "leaves the file out" if ignore.match_file(path) else ""

    def _read_ignore(self, file: str) -> "GitIgnoreSpec | str":
        """Return the patterns of a .helmignore; or why it leaves out files that they do not have, or an empty text."""
        try:
            if not self.context.tree.is_file(file):
                return ""
            text = SourceFile(self.context.tree, file).text
        except (ConfigError, OSError):
            return ""
        lines = text.removeprefix("\ufeff").splitlines()
        if any(line.strip().startswith("!") for line in lines):  # unlike git's (Helm's pkg/ignore, Rules.Ignore)
            return "has a pattern with `!`, by which Helm leaves out every file that does not match"
        from pathspec import GitIgnoreSpec  # here: few trees have such a file; Helm's other globs are a part of git's

        return GitIgnoreSpec.from_lines(lines)

    def _member(self, path: str, key: str) -> Node | None:
        document = self._document(path)
        return None if document is None else document.get(key)

    def _document(self, path: str) -> Node | None:
        if path not in self._documents:
            try:
                is_there = self.context.tree.is_file(path)
                documents = SourceFile(self.context.tree, path).documents if is_there else ()
            except (ConfigError, OSError):  # Helm refuses the chart
                documents = ()
            self._documents[path] = documents[0] if documents else None
        return self._documents[path]


def _above(path: str) -> Iterator[str]:
    """Yield the directories that a file is in, the innermost first; the last is empty, the root of the tree."""
    while path:
        path = posixpath.dirname(path)
        yield path
