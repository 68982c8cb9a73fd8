"""What is new in an access log, given what was taken before: a file counts once, however it was renamed or packed."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from attrs import frozen

from aclog.usage.accesses.access_input import PARTS, AccessInput, AccessPart, AvroPart, TablePart, TextPart
from aclog.usage.accesses.contents import Known, Part, new_parts
from aclog.usage.accesses.line_parts import PinnedFile, line_parts
from aclog.usage.accesses.parquet_parts import parquet_parts

Advance: TypeAlias = Callable[[int, int], None]
"""Called with how many bytes of how many were looked through."""


@frozen(kw_only=True)
class NewAccesses:
    """The new part of a log."""

    input: AccessInput
    contents: tuple[Part, ...]
    """What is new in each file."""
    files: int
    """The files that were looked at."""
    waiting: tuple[str, ...]
    """Those that end in a line without line feed, which is left until it is whole."""

    @property
    def grown(self) -> int:
        """The files of which the beginning was known."""
        return sum(part.start > 0 for part in self.contents)


def only_new(found: AccessInput, known: AbstractSet[Known], advance: Advance) -> NewAccesses:
    """Return what is new; `known` are the lengths and digests of the contents that were taken before.

    Raises:
        ConfigError: a file cannot be read, or was truncated or replaced meanwhile.
        OSError: a file is gone.

    """
    tables = {groups.path for part in found.parts if isinstance(part, TablePart) for groups in part.table.groups}
    avro = {part.file.path: part for part in found.parts if isinstance(part, AvroPart)}
    lines = [file for file in found.files if file.path not in tables | avro.keys()]
    of_lines = _new(lines, known, advance, lines=True)
    of_tables = _new([file for file in found.files if file.path in tables | avro.keys()], known, advance, lines=False)
    parts: list[AccessPart] = [*_text_parts(found, of_lines)]
    whole = [part.content.path for part in of_tables if part.is_new]
    parts += (avro[path] for path in whole if path in avro)
    for zone in {part.zone for part in found.parts if isinstance(part, TablePart)}:
        paths = [path for path in whole if path not in avro]
        parts += (TablePart(table=part, zone=zone) for part in parquet_parts(paths, PARTS))
    return NewAccesses(
        input=AccessInput(parts=tuple(parts), files=found.files),
        contents=tuple(part for part in (*of_lines, *of_tables) if part.is_new),
        files=len(found.files),
        waiting=tuple(part.content.path for part in of_lines if part.content.waiting),
    )


def _new(files: Sequence[PinnedFile], known: AbstractSet[Known], advance: Advance, *, lines: bool) -> list[Part]:
    # the same file may be given twice; the second time it holds nothing new
    return new_parts([(file.path, file.path, file.size) for file in files], known, lines=lines, advance=advance)


def _text_parts(found: AccessInput, of_lines: Sequence[Part]) -> list[TextPart]:
    of_path = {part.lines.file.path: part for part in found.parts if isinstance(part, TextPart)}
    parts = []
    for new in of_lines:
        form = of_path.get(new.content.path)
        if form is None or not new.is_new:  # an empty file is in no part
            continue
        lines = line_parts(form.lines.file, start=new.start, end=new.content.length)
        parts += [TextPart(lines=each, form=form.form, zone=form.zone, mixed=form.mixed) for each in lines]
    return parts
