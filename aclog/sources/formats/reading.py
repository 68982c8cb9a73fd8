"""Reads the ACLs of files: each file by the format that claims it."""

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeAlias

from attrs import evolve

from aclog.authorizer.acl import FileOrigin, is_symbolic, origin_text, rule_of_object
from aclog.metalog.errors import ConfigError, plural
from aclog.metalog.values import frozen
from aclog.sources.acl_lines import numbered_lines, parse_acls
from aclog.sources.forks import each_part
from aclog.sources.formats import (
    ansible,
    jikkou,
    julie,
    kafka_acls,
    kafka_gitops,
    ksm,
    listings,
    ns4kafka,
    redpanda,
    shell,
    strimzi,
    terraform,
)
from aclog.sources.formats.clusters import Layout, clusters_of
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.helm import Charts
from aclog.sources.formats.kustomize import Kustomizations
from aclog.sources.formats.rule import (
    AbsentFileError,
    LocatedRule,
    Noted,
    Parsed,
    ReadContext,
    SourceFile,
    StatedRules,
)
from aclog.sources.formats.terraform.inputs import is_variables_file, judge_variables
from aclog.sources.formats.unread import Dormant, Unread, UnreadKind, unread_text
from aclog.sources.formats.verdicts import YAML_SUFFIXES, judge_broken, judge_file

# JSON lines, the output of `acls list --format jsonl`, in a directory of files.


_HEAD = 1 << 18
"""Bytes of a file that hold its first rule."""


def claims(file: SourceFile) -> bool:
    """Return whether the first line is a rule, or, by the name, is meant to be one."""
    if not file.has_suffix(".jsonl", ".ndjson"):
        return _has_acl(file)
    try:
        return not _is_of_others(file)
    except ConfigError:  # damaged: its reader reports it
        return True


def _is_of_others(file: SourceFile) -> bool:
    """Return whether all lines at the beginning are objects with keys of no rule, and none has a key of one."""
    lines = file.content[:_HEAD].removeprefix(codecs.BOM_UTF8).split(b"\n")
    first = next((line for line in lines if line.strip()), b"")
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and not value.keys() & _KEYS and not any(key in file.content for key in _MARKS)


_KEYS = frozenset({"resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType"})
_MARKS = (b'"resourceType"', b'"permissionType"')


def _has_acl(file: SourceFile) -> bool:
    start = file.content[:_HEAD].removeprefix(codecs.BOM_UTF8).lstrip()
    if start[:1] not in (b"{", b"[") or b'"resourceType"' not in start:
        return False
    try:
        value, _ = json.JSONDecoder().raw_decode(start.lstrip(b"[ \r\n\t").decode(errors="replace"))
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.keys() >= {"resourceType", "principal", "operation"}


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:  # noqa: ARG001
    """Yield the rules of the files.

    Raises:
        ConfigError: a line that is not an ACL; OSError: a file cannot be read.

    """
    for file in files:
        if is_array(file):
            yield from _array_rules(file)
            continue
        for line, rule in parse_acls(numbered_lines([file.content.split(b"\n")]), file.name):
            yield LocatedRule(acl=rule.acl, id=rule.id, origin=FileOrigin(file=file.name, line=line))


def is_array(file: SourceFile) -> bool:
    """Return whether a file is an array of rules in JSON, the output of `acls list --format json`."""
    return file.content[:_HEAD].removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"[" and _has_acl(file)


_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[ \t\r\n]*")
_ARRAY = "json"
"""The format of locations in an array, of which a line may be a part of a rule; those of JSON lines have no format."""


def _array_rules(file: SourceFile) -> Iterator[LocatedRule]:
    text, separator = file.text, "["
    at = text.index("[")
    while separator != "]":
        start = _BETWEEN.match(text, at + 1).end()  # type: ignore[union-attr]  # it matches anything
        line = file.line_at(start)
        try:
            value, end = _DECODER.raw_decode(text, start)
            if not isinstance(value, dict):
                raise file.error(line, "expected a JSON object")
            rule = rule_of_object(value)
        except (ValueError, RecursionError) as error:
            raise file.error(line, f"not JSON: {error}") from error
        yield LocatedRule(acl=rule.acl, id=rule.id, origin=FileOrigin(file=file.name, line=line, form=_ARRAY))
        at = _BETWEEN.match(text, end).end()  # type: ignore[union-attr]
        separator = text[at : at + 1]
        if separator not in ("]", ","):
            raise file.error(file.line_at(at), "expected , or ] after a rule")
    if text[at + 1 :].strip():
        raise file.error(file.line_at(at), "more follows the end of the array")


@frozen
class Reader:
    """How one format is read."""

    claims: Callable[[SourceFile], bool]
    """Whether a file is of the format; raises ConfigError if it may be and cannot be read."""
    read: Callable[[Sequence[SourceFile], ReadContext], Iterable[LocatedRule]]
    """The rules of all files that the format claims, which are sorted by path."""


READERS: Mapping[AclsFormat, Reader] = MappingProxyType(
    {
        AclsFormat.JSONL: Reader(claims, read),
        AclsFormat.KAFKA_ACLS: Reader(kafka_acls.claims, kafka_acls.read),
        AclsFormat.RPK: Reader(listings.claims_rpk, listings.read_rpk),
        AclsFormat.CONFLUENT: Reader(listings.claims_confluent, listings.read_confluent),
        AclsFormat.TABLE: Reader(listings.claims_table, listings.read_table),
        AclsFormat.CSV: Reader(listings.claims_csv, listings.read_csv),
        AclsFormat.KSM: Reader(ksm.claims, ksm.read),
        AclsFormat.STRIMZI: Reader(strimzi.claims, strimzi.read),
        AclsFormat.KAFKA_GITOPS: Reader(kafka_gitops.claims, kafka_gitops.read),
        AclsFormat.JULIE: Reader(julie.claims, julie.read),
        AclsFormat.JIKKOU: Reader(jikkou.claims, jikkou.read),
        AclsFormat.NS4KAFKA: Reader(ns4kafka.claims, ns4kafka.read),
        AclsFormat.REDPANDA: Reader(redpanda.claims, redpanda.read),
        AclsFormat.ANSIBLE: Reader(ansible.claims, ansible.read),
        AclsFormat.SHELL: Reader(shell.claims, shell.read),
        AclsFormat.TERRAFORM: Reader(terraform.claims, terraform.read),
    }
)
"""In the order in which they are tried for a file."""

_BY_ITSELF: Mapping[AclsFormat, Reader] = MappingProxyType(
    {form: reader for form, reader in READERS.items() if form is not AclsFormat.SHELL}
)
"""The readers of AUTO: what a script does is read on request only."""

_NEVER_EMPTY: Mapping[AclsFormat, tuple[str, ...]] = MappingProxyType(
    {AclsFormat.JSONL: (".jsonl", ".ndjson", ".json"), AclsFormat.KSM: (".csv",)}
)
"""Suffixes of files that are never intentionally empty; an empty YAML or Terraform file is valid."""


_SYMBOLIC = frozenset({AclsFormat.JSONL, AclsFormat.TERRAFORM})
"""The formats whose readers make symbols (aclog.authorizer.symbols)."""


@frozen(kw_only=True)
class ReadFiles:
    """The result of reading a tree."""

    stated: StatedRules
    notes: tuple[str, ...]
    """Notes: the number of files and rules, and the ones left out."""
    unread: tuple[Unread, ...]
    """What may hold rules and was not read."""
    dormant: tuple[Dormant, ...]
    """What makes no rules by the values that were read."""
    nothing_read: str | None
    """Why no file was read, where that is no error."""
    layout: Layout
    """What distinguishes the clusters of the rules."""
    topics: tuple[tuple[str, FileOrigin], ...]
    """The names of the topics that the files declare, and where."""


def read_tree(context: ReadContext, form: AclsFormat) -> ReadFiles:
    """Return the rules of a tree.

    A file that is given alone is read in the given format; in a directory, and with AUTO, each file by the format that
    claims it. Files that none claims are counted, or reported as unread.

    Raises:
        ConfigError: no file is of the format, or something on the way to a rule is not understood; with file and line.
            Or `context` is strict, and one of several files was emptied.
        OSError: a file cannot be read.

    """
    tree, paths = context.tree, context.paths()
    files = [SourceFile(tree, path) for path in paths]
    is_one = _is_one_file(context, paths)
    context.claims = is_claimed
    if context.strict and len(files) > 1:
        _check_not_emptied(files, form)
    if form is not AclsFormat.AUTO and is_one:
        claimed: dict[AclsFormat, list[SourceFile]] = {form: files}
        _judge_parts(form, files[0], context)
    else:
        claimed = _claimed(files, form, context, is_one=is_one)
    if is_one:
        _refuse_unread(context)
    readable = _without_changed(claimed, context, paths)
    if readable:
        nothing = None
    else:
        is_left_out = bool(claimed and context.unread)
        nothing = _nothing_left(context) if is_left_out else _nothing_claimed(context, form, paths)
    if nothing is not None and not context.may_be_empty:
        raise ConfigError(nothing)
    stated = StatedRules.of_rules(_rules(readable, context))
    if is_one:
        _refuse_unread(context)  # which its format may have found since
    layout = Layout(
        tree=context.tree,
        stated=stated,
        files=() if is_one else paths,
        twins=frozenset(context.twins),
        overlays=context.overlays,
    )
    if context.strict:
        _refuse_several(layout)
    return ReadFiles(
        stated=stated,
        notes=tuple(_notes(context, stated, claimed)),
        unread=tuple(context.unread),
        dormant=tuple(context.dormant),
        nothing_read=nothing,
        layout=layout,
        topics=tuple(context.topics_declared),
    )


def _refuse_several(layout: Layout) -> None:
    """Refuse files that state several clusters, where all rules are those of one. Raises ConfigError."""
    clusters = clusters_of([layout])
    if clusters is not None and _ONE_CLUSTER & set(clusters.bases):
        raise ConfigError(f"{layout.tree.name}: these are {clusters.listed()}: give the files of one")


_ONE_CLUSTER = frozenset({jikkou.CLUSTER, ns4kafka.CLUSTER})
"""What no tool applies to one cluster: the tools read the cluster from the files."""


_REFUSED = (UnreadKind.BROKEN, UnreadKind.TEMPLATE, UnreadKind.ENCODED)
"""What a file that is given alone must not be."""
_OF_YAML = frozenset(
    {
        *(AclsFormat.KSM, AclsFormat.STRIMZI, AclsFormat.KAFKA_GITOPS, AclsFormat.JULIE, AclsFormat.NS4KAFKA),
        *(AclsFormat.REDPANDA, AclsFormat.ANSIBLE),
    }
)
"""Formats that do not judge the broken documents of their files themselves."""


def _refuse_unread(context: ReadContext) -> None:
    """Refuse a file that is given alone, and is broken, a template, or not in UTF-8. Raises ConfigError."""
    for each in context.unread:
        if each.kind in _REFUSED:
            raise ConfigError(f"{each.file}:{each.line}: {each.reason}")


def _is_one_file(context: ReadContext, paths: Sequence[str]) -> bool:
    return context.is_output or paths == [context.tree.name.rsplit("/", 1)[-1]]


def _without_changed(
    claimed: Mapping[AclsFormat, Sequence[SourceFile]], context: ReadContext, paths: Sequence[str]
) -> Mapping[AclsFormat, Sequence[SourceFile]]:
    """Return the files that each format reads, without those whose resources a kustomization or a chart changes."""
    users = claimed.get(AclsFormat.STRIMZI, ())
    kustomizations = Kustomizations(context, paths)
    changed = kustomizations.not_to_read([each.path for each in users])
    resources = (each.path for form in _RESOURCES for each in claimed.get(form, ()) if each.path not in changed)
    changed |= Charts(context, paths).not_to_read(resources)
    context.overlays = kustomizations.overlays(frozenset(each.path for each in users))
    if not changed:
        return claimed
    unchanged = {form: [each for each in files if each.path not in changed] for form, files in claimed.items()}
    return {form: files for form, files in unchanged.items() if files}


_RESOURCES = (AclsFormat.STRIMZI, AclsFormat.JIKKOU, AclsFormat.NS4KAFKA, AclsFormat.REDPANDA)
"""Formats of resources in Kubernetes' manner, which charts may hold."""


def _check_not_emptied(files: Iterable[SourceFile], form: AclsFormat) -> None:
    """Refuse a file that was emptied by a failed write, since its rules would be lost. Raises ConfigError, OSError.

    To state that there are no rules at all, leave only such a file.
    """
    suffixes = [each for key, endings in _NEVER_EMPTY.items() if form in (key, AclsFormat.AUTO) for each in endings]
    for file in files:
        if file.has_suffix(*suffixes) and not file.content:
            raise ConfigError(f"{file.name}: empty: delete the file if it is meant to hold no rules")


def format_of(file: SourceFile, readers: Mapping[AclsFormat, Reader] = _BY_ITSELF) -> AclsFormat | None:
    """Return the first format that claims a file; None if none does. Raises as Reader.claims."""
    return next((each for each, reader in readers.items() if reader.claims(file)), None)


def is_claimed(file: SourceFile) -> bool:
    """Return whether a format other than JSON lines claims a file. Raises as Reader.claims."""
    return any(reader.claims(file) for form, reader in _BY_ITSELF.items() if form is not AclsFormat.JSONL)


_PART = 32
"""Files that a process reads at once."""


def _claimed(
    files: Sequence[SourceFile], form: AclsFormat, context: ReadContext, *, is_one: bool
) -> dict[AclsFormat, list[SourceFile]]:
    """Return the files of each format, and judge the others.

    Each file is judged by itself, and parsed for that, so that several processes share the files of a large tree.
    """
    readers: Mapping[AclsFormat, Reader] = _BY_ITSELF if form is AclsFormat.AUTO else {form: READERS[form]}
    claimed: dict[AclsFormat, list[SourceFile]] = {}
    variables = list[SourceFile]()
    parts = [files[at : at + _PART] for at in range(0, len(files), _PART)]

    def sort(number: int) -> _Sorted:
        return _Sorted.of(parts[number], readers, context.for_part(), is_one=is_one)

    for number, part in each_part(range(len(parts)), sort, what="files") if parts else ():
        context.add(part.noted)
        for file, claimant, parsed in zip(parts[number], part.claimants, part.parsed, strict=True):
            if parsed is not None:
                file.take_parsed(parsed)
            if isinstance(claimant, AclsFormat):
                claimed.setdefault(claimant, []).append(file)
            elif claimant is not None:
                variables.append(file)
    for file in variables if AclsFormat.TERRAFORM not in claimed else ():  # a module judges those around it
        judge_variables(file, context)
    return claimed


_Claimant: TypeAlias = AclsFormat | Literal["variables"] | None
"""The format that claims a file; or that it is one of values, which belongs to modules of Terraform; None: no format
does, and the file was judged."""


@frozen(kw_only=True)
class _Sorted:
    """What some files are, and what was noted of these."""

    claimants: list[_Claimant]
    parsed: "list[Parsed | None]"
    """The documents of each file that a format claims; None: they were not read."""
    noted: Noted

    @staticmethod
    def of(
        files: Iterable[SourceFile], readers: Mapping[AclsFormat, Reader], context: ReadContext, *, is_one: bool
    ) -> "_Sorted":
        """Sort files by the formats that claim them."""
        claimants: list[_Claimant] = []
        parsed: list[Parsed | None] = []
        for file in files:
            claimant = _claimant(file, readers, context, is_one=is_one)
            claimants.append(claimant)
            parsed.append(None if claimant is None else file.parsed)
        return _Sorted(claimants=claimants, parsed=parsed, noted=context.noted())


def _claimant(
    file: SourceFile, readers: Mapping[AclsFormat, Reader], context: ReadContext, *, is_one: bool
) -> _Claimant:
    """Return what a file is, and judge it if it is of no format."""
    try:
        if not file.tree.is_file(file.path):
            file.tree.read(file.path)  # raises the reason
        claimant = format_of(file, readers)
    except AbsentFileError as error:
        if is_one:
            raise
        _judge_absent(file, error, context)
        return None
    except ConfigError as error:
        if is_one:
            raise
        _judge_unreadable(file, error, context)
        return None
    is_auto = readers is _BY_ITSELF
    if claimant is not None:
        _judge_parts(claimant, file, context)
        return claimant
    if is_auto and is_variables_file(file):
        return "variables"
    if is_auto:
        judge_file(file, context)
    else:
        context.ignore("other file")
    return None


def _judge_parts(form: AclsFormat, file: SourceFile, context: ReadContext) -> None:
    """Judge the documents of a file that its format does not see: those that are not YAML."""
    if form in _OF_YAML and file.has_suffix(*YAML_SUFFIXES):
        judge_broken(file, context)


def _judge_absent(file: SourceFile, error: AbsentFileError, context: ReadContext) -> None:
    """Judge a symbolic link that leads nowhere, or a submodule, by its name, which is all that is known."""
    if file.has_suffix(*_FORMAT_SUFFIXES) or "." not in file.base_name:
        place = FileOrigin(file=file.name, line=1)
        context.not_read(UnreadKind.LINK, place, str(error).removeprefix(f"{file.name}: "))
    else:
        context.ignore("symbolic link that leads nowhere")


def _judge_unreadable(file: SourceFile, error: ConfigError, context: ReadContext) -> None:
    """Judge a file whose content cannot be taken apart: damaged, not in UTF-8, or over the largest size."""
    try:
        judge_file(file, context)
    except ConfigError:
        if file.has_suffix(*_FORMAT_SUFFIXES, ".gz") or "." not in file.base_name:
            why = str(error).removeprefix(f"{file.name}: ")
            context.not_read(UnreadKind.ENCODED, FileOrigin(file=file.name, line=1), why)
        else:
            context.ignore("other file")


_FORMAT_SUFFIXES = (*YAML_SUFFIXES, ".jsonl", ".ndjson", ".csv", ".acls", ".tf", ".tofu", ".tfvars", ".tfstate", ".hcl")


def _rules(claimed: Mapping[AclsFormat, Sequence[SourceFile]], context: ReadContext) -> Iterator[LocatedRule]:
    for form, files in claimed.items():
        for rule in READERS[form].read(files, context):
            if form not in _SYMBOLIC and is_symbolic(rule.acl):
                raise ConfigError(f"{origin_text(rule.origin)}: a text with U+FDD0 before ${{, which no name has")
            if form is AclsFormat.JSONL:  # may be a million, and no tool writes them
                yield rule
            else:
                yield evolve(rule, origin=evolve(rule.origin, form=form.value))


def _nothing_left(context: ReadContext) -> str:
    """Return why no file was read, where a kustomization or a chart changes the resources of each one."""
    return f"{context.tree.name}: no file of rules is read: {context.unread[0].text()}; {unread_text(context.unread)}"


def _nothing_claimed(context: ReadContext, form: AclsFormat, paths: Sequence[str]) -> str:
    tree, what = context.tree, "of a known format" if form is AclsFormat.AUTO else f"of the format {form}"
    if not paths:
        left_out = f"all of its files are left out: {_kinds_text(context.left_out)}" if context.left_out else "no files"
        return f"{tree.name}: {left_out}: expected files of rules"
    files = "its only file is not" if len(paths) == 1 else f"none of its {len(paths):,} files is"
    problem = f"not {what}" if _is_one_file(context, paths) else f"{files} {what}"
    unread = f"; {unread_text(context.unread)}, such as {context.unread[0].text()}" if context.unread else ""
    looked_at = (SourceFile(tree, path) for path in paths[:_LOOKED_AT])
    reasons = (reason for file in looked_at if (reason := why_unclaimed(file)) is not None)
    hint = f"; {reason}" if form is AclsFormat.AUTO and (reason := next(reasons, None)) is not None else ""
    return f"{tree.name}: {problem}: expected one of {', '.join(READERS)} (--acls-format){hint}{unread}"


_LOOKED_AT = 100
"""How many files without rules are looked at for a hint."""


def why_unclaimed(file: SourceFile) -> str | None:
    """Return why AUTO reads no rules from a file, and the fix, where the reason is known; with the file's name."""
    if is_variables_file(file):
        value = file.tree.flag_value(file.path)
        return f"{file.name}: values of Terraform's variables: expected the module's directory, and --var-file {value}"
    try:
        is_script, is_binary = shell.claims(file), b"\0" in file.content
    except (ConfigError, OSError):
        return None
    if is_script:
        return f"{file.name}: a shell script with commands of kafka-acls: --acls-format shell reads it"
    return f"{file.name}: a binary file, or text that is not UTF-8" if is_binary else None


def _kinds_text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {number:,}" for kind, number in sorted(counts.items()))


def _notes(
    context: ReadContext,
    stated: StatedRules,
    claimed: Mapping[AclsFormat, Sequence[SourceFile]],
) -> Iterator[str]:
    used = {form: len(files) for form, files in claimed.items()}
    listed = ", ".join(f"{number:,} {form}" for form, number in used.items()) or "none of a known format"
    rules, files = plural(len(stated), "rule"), plural(sum(used.values()), "file")
    yield f"{context.tree.name}: {rules} in {files} ({listed})"
    yield from context.notes
    if context.unread:
        yield f"{context.tree.name}: {unread_text(context.unread)}"
    if context.left_out:
        yield f"{context.tree.name}: not looked at: {_kinds_text(context.left_out)}"
    if context.ignored:
        yield f"{context.tree.name}: ignored, as they cannot make rules: {_kinds_text(context.ignored)}"
