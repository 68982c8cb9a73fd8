"""The mend of a finding as text that a person can paste into a shell."""

from collections.abc import Iterator

from aclog.analysis.lint.finding import Finding
from aclog.authorizer.acl import acl_text
from aclog.authorizer.acl_command import acl_command
from aclog.authorizer.change_place import ChangePlace
from aclog.metalog.printable import printable


def mend_commands(finding: Finding, place: ChangePlace) -> Iterator[str]:
    """Yield a command for each change of a finding's fix, as a comment if no flags can say it."""
    for change in finding.fix:
        command = acl_command(change.acl, add=change.added, place=place)
        if command is None:
            word = "add" if change.added else "remove"
            command = f"# {word} {printable(acl_text(change.acl))}: no flags of kafka-acls.sh can express it"
        yield command


def mend_text(finding: Finding, place: ChangePlace) -> str:
    """Return the mend as lines of a shell: its commands, or its words as a comment if only a person can tell more."""
    return "\n".join(mend_commands(finding, place)) or f"# {printable(finding.advice)}"
