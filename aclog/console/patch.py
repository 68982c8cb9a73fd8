"""A draft as a patch of the files of its source, for a pull request; apart from drafts, as it reads files of rules."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import chain
from pathlib import Path
from typing import Protocol, TypeAlias

from aclog.authorizer.acl import FileOrigin, Origins, StandardAcl, acl_text
from aclog.authorizer.acls_image import RuleChange
from aclog.metalog.errors import ConfigError, MetadataError, printable
from aclog.metalog.values import frozen
from aclog.sources.formats.edits import EDITORS, Edit, edited, lines_of, lines_of_rules
from aclog.sources.formats.rule import repository_root
from aclog.sources.read_options import FoundRules

_NO_END = "\\ No newline at end of file\n"
_CONTEXT = 3
"""The lines of context above and below a change, as those of git."""


class Files(Protocol):
    """Files of rules on the disk (aclog.sources.choice.AclsSource)."""

    @property
    def origins(self) -> Origins:
        """The locations of the rules that were read."""
        ...

    @property
    def own_paths(self) -> frozenset[str] | None:
        """The paths of the files of the rules, of a part of a source; None: of all."""
        ...

    def with_contents(self, contents: Mapping[str, bytes]) -> FoundRules:
        """Return the rules of the files as they are now, some with other contents. Raises ConfigError, OSError."""
        ...


def is_patched(acl: StandardAcl, origins: Origins) -> bool:
    """Return whether a file states a rule whose format is edited."""
    return any(isinstance(each, FileOrigin) and _is_edited(each) for each in origins.of(acl))


def _is_edited(origin: FileOrigin) -> bool:
    return origin.form in EDITORS and not origin.calls


def patch_lines(changes: Sequence[RuleChange], files: Files, rules: Iterable[StandardAcl]) -> Iterator[str]:
    """Yield a unified diff, with line ends, that makes changes in the files that state the rules.

    It names the files from their directory that has `.git`, so `git apply --unidiff-zero` takes it there. The source
    is read again with the patched files: their rules are those of the draft, and all others stay in their files.

    Its lines are of rules only, as a viewer may see all rules but not the files, which may hold secrets besides. A
    change may so have less context than git expects without `--unidiff-zero`.

    A new rule goes below those of its principal, if a file that is edited has some, or else into the first such file;
    `rules` are all of the source.

    Raises:
        ConfigError: a rule is stated in a way that is not edited; the files have changed since they were read; the
            patched files would state other rules; a changed line holds more than rules; a file is in no repository of
            git, in another one than the first file, or the same as another one; or its name is not printable.
        OSError: a file cannot be read.

    """
    statements = _Statements.of(rules, files.origins)
    edits = _edits(changes, statements)
    names = _names(list(edits))
    before = {file: _text_of(file) for file in edits}
    try:
        _check_lines(files, statements, before)
        after = {file: _edited(file, before[file], statements, edit) for file, edit in edits.items()}
        rule_lines = {file: _rule_lines(file, before[file], statements) for file in edits}
        _check(files, statements, edits, {file: text.encode() for file, text in after.items()})
    except Exception as error:  # an editor reads a text with the rules that were read: another one breaks it anywhere
        _check_unchanged(files, statements, list(edits))
        if isinstance(error, (IndexError, ValueError)):
            raise ConfigError(f"not patched: {error}") from error
        raise
    for file, text in after.items():
        hunks = _hunks(file, lines_of(before[file]), lines_of(text), rule_lines[file])
        yield from (f"--- a/{names[file]}\n", f"+++ b/{names[file]}\n", *hunks)


# The rules of the source and where they are stated; which files change.


_Counted: TypeAlias = Counter[tuple[str, StandardAcl]]
"""How often each file states each rule."""


@frozen(eq=False)
class _Statements:
    located: Sequence[tuple[FileOrigin, StandardAcl]]
    """In the order of the rules."""

    @staticmethod
    def of(rules: Iterable[StandardAcl], origins: Origins) -> "_Statements":
        pairs = ((origin, acl) for acl in rules for origin in origins.of(acl))
        return _Statements([(origin, acl) for origin, acl in pairs if isinstance(origin, FileOrigin)])

    def in_file(self, file: str) -> list[tuple[int, StandardAcl]]:
        """Return the statements of a file in the order of the lines."""
        lines = [(origin.line, acl) for origin, acl in self.located if origin.file == file]
        return sorted(lines, key=lambda each: each[0])

    def form_of(self, file: str) -> str | None:
        """Return the format of a file of which there are statements."""
        return next(origin.form for origin, _ in self.located if origin.file == file)

    def counted(self, only: Sequence[str] | None = None) -> _Counted:
        """Return how often each file states each rule; `only`: those files."""
        return Counter((origin.file, acl) for origin, acl in self.located if only is None or origin.file in only)


@frozen(kw_only=True)
class _Changes:
    """The rules of one file that go and come."""

    removed: list[StandardAcl]
    added: list[StandardAcl]


def _edits(changes: Sequence[RuleChange], statements: _Statements) -> dict[str, _Changes]:
    """Return the changes of each file. Raises ConfigError: no edited file states a rule."""
    edits: dict[str, _Changes] = {}
    to_remove = {each.acl for each in changes if not each.added}
    stated = set[StandardAcl]()
    first: str | None = None
    home: dict[str, str] = {}
    for origin, acl in statements.located:
        if acl in to_remove:
            if not _is_edited(origin):
                what = f"a file of the format {origin.form}" if origin.form not in EDITORS else "a module"
                raise ConfigError(
                    f"{origin.file}:{origin.line}: {acl_text(acl)} is stated by {what}, which is not edited"
                )
            removed = edits.setdefault(origin.file, _Changes(removed=[], added=[])).removed
            removed += [acl] if acl not in removed else []
            stated.add(acl)
        if _is_edited(origin):
            first = first or origin.file
            home.setdefault(acl.principal, origin.file)
    if missing := [each for each in changes if not each.added and each.acl not in stated]:
        raise ConfigError(f"{acl_text(missing[0].acl)}: no file states it")
    first = next(iter(edits), first)
    for acl in (each.acl for each in changes if each.added):
        file = home.get(acl.principal, first)
        if file is None:
            forms = ", ".join(str(form or "jsonl") for form in EDITORS)
            raise ConfigError(f"no file of a format that is edited states the rules: {forms}")
        edits.setdefault(file, _Changes(removed=[], added=[])).added.append(acl)
    return edits


def _edited(file: str, text: str, statements: _Statements, changes: _Changes) -> str:
    edit = Edit(stated=statements.in_file(file), removed=frozenset(changes.removed), added=changes.added)
    try:
        return edited(statements.form_of(file), text, edit)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from error


def _rule_lines(file: str, text: str, statements: _Statements) -> frozenset[int]:
    return lines_of_rules(statements.form_of(file), text, [line for line, _ in statements.in_file(file)])


# The proof: the files are read again, patched.


def _check(files: Files, statements: _Statements, edits: Mapping[str, _Changes], contents: Mapping[str, bytes]) -> None:
    """Compare the rules of the patched files with those of the draft. Raises ConfigError: they differ."""
    only = None if files.own_paths is None else list(edits)
    expected = statements.counted(only)
    for file, changes in edits.items():
        for acl in changes.removed:
            del expected[file, acl]
        expected.update((file, acl) for acl in changes.added)
    try:
        actual = _statements_of(files, contents).counted(only)
    except (MetadataError, OSError) as error:
        raise ConfigError(f"not patched, as the patched files cannot be read: {error}") from error
    for file, acl in _differing(actual, expected):
        verb = "state" if actual[file, acl] > expected[file, acl] else "no longer state"
        raise ConfigError(f"{file}: not patched, as the patched file would {verb} {acl_text(acl)}")


def _check_lines(files: Files, statements: _Statements, before: Mapping[str, str]) -> None:
    """Raise ConfigError if a file states a rule on another line than when it was read; MetadataError: it is damaged."""
    now = _statements_of(files, {file: text.encode() for file, text in before.items()})
    for file in before:
        if set(now.in_file(file)) != set(statements.in_file(file)):
            raise ConfigError(f"{file}: the file has changed since it was read")


def _check_unchanged(files: Files, statements: _Statements, touched: Sequence[str]) -> None:
    """Raise ConfigError if the files state other rules than those that were read, which no edit fits."""
    only = None if files.own_paths is None else touched
    try:
        actual = _statements_of(files, {}).counted(only)
    except (MetadataError, OSError) as error:
        raise ConfigError(f"{touched[0]}: the file has changed since it was read: {error}") from error
    expected = statements.counted(only)
    for file, _ in _differing(actual, expected):
        raise ConfigError(f"{file}: the file has changed since it was read")


def _differing(actual: _Counted, expected: _Counted) -> Iterator[tuple[str, StandardAcl]]:
    """Yield the rules, each with its file, that are not stated as often as expected."""
    return chain(actual - expected, expected - actual)


def _statements_of(files: Files, contents: Mapping[str, bytes]) -> _Statements:
    patched = files.with_contents(contents)
    return _Statements.of([rule.acl for rule in patched.rules], patched.origins)


# The diff.


def _names(files: Sequence[str]) -> dict[str, str]:
    """Return the name of each file in its repository; git patches no symbolic link, so it is that of the target."""
    paths = {file: Path(file).resolve() for file in files}
    first = dict[Path, str]()
    for file, path in paths.items():
        if (same := first.setdefault(path, file)) != file:
            raise ConfigError(f"{file}: the same file as {same}: a patch would change it twice")
    roots = {file: repository_root(path.parent) for file, path in paths.items()}
    for file, root in roots.items():
        if root is None:
            raise ConfigError(f"{file}: not in a git repository: `git apply` cannot patch it")
        if root != roots[files[0]]:
            raise ConfigError(f"{file}: not in the git repository of {files[0]}: a patch is for one repository")
    names = {file: path.relative_to(roots[file] or path).as_posix() for file, path in paths.items()}
    for name in names.values():
        # In a patch, a line end in a name would begin another line of it, such as the head of another file.
        if not name.isprintable():
            raise ConfigError(f"{printable(name)}: a name with unprintable characters, which a patch cannot hold")
    return names


def _text_of(file: str) -> str:
    try:
        return Path(file).read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not text in UTF-8: it cannot be patched") from error


@frozen
class _Hunk:
    """Lines that are replaced, from 0: before those from `old` up to `old_end`, after those from `new` to `new_end`."""

    old: int
    old_end: int
    new: int
    new_end: int


def _hunks(file: str, before: Sequence[str], after: Sequence[str], rule_lines: Collection[int]) -> Iterator[str]:
    """Yield the lines of a diff below its head, of which those of the file are `rule_lines`, from 1, to be of rules."""
    at, end = 0, 0
    group: list[_Hunk] = []
    for each in _changed_lines(file, before, after, rule_lines):
        start = each.old
        while start > max(each.old - _CONTEXT, end) and start in rule_lines:
            start -= 1
        if group and start > end:
            yield from _hunk(before, after, group, at, end)
            group = []
        at = at if group else start
        group.append(each)
        end = each.old_end
        while end < min(each.old_end + _CONTEXT, len(before)) and end + 1 in rule_lines:
            end += 1
    if group:
        yield from _hunk(before, after, group, at, end)


def _changed_lines(file: str, before: Sequence[str], after: Sequence[str], rule_lines: Collection[int]) -> list[_Hunk]:
    """Return what changes. Raises ConfigError: a line that goes holds more than rules."""
    unknown = 0
    # The second one is slow, and needed if frequent lines are taken for changed ones.
    for is_quick in (True, False):
        steps = SequenceMatcher(None, before, after, autojunk=is_quick).get_opcodes()
        changes = [_Hunk(*span) for tag, *span in steps if tag != "equal"]
        lines = (line for each in changes for line in range(each.old + 1, each.old_end + 1) if line not in rule_lines)
        unknown = next(lines, 0)
        if not unknown:
            return changes
        if before[unknown - 1] not in after:
            break
    raise ConfigError(f"{file}:{unknown}: the line holds more than rules, which a patch would show: edit it by hand")


def _hunk(before: Sequence[str], after: Sequence[str], changes: Sequence[_Hunk], begin: int, end: int) -> Iterator[str]:
    """Yield the lines of one hunk, of the lines before from `begin` up to `end`."""
    first, last = changes[0], changes[-1]
    new, new_end = first.new - (first.old - begin), last.new_end + (end - last.old_end)
    yield f"@@ -{_range(begin, end)} +{_range(new, new_end)} @@\n"
    for each in changes:
        yield from _marked(" ", before[begin : each.old])
        yield from _marked("-", before[each.old : each.old_end])
        yield from _marked("+", after[each.new : each.new_end])
        begin = each.old_end
    yield from _marked(" ", before[begin:end])


def _range(begin: int, end: int) -> str:
    return f"{begin + 1 if end > begin else begin},{end - begin}"


def _marked(mark: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n{_NO_END}"
