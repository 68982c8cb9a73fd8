"""Edits of rules in YAML: entries of lists and mappings, and operations in them, are removed, and entries added.

Positions are those of the library's marks. Block style is edited by lines, a list in brackets by its items.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import cast

import yaml
from attrs import field

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.rule import folded_name
from aclog.sources.formats.splices import Splice, cut_items, spliced
from aclog.sources.formats.writers import grants, jikkou_acl_lines, kafka_gitops_acl_lines, strimzi_acl_lines
from aclog.sources.formats.yaml_nodes import parse_documents

# Where rules are: entries of a list, each with a list of operations, or of a mapping, each with one.


@frozen(eq=False)
class _Holder:
    """A list or a mapping of entries."""

    key: yaml.ScalarNode
    """The key of which it is the value."""
    node: yaml.SequenceNode | yaml.MappingNode

    @property
    def spans(self) -> list[tuple[yaml.Node, yaml.Node]]:
        """The first and the last node of each entry."""
        if isinstance(self.node, yaml.MappingNode):
            return list(self.node.value)
        return [(each, each) for each in self.node.value]


@frozen(eq=False)
class _Entry:
    holder: _Holder
    number: int
    """Its place in the holder."""
    operations: Sequence[yaml.ScalarNode]
    operations_node: yaml.Node
    """The list of the operations, or the only one."""

    @property
    def line(self) -> int:
        return int(self.holder.spans[self.number][0].start_mark.line) + 1


def _child(node: yaml.Node, name: str) -> tuple[yaml.ScalarNode, yaml.Node] | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next(((key, value) for key, value in node.value if key.value == name), None)


def _lists(document: yaml.Node) -> Iterator[_Holder]:
    """Yield the lists under `acls` in the spec of a resource, or of its authorization."""
    if (items := _child(document, "items")) is not None and isinstance(items[1], yaml.SequenceNode):
        for each in items[1].value:
            yield from _lists(each)
        return
    spec = _child(document, "spec")
    for part in () if spec is None else (spec, _child(spec[1], "authorization")):
        key, acls = (None if part is None else _child(part[1], "acls")) or (None, None)
        if key is not None and isinstance(acls, yaml.SequenceNode):
            yield _Holder(key, acls)


def _custom_acls(document: yaml.Node) -> Iterator[_Holder]:
    """Yield the custom ACLs of each user and service of a state of kafka-gitops."""
    for section in ("customUserAcls", "customServiceAcls"):
        node = _child(document, section)
        for key, value in node[1].value if node is not None and isinstance(node[1], yaml.MappingNode) else ():
            if isinstance(value, yaml.MappingNode):
                yield _Holder(key, value)


def _entries(holder: _Holder) -> Iterator[_Entry]:
    for number, (_, node) in enumerate(holder.spans):
        several, one = _child(node, "operations"), _child(node, "operation")
        if several is not None and isinstance(several[1], yaml.SequenceNode):
            yield _Entry(holder, number, several[1].value, several[1])
        elif one is not None and isinstance(one[1], yaml.ScalarNode):
            yield _Entry(holder, number, (one[1],), one[1])


@frozen
class _Layout:
    """How a format holds its rules."""

    holders: Callable[[yaml.Node], Iterator[_Holder]]
    lines: Callable[[Sequence[StandardAcl]], Iterator[str]]
    """The lines of entries for rules of one principal, without an indentation in front."""


def _strimzi(rules: Sequence[StandardAcl]) -> Iterator[str]:
    return (line[6:] for grant in grants(rules) for line in strimzi_acl_lines(grant))


def _jikkou(rules: Sequence[StandardAcl]) -> Iterator[str]:
    return (line[4:] for grant in grants(rules) for line in jikkou_acl_lines(grant))


def _kafka_gitops(rules: Sequence[StandardAcl]) -> Iterator[str]:
    return (line[4:] for rule in rules for line in kafka_gitops_acl_lines(rule))


_LAYOUTS: Mapping[AclsFormat, _Layout] = MappingProxyType(
    {
        AclsFormat.STRIMZI: _Layout(_lists, _strimzi),
        AclsFormat.JIKKOU: _Layout(_lists, _jikkou),
        AclsFormat.KAFKA_GITOPS: _Layout(_custom_acls, _kafka_gitops),
    }
)
FORMATS = tuple(_LAYOUTS)


# One file.


@define(eq=False)
class _File:
    text: str
    entries: list[_Entry]
    _cut: dict[int, tuple[_Entry, set[int]]] = field(factory=dict, init=False)
    """By the identity of an entry, the operations that go."""

    def remove(self, line: int, acl: StandardAcl) -> None:
        """Remove an operation of the entry that a line states. Raises ConfigError: none or several do."""
        name = folded_name(AclOperation(acl.operation).name)
        places = [
            (entry, number)
            for entry in self.entries
            for number, each in enumerate(entry.operations)
            if folded_name(each.value) == name and line in (entry.line, each.start_mark.line + 1)
        ]
        if len(places) != 1:
            raise ConfigError(f"line {line} states {acl}: a rule of another kind of entry, which is not patched")
        entry, number = places[0]
        self._cut.setdefault(id(entry), (entry, set()))[1].add(number)

    def splices(self, added: Mapping[int, tuple[_Holder, Sequence[str]]]) -> Iterator[Splice]:
        """Yield the changes; `added` has the lines to add, by the identity of a holder."""
        holders = {id(entry.holder): (entry.holder, set[int]()) for entry in self.entries}
        for entry, numbers in self._cut.values():
            if len(numbers) == len(entry.operations):
                holders[id(entry.holder)][1].add(entry.number)
            else:
                yield from self._cuts(
                    cast("yaml.SequenceNode", entry.operations_node),
                    [(each, each) for each in entry.operations],
                    numbers,
                )
        for key, (holder, removed) in holders.items():
            lines = added[key][1] if key in added else ()
            spans = holder.spans
            if removed and len(removed) == len(spans) and not lines:
                yield from self._emptied(holder)
                continue
            yield from self._cuts(holder.node, spans, removed)
            if lines:
                yield self._addition(holder, lines)

    def _cuts(
        self, node: yaml.CollectionNode, spans: Sequence[tuple[yaml.Node, yaml.Node]], removed: Collection[int]
    ) -> Iterator[Splice]:
        if not removed:
            return
        if node.flow_style:
            if len(removed) == len(spans):
                raise ConfigError(f"line {node.start_mark.line + 1}: a list in brackets of which no item would stay")
            yield from cut_items([(first.start_mark.index, last.end_mark.index) for first, last in spans], removed)
            return
        for number in removed:
            first, last = spans[number]
            yield Splice(self._line_begin(first), self._line_end(last), "")

    def _emptied(self, holder: _Holder) -> Iterator[Splice]:
        colon = self.text.index(":", holder.key.end_mark.index)
        if holder.node.flow_style:
            yield Splice(holder.node.start_mark.index + 1, holder.node.end_mark.index - 1)
            return
        yield Splice(colon + 1, colon + 1, " {}" if isinstance(holder.node, yaml.MappingNode) else " []")
        for first, last in holder.spans:
            yield Splice(self._line_begin(first), self._line_end(last))

    def _addition(self, holder: _Holder, lines: Sequence[str]) -> Splice:
        if holder.node.flow_style:
            raise ConfigError(f"line {holder.node.start_mark.line + 1}: entries in brackets, to which none are added")
        first, last = holder.spans[0][0], holder.spans[-1][1]
        before = self.text[self._line_begin(first) : first.start_mark.index]
        indent, end = before[: len(before) - len(before.lstrip())], "\r\n" if "\r\n" in self.text else "\n"
        at = self._line_end(last)
        start = "" if self.text[:at].endswith("\n") else end
        return Splice(at, at, start + "".join(f"{indent}{line}{end}" for line in lines))

    def _line_begin(self, node: yaml.Node) -> int:
        """Return where the line of an entry begins. Raises ConfigError: something else is on it as well."""
        begin = self.text.rfind("\n", 0, node.start_mark.index) + 1
        if not re.fullmatch(r" *(?:- +)?", self.text[begin : node.start_mark.index]):
            raise ConfigError(f"line {node.start_mark.line + 1}: an entry that does not begin its line")
        return begin

    def _line_end(self, node: yaml.Node) -> int:
        """Return where the line ends on which a node does."""
        at = self.text.find("\n", _end(node))
        return len(self.text) if at < 0 else at + 1


def _end(node: yaml.Node) -> int:
    """Return the end of a value: the marks of block style include the blanks and comments below."""
    if isinstance(node, yaml.ScalarNode):
        return int(node.start_mark.index if not node.value and not node.style else node.end_mark.index)
    inner = cast("yaml.CollectionNode", node)
    if inner.flow_style or not inner.value:
        return int(node.end_mark.index)
    last = inner.value[-1]
    return max(map(_end, last)) if isinstance(last, tuple) else _end(last)


def edit_entries(
    form: AclsFormat,
    text: str,
    stated: Sequence[tuple[int, StandardAcl]],
    removed: Collection[StandardAcl],
    added: Sequence[StandardAcl],
) -> str:
    """Return the text of a file of YAML after an edit.

    A new rule becomes an entry beside the last one that states rules of its principal only.

    Raises:
        ConfigError: a rule is stated in a way that is not edited, or no entry is one of the principal alone.

    """
    layout, holders = _LAYOUTS[form], _holders(form, text)
    file = _File(text, [entry for holder in holders for entry in _entries(holder)])
    for line, acl in stated:
        if acl in removed:
            file.remove(line, acl)
    principals: dict[int, set[str]] = {}
    for line, acl in stated:
        principals.setdefault(line, set()).add(acl.principal)
    own: dict[str, _Holder] = {}
    for entry in file.entries:
        lines = (entry.line, *(each.start_mark.line + 1 for each in entry.operations))
        whose = set[str]().union(*(principals.get(line, ()) for line in lines))
        if len(whose) == 1:
            own[whose.pop()] = entry.holder
    more: dict[int, tuple[_Holder, list[str]]] = {}
    for principal in dict.fromkeys(acl.principal for acl in added):
        if principal not in own:
            raise ConfigError(f"no entry states rules of {principal} only: add the first one by hand")
        new = list(layout.lines([acl for acl in added if acl.principal == principal]))
        more.setdefault(id(own[principal]), (own[principal], []))[1].extend(new)
    return spliced(text, file.splices(more))


def entry_lines(form: AclsFormat, text: str) -> Iterator[int]:
    """Yield the lines of a file of YAML, from 1, that hold nothing but entries of rules, and the keys above them."""
    breaks = [each.start() for each in re.finditer("\n", text)]  # the marks of the library also count those of Unicode
    for holder in _holders(form, text):
        spans = [(holder.key.start_mark.index, holder.key.end_mark.index)]
        if not holder.node.flow_style:
            spans += [(first.start_mark.index, _end(last)) for first, last in holder.spans]
        elif _is_alone(text, holder):
            spans = [(spans[0][0], holder.node.end_mark.index)]
        else:
            continue
        for begin, end in spans:
            yield from range(bisect_left(breaks, begin) + 1, bisect_left(breaks, end) + 2)


def _holders(form: AclsFormat, text: str) -> list[_Holder]:
    parse_documents(text.encode(), "the file")  # its levels are few: the library's composer recurses in C
    documents = list(yaml.compose_all(text, Loader=yaml.CSafeLoader))
    return [holder for each in documents for holder in _LAYOUTS[form].holders(each)]


def _is_alone(text: str, holder: _Holder) -> bool:
    """Return whether no other value is on the lines of a list or mapping in brackets, such as in JSON on one line."""
    begin, end = holder.key.start_mark.index, holder.node.end_mark.index
    above, below = text[text.rfind("\n", 0, begin) + 1 : begin], text[end:].partition("\n")[0]
    return re.fullmatch(r"[ {\[-]*", above) is not None and re.fullmatch(r"[ ,}\]\r]*(?:#.*)?", below) is not None
