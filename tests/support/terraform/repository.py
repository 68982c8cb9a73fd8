"""A Terraform repository that grows by commits: modules, for_each, count, conditionals, dynamic names, and mistakes.

python -m tests.support.terraform.repository DIR [SEED] [COMMITS]
"""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from attrs import define, field, frozen

from tests.support.terraform import repository_files as files

OPERATIONS = ["Read", "Write", "Describe", "Create", "Alter", "DescribeConfigs"]


@frozen
class Commit:
    """One commit: all files, what it says, and whether it is broken on purpose."""

    files: dict[str, str]
    message: str
    broken: bool


@define
class Team:
    """A team of one root module."""

    name: str
    topics: list[str]
    groups: list[str]
    host: str | None
    is_reader: bool
    legacy: int


@define
class Estate:
    """What the repository says; owned by the generator, which changes it step by step."""

    draw: random.Random
    teams: dict[str, list[Team]] = field(factory=dict)
    shared: list[tuple[str, str, str]] = field(factory=list)
    """Rows of a CSV file: principal, topic, operation."""
    partners: dict[str, list[str]] = field(factory=dict)
    """Of a YAML file: topics by partner."""
    prefix: str = "corp"
    strict: bool = True
    style: int = 0
    replicas: int = 3
    serial: int = 0

    def fresh(self, kind: str) -> str:
        """Return a name that nothing has."""
        self.serial += 1
        return f"{kind}{self.serial}"

    def team(self) -> Team:
        """Return a new team."""
        draw = self.draw
        return Team(
            name=self.fresh("team-"),
            topics=[self.fresh("topic.") for _ in range(draw.randint(2, 5))],
            groups=[self.fresh("group_") for _ in range(draw.randint(0, 2))],
            host=draw.choice([None, None, "10.0.0.1", "192.168.1.20"]),
            is_reader=draw.random() < 0.5,
            legacy=draw.choice([0, 0, 1, 2]),
        )


def history(seed: int, commits: int, teams: int = 52) -> Iterator[Commit]:
    """Yield commits; about one in eight is broken, and the next one mends it."""
    draw = random.Random(seed)
    estate = Estate(draw)
    estate.teams = {root: [estate.team() for _ in range(teams)] for root in ("prod", "stage")}
    estate.shared = [(f"User:app{n}", f"shared.{n % 7}", draw.choice(OPERATIONS)) for n in range(teams)]
    estate.partners = {f"partner{n}": [estate.fresh("feed.") for _ in range(3)] for n in range(max(teams // 4, 1))}
    yield Commit(files.render(estate), "begin", broken=False)
    number = 1
    while number < commits:
        if draw.random() < 0.12:
            what, broken = files.broken(files.render(estate), draw)
            yield Commit(broken, f"break: {what}", broken=True)
        else:
            message = _change(estate)
            yield Commit(files.render(estate), message, broken=False)
        number += 1


def _change(estate: Estate) -> str:  # noqa: PLR0911
    draw = estate.draw
    teams = estate.teams[draw.choice(["prod", "stage"])]
    team = draw.choice(teams)
    kind = draw.randrange(12)
    if kind == 0:
        teams.insert(draw.randrange(len(teams)), estate.team())
        return "add a team"
    if kind == 1 and len(teams) > 3:
        teams.remove(team)
        return "remove a team"
    if kind in (2, 3):
        team.topics.append(estate.fresh("topic."))
        return "add a topic"
    if kind == 4:
        team.topics.pop()
        team.topics.append(estate.fresh("topic."))
        return "replace a topic"
    if kind == 5:
        team.host = draw.choice([None, f"10.1.{draw.randrange(256)}.7"])
        return "change a host"
    if kind == 6:
        team.is_reader, team.legacy = not team.is_reader, draw.randrange(4)
        return "change what a team may do"
    if kind == 7:
        estate.prefix = draw.choice(["corp", "corp.eu", "acme-", "x"])
        return "rename the prefix"
    if kind == 8:
        estate.strict = not estate.strict
        return "switch a condition"
    if kind == 9:
        estate.shared.append((f"User:app{draw.randrange(99)}", estate.fresh("shared."), draw.choice(OPERATIONS)))
        return "add a row"
    if kind == 10:
        estate.partners[estate.fresh("partner")] = [estate.fresh("feed.")]
        return "add a partner"
    estate.style, estate.replicas = draw.randrange(4), draw.randrange(1, 6)
    return "write it another way"


def write_commit(directory: Path, commit: Commit) -> None:
    """Make the directory hold the files of a commit, and commit them if it is a repository."""
    for path in sorted(directory.rglob("*"), reverse=True):
        relative = path.relative_to(directory)
        if relative.parts[0] != ".git" and path.is_file() and relative.as_posix() not in commit.files:
            path.unlink()
    for name, text in commit.files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    if (directory / ".git").exists():
        git(directory, "add", "-A")
        git(directory, "commit", "--quiet", "--allow-empty", "-m", commit.message)


def git(directory: Path, *arguments: str) -> str:
    """Run git in a directory, and return what it prints."""
    settings = ["-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(directory), *settings, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def begin(directory: Path) -> None:
    """Make an empty repository."""
    directory.mkdir(parents=True, exist_ok=True)
    git(directory, "init", "--quiet", "--initial-branch", "main")


def main() -> None:
    """Write a repository."""
    directory, seed, commits = Path(sys.argv[1]), *(int(each) for each in [*sys.argv[2:], "1", "200"][:2])
    begin(directory)
    for commit in history(seed, commits):
        write_commit(directory, commit)
    sys.stdout.write(json.dumps({"commits": commits, "seed": seed}) + "\n")


if __name__ == "__main__":
    main()
