"""A place with rules of several people, and one of them who keeps his in files: what `plan` and `apply` do for him."""

import json
from collections.abc import Iterable
from pathlib import Path

from attrs import define, field, frozen

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.sources.acl_lines import parse_acl, rule_of_object
from tests.support.cli.command import Result, aclog


@frozen
class Planned:
    """What `aclog plan` answered: its exit code, its steps in order, and what it said beside them."""

    result: Result
    steps: tuple[tuple[str, StandardAcl], ...]

    def added(self) -> set[StandardAcl]:
        """The rules that it would add."""
        return {acl for action, acl in self.steps if action == "ADD"}

    def removed(self) -> set[StandardAcl]:
        """The rules that it would remove."""
        return {acl for action, acl in self.steps if action == "REMOVE"}


@define(eq=False)
class Estate:
    """`place` are the flags of where the rules are; `home` holds a source's journal, files and plans.

    Every answer comes through the commands, in this process.
    """

    home: Path
    place: tuple[object, ...]
    want: Path = field(init=False)
    """What is wanted: JSON lines, unless a test writes files of a tool and points here."""

    def __attrs_post_init__(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        self.want = self.home / "want.jsonl"

    @property
    def journal(self) -> Path:
        """What this source has done."""
        return self.home / "journal.jsonl"

    @property
    def plan_file(self) -> Path:
        """The newest plan."""
        return self.home / "plan.jsonl"

    def wants(self, *acls: StandardAcl) -> None:
        """Write what is wanted as JSON lines, in this order."""
        self.want = self.home / "want.jsonl"
        self.want.write_text("".join(line_of(each) for each in acls), encoding="utf-8")

    def wants_file(self, name: str, text: str) -> None:
        """Write what is wanted as the file of a tool."""
        self.want = self.home / name
        self.want.write_text(text, encoding="utf-8")

    def plan(self, *flags: object) -> Planned:
        """Plan into `plan_file`; exit code 0 means no steps, 1 some, and 2 that no plan was left."""
        self.plan_file.unlink(missing_ok=True)
        words = ("--want", self.want, "--journal", self.journal, "--out", self.plan_file, "--format", "jsonl")
        result = aclog("plan", *self.place, *words, *flags)
        rows = [json.loads(line) for line in result.lines]
        steps = tuple((row["action"], rule_of_object(row["rule"]).acl) for row in rows)
        assert result.code == 2 or (result.code == 1) == self.plan_file.exists() >= bool(steps), result
        return Planned(result, steps)

    def apply(self, *flags: object) -> Result:
        """Apply the newest plan."""
        return aclog("apply", self.plan_file, "--yes", *flags)

    def bring(self, *flags: object) -> Planned:
        """Plan, apply without trouble, and have nothing left to do."""
        planned = self.plan(*flags)
        assert planned.result.code in {0, 1}, planned.result
        if planned.steps:
            self.apply().ok()
        assert self.plan().result.code == 0
        return planned

    def rules(self) -> set[StandardAcl]:
        """All rules that are there."""
        listed = aclog("acls", "list", *self.place, "--format", "jsonl").ok()
        return {parse_acl(line.encode()).acl for line in listed.lines}


def line_of(acl: StandardAcl) -> str:
    """Return a rule as a line of JSON."""
    return json.dumps(StandardAclWithId(id=None, acl=acl).to_dict()) + "\n"


def log_with(directory: Path, acls: Iterable[StandardAcl]) -> tuple[object, ...]:
    """Return the flags of a new log that has these rules, which somebody else added."""
    content = "".join(line_of(each) for each in acls).encode()
    aclog("import", "-", "--log", directory, stdin=content).ok()
    return "--log", directory
