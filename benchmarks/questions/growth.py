"""The growth of each command that answers a question: its calls and its memory, on estates of several sizes.

Calls of functions are counted, those of C included, and the most memory of Python's objects is measured: both are the
same on a busy machine. What runs inside one call of C, such as a sort, counts as one call.
"""

import contextlib
import cProfile
import io
import json
import math
import shutil
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from attrs import frozen

from aclog.__main__ import run as aclog
from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.codes import WILDCARD_PRINCIPAL, AclOperation, AclPermissionType, PatternType, ResourceType
from benchmarks.estates.shape import rule
from benchmarks.questions.kinds import KINDS
from benchmarks.report import Row

SIZES = (1_000, 4_000, 16_000, 64_000)
QUICK_SIZES = (250, 1_000)
MOST = 1.2
"""The steepest slope of the logarithm of calls, or bytes, by the logarithm of rules; n log n has 1.1 here."""


@frozen(kw_only=True)
class Estate:
    """The files of one estate, and of changes of it."""

    directory: Path
    principal: str
    topic: str

    def path(self, name: str) -> str:
        """Return the path of a file or directory."""
        return str(self.directory / name)


def _question(text: str) -> Callable[[Estate], list[str]]:
    """Return the command line of a question: `@name` is a file, and PRINCIPAL, NAME and PREFIX are those of a rule."""

    def arguments(estate: Estate) -> list[str]:
        known = {"PRINCIPAL": estate.principal, "NAME": estate.topic, "PREFIX": f"{estate.topic[:3]}*"}
        return [estate.path(word[1:]) if word.startswith("@") else known.get(word, word) for word in text.split()]

    return arguments


QUESTIONS = {
    "who-can": _question("who-can --acls @rules.jsonl --operation READ --topic PREFIX"),
    "what-can": _question("what-can --acls @rules.jsonl --principal PRINCIPAL"),
    "check no-public": _question("check no-public --acls @rules.jsonl"),
    "check only": _question("check only --acls @rules.jsonl --principal PRINCIPAL --operation READ --topic PREFIX"),
    "check not-granted": _question("check not-granted --acls @rules.jsonl --operation READ --topic PREFIX"),
    "diff of one rule": _question("diff --acls @rules.jsonl --to-acls @one.jsonl"),
    "diff of 1 %": _question("diff --acls @rules.jsonl --to-acls @some.jsonl"),
    "diff of a wide denial": _question("diff --acls @rules.jsonl --to-acls @wide.jsonl"),
    "lint": _question("lint --acls @rules.jsonl --fail-on never"),
    "usage": _question("usage --acls @rules.jsonl --accesses @accesses.log --accesses-timezone UTC"),
    "suggest": _question("suggest --acls @rules.jsonl --accesses @accesses.log --accesses-timezone UTC"),
    "unused": _question("unused --log @log --index @index"),
    "when": _question("when --log @log --principal PRINCIPAL --operation READ --topic NAME"),
    "plan": _question("plan --log @log --want @some.jsonl --journal @journal --adopt --max-deletes 100%"),
    "review": _question("review @repository --base HEAD"),
}
"""The command line of each question."""


@frozen(kw_only=True)
class Cost:
    """What one question on one estate takes."""

    calls: int
    peak: int
    """In bytes."""


def run(
    sizes: Sequence[int], scratch: Path, *, kinds: Collection[str] = (), questions: Collection[str] = ()
) -> Iterator[Row]:
    """Yield the slopes of calls and of memory for each question on each kind of estate, or for some of them."""
    for kind, rules in KINDS.items():
        if kinds and kind not in kinds:
            continue
        estates = [_written(list(rules(size)), scratch / f"{kind.replace(' ', '-')}-{size}") for size in sizes]
        for question, arguments in QUESTIONS.items():
            if questions and question not in questions:
                continue
            _ask(arguments(estates[0]), estates[0])  # what is imported and cached for all later ones
            costs = [_cost(arguments(each), each) for each in estates]
            for what, values in ("calls", [each.calls for each in costs]), ("bytes", [each.peak for each in costs]):
                print(f"  {kind}, {question}: {what} {values}", file=sys.stderr, flush=True)
                yield Row(what=f"{kind}, {question}: slope of {what}", ours=slope(sizes, values), unit="", target=MOST)
        for each in estates:
            shutil.rmtree(each.directory)


def slope(sizes: Sequence[int], values: Sequence[int]) -> float:
    """Return the slope of the logarithms between the last two sizes: what is fixed weighs least there."""
    return math.log(values[-1] / values[-2]) / math.log(sizes[-1] / sizes[-2])


def _cost(arguments: Sequence[str], estate: Estate) -> Cost:
    profile = cProfile.Profile()
    profile.enable()
    _ask(arguments, estate)
    profile.disable()
    calls = sum(entry.callcount for entry in profile.getstats())
    tracemalloc.start()
    _ask(arguments, estate)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Cost(calls=calls, peak=peak)


def _ask(arguments: Sequence[str], estate: Estate) -> None:
    """Run a command in this process. Raises AssertionError: it fails."""
    for name in ("journal", "plan"):
        estate.directory.joinpath(name).unlink(missing_ok=True)
    output, errors = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(estate.directory / "repository"),  # review reads the repository of the working directory
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        code = aclog(arguments)
    if code not in (0, 1):
        raise AssertionError(f"aclog {' '.join(arguments)}: exit code {code}: {errors.getvalue()[-500:]}")


def _written(rules: list[StandardAcl], directory: Path) -> Estate:
    """Write an estate and what the questions read besides."""
    repository = directory / "repository"
    repository.mkdir(parents=True)
    named = sorted({each.principal for each in rules} - {WILDCARD_PRINCIPAL})
    topic = next(each.resource_name for each in rules if each.principal == named[0])
    estate = Estate(directory=directory, principal=named[0], topic=topic)
    denial = rule("*", WILDCARD_PRINCIPAL, permission=AclPermissionType.DENY)
    _write(directory / "rules.jsonl", rules)
    _write(directory / "one.jsonl", rules[:-1])
    _write(directory / "some.jsonl", [each for number, each in enumerate(rules) if number % 100 != 50])
    _write(directory / "wide.jsonl", [*rules, denial])
    (directory / "accesses.log").write_text("".join(map(_access, range(len(rules)), rules)), encoding="utf-8")
    _ask(("import", estate.path("rules.jsonl"), "--log", estate.path("log")), estate)
    reading = ("--accesses", estate.path("accesses.log"), "--accesses-timezone", "UTC")
    _ask(("usage-index", *reading, "--log", estate.path("log"), "--index", estate.path("index")), estate)
    git = ("git", "-C", str(repository), "-c", "user.name=n", "-c", "user.email=e@x")
    subprocess.run([*git, "init", "-q"], check=True)
    shutil.copy(directory / "rules.jsonl", repository)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "rules"], check=True)
    shutil.copy(directory / "some.jsonl", repository / "rules.jsonl")
    return estate


def _write(path: Path, rules: Sequence[StandardAcl]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(_row(each))}\n" for each in dict.fromkeys(rules))


def _row(each: StandardAcl) -> dict[str, object]:
    row = StandardAclWithId(id=None, acl=each).to_dict()
    del row["id"]
    return row


def _access(number: int, each: StandardAcl) -> str:
    """Return the line of Kafka's authorizer for a request of a rule; a denied one if the rule denies."""
    name = f"{each.resource_name}x" if each.pattern_type == PatternType.PREFIXED else each.resource_name
    operation = AclOperation.READ if each.operation == AclOperation.ALL else AclOperation(each.operation)
    principal = "User:guest" if each.principal == WILDCARD_PRINCIPAL else each.principal
    host = "10.9.9.9" if each.host == "*" or "/" in each.host else each.host
    answer = "Denied" if each.permission_type == AclPermissionType.DENY else "Allowed"
    kind = ResourceType(each.resource_type).name
    return access_line(1_790_000_000 + number % 86_400, (principal, host, operation.name, kind, name), answer)


def access_line(second: int, access: Sequence[str], answer: str) -> str:
    """Return the line that Kafka's authorizer logs for an access: principal, host, operation, resource type, name."""
    principal, host, operation, kind, name = access
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(second))
    return (
        f"[{when},000] INFO Principal = {principal} is {answer} operation = {operation} from host = {host} "
        f"on resource = {kind.title().replace('_', '')}:LITERAL:{name} for request = Fetch with resourceRefCount = 1 "
        "based on rule DefaultDeny (kafka.authorizer.logger)\n"
    )
