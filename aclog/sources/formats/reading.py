"""Reads the ACLs of files: each file by the format that claims it."""

import codecs
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from attrs import evolve, frozen

from aclog.authorizer.acl import FileOrigin
from aclog.metalog.errors import ConfigError, plural
from aclog.sources.acl_lines import numbered_lines, parse_acls
from aclog.sources.formats import jikkou, julie, kafka_acls, kafka_gitops, ksm, ns4kafka, strimzi, terraform
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.rule import (
    FileTree,
    LocatedRule,
    ReadContext,
    SourceFile,
    StatedRules,
    check_no_rules,
    leave_out,
)

# JSON lines, the output of `acls list --format jsonl`, in a directory of files.


_HEAD = 1 << 18
"""Bytes of a file that hold its first rule."""


def claims(file: SourceFile) -> bool:
    """Return whether the name or the first line matches this format."""
    return file.has_suffix(".jsonl", ".ndjson") or _has_acl(file)


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
        for line, rule in parse_acls(numbered_lines([file.content.split(b"\n")]), file.name):
            yield LocatedRule(acl=rule.acl, id=rule.id, origin=FileOrigin(file=file.name, line=line))


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
        AclsFormat.KSM: Reader(ksm.claims, ksm.read),
        AclsFormat.STRIMZI: Reader(strimzi.claims, strimzi.read),
        AclsFormat.KAFKA_GITOPS: Reader(kafka_gitops.claims, kafka_gitops.read),
        AclsFormat.JULIE: Reader(julie.claims, julie.read),
        AclsFormat.JIKKOU: Reader(jikkou.claims, jikkou.read),
        AclsFormat.NS4KAFKA: Reader(ns4kafka.claims, ns4kafka.read),
        AclsFormat.TERRAFORM: Reader(terraform.claims, terraform.read),
    }
)
"""In the order in which they are tried for a file."""

_NEVER_EMPTY: Mapping[AclsFormat, tuple[str, ...]] = MappingProxyType(
    {AclsFormat.JSONL: (".jsonl", ".ndjson", ".json"), AclsFormat.KSM: (".csv",)}
)
"""Suffixes of files that are never intentionally empty; an empty YAML or Terraform file is valid."""


@frozen(kw_only=True)
class ReadFiles:
    """The result of reading a tree."""

    stated: StatedRules
    notes: tuple[str, ...]
    """Notes: the number of files and rules, and the ones left out."""


def read_tree(context: ReadContext, form: AclsFormat) -> ReadFiles:
    """Return the rules of a tree.

    A file that is given alone is read in the given format; in a directory, and with AUTO, each file by the format that
    claims it, and files that none claims are counted.

    Raises:
        ConfigError: no file is of the format, or something on the way to a rule is not understood; with file and line.
            Or `context` is strict, and one of several files was emptied.
        OSError: a file cannot be read.

    """
    tree = context.tree
    paths = tree.paths()
    files = [SourceFile(tree, path) for path in paths]
    if context.strict and len(files) > 1:
        _check_not_emptied(files, form)
    if form is not AclsFormat.AUTO and paths == [tree.name.rsplit("/", 1)[-1]]:
        claimed: dict[AclsFormat, list[SourceFile]] = {form: files}
    else:
        claimed = _claimed(files, form, context)
    if not claimed:
        raise ConfigError(_nothing_claimed(tree, form, len(files)))
    stated = StatedRules.of_rules(_rules(claimed, context))
    return ReadFiles(stated=stated, notes=tuple(_notes(context, stated, claimed)))


def _check_not_emptied(files: Iterable[SourceFile], form: AclsFormat) -> None:
    """Refuse a file that was emptied by a failed write, since its rules would be lost. Raises ConfigError, OSError.

    To state that there are no rules at all, leave only such a file.
    """
    suffixes = [each for key, endings in _NEVER_EMPTY.items() if form in (key, AclsFormat.AUTO) for each in endings]
    for file in files:
        if file.has_suffix(*suffixes) and not file.content:
            raise ConfigError(f"{file.name}: empty: delete the file if it is meant to hold no rules")


def format_of(file: SourceFile, readers: Mapping[AclsFormat, Reader] = READERS) -> AclsFormat | None:
    """Return the first format that claims a file; None if none does. Raises as Reader.claims."""
    return next((each for each, reader in readers.items() if reader.claims(file)), None)


def is_claimed(file: SourceFile) -> bool:
    """Return whether a format other than JSON lines claims a file. Raises as Reader.claims."""
    return any(reader.claims(file) for form, reader in READERS.items() if form is not AclsFormat.JSONL)


def _claimed(files: Iterable[SourceFile], form: AclsFormat, context: ReadContext) -> dict[AclsFormat, list[SourceFile]]:
    readers: Mapping[AclsFormat, Reader] = READERS if form is AclsFormat.AUTO else {form: READERS[form]}
    claimed: dict[AclsFormat, list[SourceFile]] = {}
    for file in files:
        claimant = format_of(file, readers)
        if claimant is None:
            if form is AclsFormat.AUTO:
                check_no_rules(file)
            leave_out(file, context)
        else:
            claimed.setdefault(claimant, []).append(file)
    return claimed


def _rules(claimed: Mapping[AclsFormat, Sequence[SourceFile]], context: ReadContext) -> Iterator[LocatedRule]:
    for form, files in claimed.items():
        rules = READERS[form].read(files, context)
        if form is AclsFormat.JSONL:  # may be a million, and no tool writes them
            yield from rules
        else:
            yield from (evolve(rule, origin=evolve(rule.origin, form=form.value)) for rule in rules)


def _nothing_claimed(tree: FileTree, form: AclsFormat, count: int) -> str:
    what = "of a known format" if form is AclsFormat.AUTO else f"of the format {form}"
    is_one = tree.paths() == [tree.name.rsplit("/", 1)[-1]]
    problem = f"not {what}" if is_one else f"none of its {count:,} files is {what}"
    return f"{tree.name}: {problem}: expected one of {', '.join(READERS)} (--acls-format)"


def _notes(
    context: ReadContext, stated: StatedRules, claimed: Mapping[AclsFormat, Sequence[SourceFile]]
) -> Iterator[str]:
    used = {form: len(files) for form, files in claimed.items()}
    listed = ", ".join(f"{form} {number:,}" for form, number in used.items())
    rules, files = plural(len(stated), "rule"), plural(sum(used.values()), "file")
    yield f"{context.tree.name}: {rules} in {files} ({listed})"
    if context.ignored:
        kinds = ", ".join(f"{kind} {number:,}" for kind, number in sorted(context.ignored.items()))
        yield f"{context.tree.name}: ignored, as they cannot make rules: {kinds}"
