"""Lint, tests, reviews, plans, comparisons and proofs: what the commands of these names print as JSON."""

# ruff: noqa: PT028  # `test` is not a test of pytest

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias, TypedDict, Unpack

from attrs import evolve, field, frozen

from aclog.analysis.comparison import turning
from aclog.analysis.intents import Intent, needs_of
from aclog.analysis.regions import Direction, Query
from aclog.authorizer.acl import AclOperation, ResourcePattern, host_address
from aclog.authorizer.settings import named_generation, parse_super_users
from aclog.library.authorizer import (
    enum_code,
    flag_of,
    optional_text,
    path_of,
    resource_of,
    text_of,
    texts_of,
    told_as_log_errors,
    value_text,
)
from aclog.library.log import Rules, chosen_source
from aclog.metalog.errors import ConfigError
from aclog.ops import check as proofs
from aclog.ops.lint import lint_source
from aclog.ops.plan import DesiredRules, Ownership, new_plan, read_goal
from aclog.ops.policies import TwoStates, compare, difference_objects
from aclog.ops.review import ReviewedChange, review_change
from aclog.ops.test import Measures, SelectedTests, load_tests, measure, run_files, summary_object
from aclog.planning.plan import PlaceAddress, PlaceKind
from aclog.planning.planner import DeleteLimit
from aclog.sources.acl_lines import NameFile
from aclog.sources.choice import ChosenSource
from aclog.sources.repository import AuthorizerSettings, RepositorySettings, load_repository_settings
from aclog.terminal.columns import json_text
from aclog.terminal.output import notices_to

AnyPath: TypeAlias = str | PathLike[str]


@frozen(repr=False)
class Report:
    """What a command found: the objects of its JSON, and whether it would end with exit code 0."""

    passed: bool
    """True if nothing is found that makes the command fail."""
    objects: tuple[Mapping[str, Any], ...] = field(kw_only=True)
    notes: tuple[str, ...] = field(kw_only=True)
    """What the command prints on stderr; warnings begin with `warning: `."""

    def __len__(self) -> int:
        return len(self.objects)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(dict, self.objects)

    def __bool__(self) -> NoReturn:
        raise TypeError("the truth of a report is ambiguous: expected report.passed, or len(report)")

    def __repr__(self) -> str:
        return f"Report(passed={self.passed}, objects={len(self)})"

    def __str__(self) -> str:
        return "\n".join(map(json_text, self.objects))

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the objects of `--format jsonl`."""
        return [json.loads(json_text(each)) for each in self.objects]

    def as_json(self) -> str:
        """Return the text of `--format json`, without its line end."""
        return json_text(list(self.objects))


# What is stated of that which decides, as keyword arguments of every function.


class Deciding(TypedDict, total=False):
    """The keyword arguments of Image.authorizer."""

    super_users: str | Iterable[str] | None
    allow_everyone_if_no_acl_found: bool | None
    semantics: Literal["kafka", "documented"] | None
    kafka_version: str | None
    cidr: bool | None


class Place(Deciding, total=False):
    """Where a plan is for: exactly one place; and what decides there."""

    log: AnyPath | None
    bootstrap_server: str | None
    bootstrap_controller: str | None
    command_config: AnyPath | None


def _stated(function: str, values: Mapping[str, Any], arguments: type = Deciding) -> AuthorizerSettings:
    """Return what is stated of the authorizer. Raises ConfigError: as Image.authorizer; TypeError: another argument."""
    if unknown := [name for name in values if name not in arguments.__annotations__ | Deciding.__annotations__]:
        raise TypeError(f"{function}() got an unexpected keyword argument {unknown[0]!r}")
    semantics, users = values.get("semantics"), values.get("super_users")
    if semantics not in (None, "kafka", "documented"):
        raise ConfigError(f"semantics {value_text(semantics)} is neither 'kafka' nor 'documented'")
    if users is not None and not isinstance(users, str):
        users = ";".join(texts_of("super_users", users, "User:admin"))
    users = optional_text("super_users", users, "User:admin")
    parse_super_users(users)
    everyone, cidr = values.get("allow_everyone_if_no_acl_found"), values.get("cidr")
    generation = named_generation(
        optional_text("kafka_version", values.get("kafka_version"), "4.3.1"),
        None if cidr is None else flag_of("cidr", cidr, False),
        version_name="kafka_version",
        ranges_text=f"cidr={cidr}",
    )
    return AuthorizerSettings(
        super_users=users,
        allow_everyone=None if everyone is None else flag_of("allow_everyone_if_no_acl_found", everyone, False),
        semantics=semantics,
        cidr=None if generation is None else generation.has_ranges,
    )


def _settings(config: AnyPath | None, stated: AuthorizerSettings) -> tuple[RepositorySettings, frozenset[str]]:
    """Return the settings of a file with those that are stated, and the names of these; without a file these alone."""
    settings = RepositorySettings()
    if config is not None:
        settings = load_repository_settings(Path(path_of("config", config)))
    names = ("super_users", "allow_everyone", "semantics", "cidr")
    values: dict[str, Any] = {name: value for name in names if (value := getattr(stated, name)) is not None}
    return evolve(settings, authorizer=evolve(settings.authorizer, **values)), frozenset(values)


def _path(what: str, value: AnyPath | None) -> str | None:
    return None if value is None else path_of(what, value)


@contextmanager
def _noting(where: str) -> Iterator[list[str]]:
    """Take the notices of what runs in the `with`; what the operating system refuses is a LogError."""
    notes: list[str] = []
    with notices_to(lambda text: notes.append(text.removeprefix("note: "))), told_as_log_errors(where):
        yield notes


def _words(what: str, values: str | Iterable[str] | None, example: str) -> tuple[str, ...] | None:
    if values is None:
        return None
    return (values,) if isinstance(values, str) and values else tuple(texts_of(what, values, example))


# The functions.


def lint(
    rules: Rules,
    *,
    config: AnyPath | None = None,
    select: str | Iterable[str] | None = None,
    fail_on: Literal["error", "warning", "never"] | None = None,
    topics: AnyPath | None = None,
    groups: AnyPath | None = None,
    accesses: AnyPath | None = None,
    **deciding: Unpack[Deciding],
) -> Report:
    """Find rules that do not do what they seem to do, or that do nothing (`aclog lint`).

        >>> report = aclog.lint("kafka/", config="aclog.toml", super_users="User:admin")
        >>> report.passed, [finding["lint"] for finding in report]

    Args:
        rules: what open_log or open_acls returned, or a path of a log, a checkpoint, or a file or directory of rules.
        config: an aclog.toml; without it none is read.
        select: ids or names of lints; by default all.
        fail_on: from which severity on a finding fails; by default "error".
        topics: a file of the topics that exist, one per line; by default those of the log or cluster that is read.
        groups: a file of the consumer groups that exist.
        accesses: recent accesses, in any form that `aclog usage` reads.
        deciding: the arguments of Image.authorizer.

    Raises:
        ConfigError: an argument or a setting that is not valid; MetadataError: something cannot be read.

    """
    with _noting("rules") as notes:
        settings, _ = _settings(config, _stated("lint", deciding))
        inputs = {"topics": topics, "groups": groups, "accesses": accesses}
        source: dict[str, Any] = {name: path_of(name, path) for name, path in inputs.items() if path is not None}
        settings = evolve(settings, source=evolve(settings.source, **source))
        if (words := _words("select", select, "08")) is not None:
            settings = evolve(settings, lint=evolve(settings.lint, select=words))
        if fail_on not in (None, "error", "warning", "never"):
            raise ConfigError(f"fail_on {value_text(fail_on)}: expected 'error', 'warning' or 'never'")
        names = settings.source.topics
        linted = lint_source(chosen_source("rules", rules), settings, topics=None if names is None else NameFile(names))
        objects = tuple(linted.objects())
        notes += [f"warning: {text}" for text in linted.report.notes()]
        if linted.not_judged is not None:
            notes.append(linted.not_judged)
        passed = not linted.report.fails(fail_on or settings.lint.fail_on or "error")
    return Report(passed, objects=objects, notes=tuple(notes))


def test(
    *files: AnyPath,
    rules: Rules | None = None,
    config: AnyPath | None = None,
    run: str | Iterable[str] = (),
    coverage: bool = False,
    min_coverage: float | None = None,
    mutate: bool = False,
    **deciding: Unpack[Deciding],
) -> Report:
    """Run tests of rules: an object for each case, for what is measured, and at last the counts (`aclog test`).

        >>> report = aclog.test("tests/billing.yaml", rules="kafka/")
        >>> report.passed, [case["case"] for case in report if case.get("verdict") == "FAILED"]

    Args:
        files: the files of tests; by default those of `config`.
        rules: what is tested, as in `lint`; by default what each file names, or `config`.
        config: an aclog.toml; without it none is read.
        run: only tests with such a name, as globs.
        coverage: also list the rules that no test exercises.
        min_coverage: fail if fewer percent of the rules are exercised.
        mutate: also fail for each rule that can be removed, widened or flipped without a test that fails.
        deciding: the arguments of Image.authorizer; they win over what a file states.

    Raises:
        ConfigError: an argument or a test that is not valid, or no test; MetadataError: something cannot be read.

    """
    with _noting("rules") as notes:
        settings, stated = _settings(config, _stated("test", deciding))
        selection = SelectedTests(
            files=[path_of("a file of tests", each) for each in files],
            choose=lambda own: _tested(rules, own),
            source_wins=rules is not None,
            settings_win=stated,
            globs=_words("run", run, "billing*") or (),
        )
        results = list(run_files(load_tests(selection, settings)))
        least = settings.test.min_coverage if min_coverage is None else min_coverage
        measured = list(measure(results, Measures(coverage=coverage, least=least, mutate=mutate)))
        objects = [item for each in (*results, *measured) for item in each.objects()]
        passed = not any(each.fails for each in (*results, *measured))
    return Report(passed, objects=(*objects, summary_object(results)), notes=tuple(notes))


test.__test__ = False  # type: ignore[attr-defined]  # no test of pytest


def _tested(rules: Rules | None, settings: RepositorySettings) -> tuple[ChosenSource, RepositorySettings] | None:
    named = settings.source.acls if rules is None else rules
    return None if named is None else (chosen_source("rules", named), settings)


def review(
    path: AnyPath | None = None,
    *,
    base: str,
    head: str | None = None,
    config: AnyPath | None = None,
    tests: Iterable[AnyPath] | None = None,
    accesses: AnyPath | None = None,
    fail_on: str | Iterable[str] | None = None,
    **deciding: Unpack[Deciding],
) -> Report:
    """Review a change of rules in the git repository around the working directory (`aclog review`).

    The first object has the verdict; then come differences, proofs, failing tests, new findings and accesses.

        >>> report = aclog.review("kafka", base="origin/main")
        >>> report.passed, [item["change"] for item in report if item["kind"] == "difference"]

    Args:
        path: the file or directory of rules; by default source.acls of `config`.
        base: the commit to compare with: where the head parted from this branch, tag or commit.
        head: the commit to review; by default the working tree.
        config: an aclog.toml; without it none is read.
        tests: files of tests to run on the head; by default those of `config`.
        accesses: recent accesses, in any form that `aclog usage` reads.
        fail_on: what makes it fail, as the kinds of `--fail-on`; "never" for nothing.
        deciding: the arguments of Image.authorizer; they win over what a file states.

    Raises:
        ConfigError: an argument or a setting that is not valid, or an unknown commit; MetadataError: something cannot
            be read.

    """
    with _noting("rules") as notes:
        settings, stated = _settings(config, _stated("review", deciding))
        if accesses is not None:
            settings = evolve(settings, source=evolve(settings.source, accesses=path_of("accesses", accesses)))
        if tests is not None:
            files = tuple(path_of("tests", each) for each in ([tests] if isinstance(tests, str) else tests))
            settings = evolve(settings, test=evolve(settings.test, files=files))
        if (kinds := _words("fail_on", fail_on, "gained")) is not None:
            settings = evolve(settings, review=evolve(settings.review, fail_on=kinds))
        change = ReviewedChange(
            path=_path("path", path),
            base=text_of("base", base, "origin/main"),
            head=optional_text("head", head, "HEAD"),
        )
        reviewed = review_change(change, settings, settings_win=stated)
        objects = tuple(reviewed.objects())
    return Report(not reviewed.review.fails, objects=objects, notes=tuple(notes))


def plan(
    want: AnyPath,
    *,
    journal: AnyPath,
    adopt: bool = False,
    max_deletes: str | int | None = None,
    **place: Unpack[Place],
) -> Report:
    """Return the steps by which a place would hold the rules that are wanted; nothing is written (`aclog plan`).

    It has passed if there is nothing to do.

        >>> report = aclog.plan("kafka/", journal="prod.journal", bootstrap_server="kafka1:9092")
        >>> report.passed, [(step["action"], step["rule"]["principal"]) for step in report]

    Args:
        want: a file or directory with all rules of this source.
        journal: the file of the managed ACLs of the source in the target; it need not exist yet.
        adopt: whether a desired rule that already exists becomes managed.
        max_deletes: how many deletes are accepted, as a number or as "25%".
        place: `log`, `bootstrap_server` or `bootstrap_controller`, with `command_config` as in open_log; and the
            arguments of Image.authorizer.

    Raises:
        ConfigError: an argument that is not valid, or not exactly one place.
        MetadataError: the plan is refused, or something cannot be read.

    """
    with _noting("rules") as notes:
        stated = _stated("plan", place, Place)
        ownership = Ownership(
            journal=Path(path_of("journal", journal)),
            adopt=flag_of("adopt", adopt, False),
            limit=DeleteLimit.parse(None if max_deletes is None else str(max_deletes)),
        )
        proposal = new_plan(_address(place), read_goal(DesiredRules(path=path_of("want", want))), ownership, stated)
        proposal.check()
        objects = tuple(proposal.objects())
    return Report(proposal.plan.is_empty, objects=objects, notes=tuple(notes))


def _address(place: Place) -> PlaceAddress:
    log, config = _path("log", place.get("log")), _path("command_config", place.get("command_config"))
    values = {
        PlaceKind.LOG: None if log is None else str(Path(log).absolute()),
        PlaceKind.BOOTSTRAP_SERVER: optional_text("bootstrap_server", place.get("bootstrap_server"), "kafka1:9092"),
        PlaceKind.BOOTSTRAP_CONTROLLER: optional_text(
            "bootstrap_controller", place.get("bootstrap_controller"), "kafka1:9093"
        ),
    }
    named = [(kind, value) for kind, value in values.items() if value is not None]
    if len(named) != 1:
        raise ConfigError("expected exactly one place: log, bootstrap_server or bootstrap_controller")
    [(kind, value)] = named
    if config is not None and kind is PlaceKind.LOG:
        raise ConfigError("command_config: expected bootstrap_server or bootstrap_controller")
    return PlaceAddress(kind=kind, value=value, command_config=config and str(Path(config).absolute()))


def diff(
    old: Rules,
    new: Rules,
    *,
    topics: AnyPath | None = None,
    accesses: AnyPath | None = None,
    **deciding: Unpack[Deciding],
) -> Report:
    """Return what a second state allows and the first does not, and the other way round, exactly (`aclog diff`).

    It has passed if every request is decided the same. Image.diff compares states of the past.

        >>> report = aclog.diff(aclog.open_acls(ref="origin/main:kafka"), "kafka/")
        >>> report.passed, [(region["change"], region["names"]) for region in report]

    Args:
        old: the first state, as the rules of `lint`.
        new: the second state.
        topics: a file of the topics that exist, one per line, to be counted.
        accesses: recent accesses, as JSON lines or Parquet, to be counted.
        deciding: the arguments of Image.authorizer, for both states.

    Raises:
        ConfigError: an argument that is not valid; MetadataError: something cannot be read.

    """
    from aclog.sources.accesses import read_accesses  # noqa: PLC0415  # accesses are rarely given

    with _noting("rules") as notes:
        read = None if accesses is None else read_accesses(path_of("accesses", accesses))
        each = _states(old, new, topics, _stated("diff", deciding)).read_each()
        compared, premises = compare(each, accesses=read), next(iter(each.values())).premises
        unknown = [turning(premises, own) for own in compared.values() if not own.differences]
        objects = tuple(difference_objects(compared))
    return Report(not objects and not any(unknown), objects=objects, notes=tuple(notes))


def _states(old: Rules, new: Rules, topics: AnyPath | None, stated: AuthorizerSettings) -> TwoStates:
    path = _path("topics", topics)
    return TwoStates(
        first=chosen_source("old", old),
        second=chosen_source("new", new),
        old_settings=stated,
        new_settings=stated,
        topics=None if path is None else NameFile(path),
    )


def check(
    claim: Literal["no-new-access", "equal", "not-granted", "only", "no-public"],
    *states: Rules,
    operation: str | AclOperation | None = None,
    intent: str | None = None,
    resources: str | ResourcePattern | Iterable[str | ResourcePattern] = (),
    principals: str | Iterable[str] = (),
    host: str | None = None,
    **deciding: Unpack[Deciding],
) -> Report:
    """Prove a statement about one state or two, or refute it with counterexamples (`aclog check`).

    The first object has the verdict; the others refute it.

        >>> report = aclog.check("not-granted", "kafka/", operation="READ", resources="pii-*")
        >>> report.passed, [refutation["principals"] for refutation in list(report)[1:]]

    Args:
        claim: the name of the check; `no-new-access` and `equal` are about two states.
        states: the rules, as in `lint`.
        operation: the operation to check in one state, such as "READ"; or give an intent.
        intent: produce, consume, transact, stream or admin.
        resources: a resource or several; a text is a topic, and "pii-*" all that begin so.
        principals: those that may not (`not-granted`), or that alone may (`only`).
        host: only requests from this address.
        deciding: the arguments of Image.authorizer.

    Raises:
        ConfigError: an argument that is not valid; MetadataError: something cannot be read.

    """
    of_two = {"no-new-access": (proofs.NO_NEW_ACCESS, Direction.GAINED), "equal": (proofs.EQUAL, None)}
    expected = 2 if claim in of_two else 1 if claim in ("not-granted", "only", "no-public") else None
    if expected is None:
        raise ConfigError(
            f"claim {value_text(claim)} is not one of no-new-access, equal, not-granted, only and no-public"
        )
    if len(states) != expected:
        raise ConfigError(
            f"{claim}: {len(states)} state{' is' if len(states) == 1 else 's are'} given: expected {expected}"
        )
    with _noting("rules") as notes:
        stated = _stated("check", deciding)
        proof: proofs.ComparisonProof | proofs.PermissionProof
        if claim in of_two:
            (old, new), (what, direction) = states, of_two[claim]
            proof = proofs.prove_comparison(what, _states(old, new, None, stated), direction=direction)
        else:
            named = _words("principals", principals, "User:alice") or ()
            question = _question(claim, (operation, intent), _resources(resources), named, host)
            proof = proofs.prove_none(question, chosen_source("states", states[0]), stated)
        objects = (proof.head(), *proof.refutations())
    return Report(proof.verdict.is_proved, objects=objects, notes=tuple(notes))


def _resources(resources: str | ResourcePattern | Iterable[str | ResourcePattern]) -> tuple[ResourcePattern, ...]:
    if isinstance(resources, str | ResourcePattern) or not isinstance(resources, Iterable):
        return (resource_of(resources),)
    return tuple(map(resource_of, resources))


def _question(
    claim: str,
    action: tuple[str | AclOperation | None, str | None],
    resources: tuple[ResourcePattern, ...],
    principals: tuple[str, ...],
    host: str | None,
) -> proofs.Question:
    operation, intent = action
    if operation is not None and intent is not None:
        raise ConfigError("operation and intent: expected one of them")
    if claim != "no-public" and ((operation is None and intent is None) or not resources):
        raise ConfigError(f"{claim}: expected an operation or an intent, and resources")
    if intent is not None and intent not in set(Intent):
        raise ConfigError(f"intent {value_text(intent)} is not one of {', '.join(Intent)}")
    code = None if operation is None else enum_code(AclOperation, operation)
    if code is not None and code <= AclOperation.ALL:
        raise ConfigError(f"operation {value_text(operation)}: expected one that requests have, such as 'READ'")
    if claim == "only" and not principals:
        raise ConfigError("only: expected principals: those who may")
    for each in principals:
        if ":" not in each or each == "User:*":
            raise ConfigError(f"principals {each!r}: expected the type and name of a client, such as 'User:alice'")
    query = Query(host=None if host is None else host_address(text_of("host", host, "10.0.0.1")))
    if resources:
        query = evolve(query, resources=resources)
    if code is not None:
        query = evolve(query, operations=1 << code)
    return proofs.question_of(
        claim,
        query,
        principals=principals,
        needs=() if intent is None else needs_of(Intent(intent), resources),
        requests=None if code is None or not resources else tuple((each.resource_type, code) for each in resources),
        narrows=code is not None or intent is not None or bool(resources),
    )
