"""A draft as a patch of the files of its source, for a pull request; apart from drafts, as it reads files of rules."""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from aclog.authorizer.acl import FileOrigin, Origins, StandardAcl, acl_text, object_of_rule
from aclog.authorizer.acls_image import RuleChange
from aclog.metalog.errors import ConfigError
from aclog.sources.acl_lines import parse_acl
from aclog.sources.formats.rule import repository_root
from aclog.terminal.columns import json_text

# JSON lines are the only format in which a line states one rule and nothing else, so that lines can be removed and
# added. Their locations have no format (aclog.sources.formats.reading); a line is read again before it is removed.


_NO_END = "\\ No newline at end of file\n"


def file_of(acl: StandardAcl, origins: Origins) -> str | None:
    """Return a file of JSON lines that states a rule; None without one."""
    lines = (each for each in origins.of(acl) if isinstance(each, FileOrigin))
    return next((each.file for each in lines if _is_line(each)), None)


def _is_line(place: FileOrigin) -> bool:
    return place.form is None and not place.calls


def patch_lines(changes: Sequence[RuleChange], origins: Origins, others: Iterable[StandardAcl]) -> Iterator[str]:
    """Yield a unified diff, with line ends, that makes changes in the files that state the rules.

    It names the files from their directory that has `.git`, so `git apply` takes it there.

    A new rule goes below those of its principal, if a file has some, or to the end of the first file; `others` are the
    rules of the source, of which the first ones with a file decide that.

    Raises:
        ConfigError: a rule is stated in another format, or by a line that has changed since it was read; or no file of
            JSON lines is known; or a file is in no repository of git, or in another one than the first file.
            OSError: a file cannot be read.

    """
    removed = [each.acl for each in changes if not each.added]
    places = [(acl, place) for acl in removed for place in _places(acl, origins)]
    added = [each.acl for each in changes if each.added]
    homes = _homes(added, origins, others, [place.file for _, place in places])
    files = list(dict.fromkeys([*(place.file for _, place in places), *homes.values()]))
    names = _names(files)
    for file in files:
        before = _lines_of(file)
        gone = {place.line: acl for acl, place in places if place.file == file}
        for number, acl in gone.items():
            if number > len(before) or _stated(before[number - 1]) != acl:
                raise ConfigError(f"{file}:{number}: the file has changed since it was read")
        new = [acl for acl in added if homes[acl] == file]
        after = list(_with([line for number, line in enumerate(before, 1) if number not in gone], new))
        name = names[file]
        yield from _diff(before, after, f"a/{name}", f"b/{name}")


def _names(files: Sequence[str]) -> dict[str, str]:
    """Return the name of each file in its repository; git patches no symbolic link, so it is that of the target."""
    paths = {file: Path(file).resolve() for file in files}
    roots = {file: repository_root(path.parent) for file, path in paths.items()}
    for file, root in roots.items():
        if root is None:
            raise ConfigError(f"{file}: not in a git repository: `git apply` cannot patch it")
        if root != roots[files[0]]:
            raise ConfigError(f"{file}: not in the git repository of {files[0]}: a patch is for one repository")
    return {file: path.relative_to(roots[file] or path).as_posix() for file, path in paths.items()}


def _lines_of(file: str) -> list[str]:
    """Return the lines of a file with their ends; other line ends of Unicode are in names."""
    try:
        text = Path(file).read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not text in UTF-8: it cannot be patched") from error
    if text.removeprefix("\ufeff").lstrip().startswith("["):
        raise ConfigError(f"{file}: a JSON array: only JSON lines are patched")
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _places(acl: StandardAcl, origins: Origins) -> list[FileOrigin]:
    places = origins.of(acl)
    lines = [each for each in places if isinstance(each, FileOrigin) and _is_line(each)]
    if not lines or len(lines) < len(places):
        raise ConfigError(f"{acl_text(acl)}: no line of a file of JSON lines states it: only such files are patched")
    return lines


def _homes(
    added: Sequence[StandardAcl], origins: Origins, others: Iterable[StandardAcl], touched: Sequence[str]
) -> dict[StandardAcl, str]:
    """Return the file of each new rule: one that states a rule of its principal, or the first one."""
    if not added:
        return {}
    by_principal: dict[str, str] = {}
    first = next(iter(touched), None)
    principals = {acl.principal for acl in added}
    for acl in others:
        if acl.principal in by_principal or (first is not None and acl.principal not in principals):
            continue
        file = file_of(acl, origins)
        if file is not None:
            by_principal[acl.principal], first = file, first or file
    if first is None:
        raise ConfigError("no file of JSON lines states the rules: only such files are patched")
    return {acl: by_principal.get(acl.principal, first) for acl in added}


def _with(lines: Sequence[str], added: Sequence[StandardAcl]) -> Iterator[str]:
    """Yield the lines, and that of each new rule below the last one of its principal, or at the end."""
    last = {rule.principal: at for at, line in enumerate(lines) if (rule := _stated(line))} if added else {}
    below: dict[int, dict[str, list[str]]] = {}
    for acl in added:
        blocks = below.setdefault(last.get(acl.principal, len(lines) - 1), {})
        blocks.setdefault(acl.principal, []).append(f"{json_text(object_of_rule(acl))}\n")

    def new_at(at: int) -> Iterator[str]:
        # a principal that has rules keeps its own beside them, also above new principals at the end
        blocks = sorted(below.get(at, {}).items(), key=lambda each: each[0] not in last)
        return chain.from_iterable(block for _, block in blocks)

    for at, line in enumerate(lines):
        yield line if line.endswith("\n") or at not in below else f"{line}\n"
        yield from new_at(at)
    if not lines:
        yield from new_at(-1)


def _stated(line: str) -> StandardAcl | None:
    try:
        return parse_acl(line.encode()).acl
    except ConfigError:
        return None


def _diff(before: Sequence[str], after: Sequence[str], old: str, new: str) -> Iterator[str]:
    for line in difflib.unified_diff(before, after, old, new):
        yield line if line.endswith("\n") else f"{line}\n{_NO_END}"
