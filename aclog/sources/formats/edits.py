"""Edits of files of rules: single rules are removed and added, and all other text stays byte for byte.

Nothing here checks an edit: a caller reads the edited file again, and compares its rules.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from types import MappingProxyType

from aclog.authorizer.acl import StandardAcl, object_of_rule, resource_of, rule_of_object
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.ksm import COLUMNS, KAFKA_UI, delimiter_of
from aclog.sources.formats.listings import OWN
from aclog.sources.formats.splices import Splice, cut_items, spliced
from aclog.sources.formats.writers import WRITERS, check_holds, kafka_acls_lines, ksm_lines
from aclog.sources.formats.yaml_edits import FORMATS, edit_entries, entry_lines
from aclog.terminal.columns import json_text

ARRAY = "json"
"""The format of locations in an array of rules; those of JSON lines have no format."""
_BOM = "\ufeff"


@frozen(kw_only=True)
class Edit:
    """What changes in one file, and the rules that it states."""

    stated: Sequence[tuple[int, StandardAcl]]
    """Each rule, and the line on which its statement begins, from 1; in the order of the lines."""
    removed: frozenset[StandardAcl]
    """Rules whose statements go."""
    added: Sequence[StandardAcl]

    @property
    def gone(self) -> Iterator[tuple[int, StandardAcl]]:
        """The statements that go."""
        return ((line, acl) for line, acl in self.stated if acl in self.removed)


def edited(form: str | None, text: str, edit: Edit) -> str:
    """Return the text of a file after an edit.

    Raises:
        ConfigError: its format is not edited, or not in this way, or cannot hold a rule; without the name of the file.

    """
    editor = EDITORS.get(form)
    if editor is None:
        forms = ", ".join(str(each or AclsFormat.JSONL) for each in EDITORS)
        raise ConfigError(f"files of the format {form} are not patched: only {forms} are")
    writer = None if form is None or form == ARRAY else WRITERS.get(AclsFormat(form))
    if writer is not None and edit.added:
        check_holds(AclsFormat(str(form)), edit.added, writer.unfit)
    mark = _BOM if text.startswith(_BOM) else ""
    return mark + editor(text.removeprefix(_BOM), edit)


def lines_of_rules(form: str | None, text: str, stated: Collection[int]) -> frozenset[int]:
    """Return the lines of a file, from 1, that hold rules or nothing; `stated`: those on which statements begin.

    Of all other lines, of which some may hold secrets, a patch shows none.
    """
    text = text.removeprefix(_BOM)
    lines = lines_of(text)
    if form == ARRAY:  # the reader accepts only rules in it
        return frozenset(range(1, len(lines) + 1))
    blank = (number for number, line in enumerate(lines, 1) if not line.strip())
    if form in FORMATS:
        return frozenset((*blank, *entry_lines(AclsFormat(str(form)), text)))
    heads = (line - 1 for line in stated) if form == AclsFormat.KAFKA_ACLS else ()
    return frozenset((*blank, *stated, *heads))


# Formats with a rule per line: a new one goes below the last one of its principal, or to the end.


def lines_of(text: str) -> list[str]:
    """Return the lines of a text with their ends; other line ends of Unicode are in names."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _edit_lines(text: str, edit: Edit, line_of: Callable[[StandardAcl], str]) -> str:
    lines, end = lines_of(text), "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    removed_lines = {line for line, _ in edit.gone}
    last = {acl.principal: line for line, acl in edit.stated}
    below: dict[int, list[StandardAcl]] = {}
    for acl in edit.added:
        below.setdefault(last.get(acl.principal, len(lines)), []).append(acl)

    def new_at(line: int) -> Iterator[str]:
        # a principal that has rules keeps its own beside them, also above new principals at the end
        ordered = sorted(below.get(line, ()), key=lambda acl: acl.principal not in last)
        by_principal: dict[str, list[StandardAcl]] = {}
        for acl in ordered:
            by_principal.setdefault(acl.principal, []).append(acl)
        return (f"{line_of(acl)}{end}" for acl in chain.from_iterable(by_principal.values()))

    result = []
    for number, line in enumerate(lines, 1):
        if number not in removed_lines:
            result.append(line if line.endswith("\n") or number not in below else f"{line}{end}")
        result += new_at(number)
    return "".join(result if lines else new_at(0))


def _edit_json_lines(text: str, edit: Edit) -> str:
    return _edit_lines(text, edit, lambda acl: json_text(object_of_rule(acl)))


def _edit_csv(text: str, edit: Edit) -> str:
    """Edit the csv of `acls list`, whose head names its columns; those that are no part of a rule stay empty."""
    head = next(csv.reader(io.StringIO(text, newline="")), [])

    def line_of(acl: StandardAcl) -> str:
        fields, out = object_of_rule(acl), io.StringIO()
        csv.writer(out, lineterminator="").writerow([fields.get(OWN.keys.get(name, ""), "") for name in head])
        return out.getvalue()

    return _edit_lines(text, edit, line_of)


def _edit_ksm(text: str, edit: Edit) -> str:
    head = text.partition("\n")[0].rstrip("\r")
    delimiter = delimiter_of(head)
    names = [name.strip() for name in head.split(delimiter)]
    if not text.strip() or not set(names) <= {*COLUMNS, *KAFKA_UI}:
        raise ConfigError(f"only CSV with the columns {','.join(COLUMNS)} is patched")
    is_spaced = f"{delimiter} " in head

    def line_of(acl: StandardAcl) -> str:
        _, row = ksm_lines([acl])
        cells = dict(zip(COLUMNS, next(csv.reader([row])), strict=True))
        cells[KAFKA_UI[0]] = cells[COLUMNS[0]]
        out = io.StringIO()
        csv.writer(out, delimiter=delimiter, lineterminator="").writerow([cells[name] for name in names])
        return out.getvalue().replace(delimiter, f"{delimiter} ") if is_spaced else out.getvalue()

    return _edit_lines(text, edit, line_of)


# The listing of kafka-acls.sh: paragraphs, each of a resource.


def _edit_listing(text: str, edit: Edit) -> str:
    lines = lines_of(text)
    removed_lines = {line for line, _ in edit.gone}
    last = {resource_of(acl): line for line, acl in edit.stated}
    paragraphs = [
        [line for line, _ in group] for _, group in groupby(edit.stated, key=lambda each: resource_of(each[1]))
    ]
    kept_by_addition = {last[resource_of(acl)] for acl in edit.added if resource_of(acl) in last}
    for paragraph in paragraphs:
        if removed_lines.issuperset(paragraph) and paragraph[-1] not in kept_by_addition:
            removed_lines.add(paragraph[0] - 1)  # its head, and the blank line below
            removed_lines |= {
                line for line in (paragraph[-1] + 1,) if line <= len(lines) and not lines[line - 1].strip()
            }
    below: dict[int, list[str]] = {}
    at_end: list[str] = []
    for resource in dict.fromkeys(map(resource_of, edit.added)):
        head, *entries, blank = kafka_acls_lines([acl for acl in edit.added if resource_of(acl) == resource])
        if resource in last:
            below.setdefault(last[resource], []).extend(entries)
        else:
            at_end += [head, *entries, blank]
    result = []
    for number, line in enumerate(lines, 1):
        if number not in removed_lines:
            result.append(line if line.endswith("\n") or not edit.added else f"{line}\n")
        result += [f"{each}\n" for each in below.get(number, ())]
    if at_end and result and result[-1].strip():
        result.append("\n")
    return "".join((*result, *(f"{each}\n" for each in at_end)))


# An array of rules in JSON, the output of `acls list --format json`.


_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[ \t\r\n,]*")


def _edit_array(text: str, edit: Edit) -> str:
    spans, removed = list[tuple[int, int]](), set[int]()
    at = _after(text, text.index("[") + 1)
    while text[at] != "]":
        value, end = _DECODER.raw_decode(text, at)
        if not isinstance(value, dict):
            raise ConfigError("expected rules only in the array")
        if rule_of_object(value).acl in edit.removed:
            removed.add(len(spans))
        spans.append((at, end))
        at = _after(text, end)
    if len(removed) == len(spans):
        raise ConfigError("no rule of the array would stay: only an array that keeps one is patched")
    between = text[spans[0][1] : spans[1][0]] if len(spans) > 1 else ",\n"
    at = spans[-1][1]
    more = [Splice(at, at, f"{between}{json_text(object_of_rule(acl))}") for acl in edit.added]
    return spliced(text, (*cut_items(spans, removed), *more))


def _after(text: str, at: int) -> int:
    return _BETWEEN.match(text, at).end()  # type: ignore[union-attr]  # it matches anything


def _edit_yaml(form: AclsFormat, text: str, edit: Edit) -> str:
    return edit_entries(form, text, edit.stated, edit.removed, edit.added)


EDITORS: Mapping[str | None, Callable[[str, Edit], str]] = MappingProxyType(
    {
        None: _edit_json_lines,
        AclsFormat.CSV: _edit_csv,
        AclsFormat.KSM: _edit_ksm,
        AclsFormat.KAFKA_ACLS: _edit_listing,
        ARRAY: _edit_array,
        **{form: partial(_edit_yaml, form) for form in FORMATS},
    }
)
"""By the format of a location (aclog.authorizer.acl.FileOrigin)."""
