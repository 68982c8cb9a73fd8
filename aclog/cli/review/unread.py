"""Changed files that hold no rules as far as aclog knows: `no effective change` says nothing of them."""

from collections.abc import Iterator

from aclog.cli.review.sides import ReviewSides
from aclog.sources.formats.file_tree import DirectoryTree, FileTree
from aclog.sources.formats.reading import format_of
from aclog.sources.formats.source_file import SourceFile
from aclog.sources.git.git_history import top_directory
from aclog.sources.git.git_place import GitPlace
from aclog.sources.git.git_tree import GitTree

_PROSE = (".md", ".rst", ".adoc")
_SHOWN = 3


def unread(sides: ReviewSides) -> Iterator[str]:
    """Yield what is to be said of changed files under the reviewed path that are of no known format."""
    found = list(_unread(sides))
    if found:
        more = f" and {len(found) - _SHOWN:,} more" if found[_SHOWN:] else ""
        yield f"changed, but of no known format, so no rules were read from it: {', '.join(found[:_SHOWN])}{more}"


def _unread(sides: ReviewSides) -> Iterator[str]:
    files = [each for each in sorted(sides.changed) if _may_have_rules(each, sides.path) and sides.head_has(each)]
    if not files:
        return
    if sides.head_commit is None:
        yield from _unclaimed(files, DirectoryTree(str(top_directory())))
    else:
        with GitTree(place=GitPlace(ref=sides.head_commit, path="")) as tree:
            yield from _unclaimed(files, tree)


def _may_have_rules(file: str, path: str) -> bool:
    below = file.removeprefix(f"{path}/") if path else file
    is_below = not path or below != file
    return is_below and not any(part.startswith(".") for part in below.split("/")) and not file.endswith(_PROSE)


def _unclaimed(files: list[str], tree: FileTree) -> Iterator[str]:
    for file in files:
        if tree.is_file(file) and format_of(SourceFile(tree, file)) is None:
            yield file
