"""The pages of commands: their flags from the code, and what docs/commands says of them."""

import re
from collections.abc import Iterable, Mapping

from aclog.cli.help import CommandPage, FlagGroup, marked
from tests.docs.site.places import ROOT

COMMANDS = ROOT / "docs/commands"
GENERAL = COMMANDS / "README.md"
"""What all commands have in common."""
_TITLE = re.compile(r"# aclog (?P<name>[^\n]+)\n")
_SECTION = re.compile(r"^## aclog (?P<name>[^\n]+)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def command_sections() -> dict[str, str]:
    """Return what docs/commands says of each command, by its name without `aclog`.

    The page of a group of commands has a section for each; that of a command is about it alone, and its own sections
    are one level deeper here.
    """
    sections = {}
    for path in sorted(set(COMMANDS.glob("*.md")) - {GENERAL}):
        page = path.read_text("utf-8")
        grouped = {section["name"]: section["text"].strip() for section in _SECTION.finditer(page)}
        title = _TITLE.match(page)
        assert title is not None, path
        sections |= grouped or {title["name"]: page[title.end() :].strip().replace("\n## ", "\n### ")}
    return sections


def general_page(root: CommandPage) -> str:
    """Return the page on all commands, with the options that stand before a command."""
    text = GENERAL.read_text("utf-8")
    return "\n".join([f"{text}\n\n## Options before a command\n", *(_flags(group) for group in root.groups)])


def command_page_text(pages: Iterable[CommandPage], sections: Mapping[str, str]) -> str:
    """Return the page of a command, or of a group of commands, whose own page comes first.

    A command's section is what docs/commands says of it, its usage first; then come all its flags.
    """
    parts = []
    for each in pages:
        name = " ".join(each.words[1:])
        if len(each.words) == 2:
            parts.append(f"# {each.name}\n\n{marked(each.summary, '`', '`')}\n")
        if each.below:
            parts.append(
                _table(
                    ("command", "does"),
                    [
                        (
                            f"[`{' '.join((*each.words, word))}`](#aclog-{'-'.join((*each.words[1:], word))})",
                            marked(line, "`", "`"),
                        )
                        for word, line in each.below
                    ],
                )
            )
            continue
        section = sections.get(name, "") or f"```\n{each.usage}\n```\n"
        parts += [f"## {each.name}\n", f"{section}\n"]
        parts.append("\n".join([f"### Flags of {each.name}\n", *(_flags(group) for group in each.groups)]))
    return "\n".join(parts)


def _flags(group: FlagGroup) -> str:
    rows = [(f"`{line.names}`", _cell(line.text)) for line in group.lines]
    return f"**{marked(group.title, '`', '`')}**\n\n{_table(('flag', 'meaning'), rows)}"


def _cell(text: str) -> str:
    """Return a help text as a cell: what would be a mark outside code is escaped."""
    parts = marked(text, "`", "`").split("`")
    parts[::2] = [re.sub(r"([\[\]*_<|])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def _table(head: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    return (
        "\n".join([f"| {head[0]} | {head[1]} |", "|---|---|", *(f"| {left} | {right} |" for left, right in rows)])
        + "\n"
    )
