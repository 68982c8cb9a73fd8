"""Unread content: what may hold rules and was not read.

The content of a file has one of three verdicts: *rules*; *known to hold none*, by a positive list of structures; and
*not read*. A format reports the third with `ReadContext.not_read`, and continues:

    context.not_read(UnreadKind.TERRAFORM, block, "a resource of a provider that is not known", name="redpanda_acl")

The second argument is a node, or anything else with a file and a line. The reason is a clause that names what is not
understood, and the next step if there is one. `name` is what several objects have in common (a type of resource, a
kind); with the kind it is the value of `--accept-unread`. Content that is known to hold no rule is counted with
`ReadContext.ignore`. An error is for content that the format's own tool refuses. `aclog.sources.formats.verdicts`
judges files and documents that no format claims; a format passes it the parts that are not its own (`judge_resource`).
"""

from collections import defaultdict
from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from aclog.authorizer.acl import FileOrigin
from aclog.metalog.errors import plural
from aclog.metalog.values import frozen


class UnreadKind(StrEnum):
    """Why content was not read; the words of `--accept-unread`."""

    RESOURCE = "resource"
    """A resource in Kubernetes' manner, of a kind or a version that no format reads."""
    TERRAFORM = "terraform"
    """A resource of a provider that no format reads, or whose rules cannot be evaluated."""
    VARIABLES = "variables"
    """Values of variables that may be passed from outside, such as a file for `-var-file`."""
    KUSTOMIZATION = "kustomization"
    """Rules that a kustomization changes, or may take from elsewhere."""
    DOCUMENT = "document"
    """A document of an unknown tool with keys of a rule: values of Helm, a playbook, a program of Pulumi in YAML."""
    EMBEDDED = "embedded"
    """Text with rules inside of another resource, such as a ConfigMap."""
    TEMPLATE = "template"
    """A template that is not rendered."""
    BROKEN = "broken"
    """A document with an error of syntax, such as a duplicate key."""
    PROGRAM = "program"
    """A script or a program that changes ACLs."""
    ENCODED = "encoded"
    """A file whose content is elsewhere, encrypted, or not in UTF-8."""
    LINK = "link"
    """A symbolic link that leads nowhere."""


class Located(Protocol):
    """A place in a file: a Node, a Block of Terraform, a FileOrigin."""

    @property
    def file(self) -> str:
        """The file as messages name it."""
        ...

    @property
    def line(self) -> int:
        """The line, from 1."""
        ...


@frozen(kw_only=True)
class Unread:
    """An object or a file that was not read, and may hold rules."""

    kind: UnreadKind
    file: str
    line: int
    reason: str
    """Why it was not read, and the next step: a clause."""
    name: str = ""
    """What objects of its sort have in common, such as `redpanda_acl` or `ConfigMap`; may be empty."""

    @property
    def label(self) -> str:
        """The kind and the name, as `--accept-unread` takes them: `terraform:redpanda_acl`."""
        return f"{self.kind}:{self.name}" if self.name else self.kind.value

    @property
    def origin(self) -> FileOrigin:
        """Its location."""
        return FileOrigin(file=self.file, line=self.line)

    def text(self) -> str:
        """Return such as `b.tf:1: terraform:redpanda_acl not read: a provider that is not known`."""
        return f"{self.file}:{self.line}: {self.label} not read: {self.reason}"

    def to_dict(self) -> dict[str, object]:
        """Return the object for JSON; scripts depend on the keys."""
        return {
            "unread": self.kind.value,
            "name": self.name,
            "file": self.file,
            "line": self.line,
            "reason": self.reason,
        }


@frozen(kw_only=True)
class Dormant:
    """A statement of rules that makes none by the values that were read, and may make some by others from outside.

    It is no gap of a state, whose rules are known; but a change of the statement has an effect that is not seen.
    """

    unread: Unread
    """How a change of it is reported."""
    address: str
    """What identifies it in its file."""
    content: str
    """Equal for equal statements, wherever they are in the file."""


# Texts on unread content.


_PLACES = 3
"""How many locations of one label are shown."""


def unread_text(unread: Sequence[Unread]) -> str:
    """Return how many objects of which files were not read, by label, with the first locations."""
    by_label: dict[str, list[Unread]] = defaultdict(list)
    for each in unread:
        by_label[each.label].append(each)
    labels = "; ".join(f"{label} {len(items):,} ({_places(items)})" for label, items in sorted(by_label.items()))
    files = len({each.file for each in unread})
    return f"{plural(len(unread), 'object')} in {plural(files, 'file')} not read, which may hold rules: {labels}"


def _places(items: Sequence[Unread]) -> str:
    more = f" and {len(items) - _PLACES:,} more" if items[_PLACES:] else ""
    return ", ".join(f"{each.file}:{each.line}" for each in items[:_PLACES]) + more
