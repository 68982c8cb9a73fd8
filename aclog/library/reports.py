"""What commands do, as functions that return what the commands print as JSON; about access logs: usage.py."""

# ruff: noqa: PT028  # `test` is not a test of pytest

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypedDict, Unpack, get_type_hints

from attrs import evolve, field

from aclog.analysis.comparison import turning
from aclog.analysis.intents import Intent
from aclog.analysis.regions import Direction, Query
from aclog.analysis.rows.report import arrow_stream, html_table
from aclog.authorizer.acl import ResourcePattern, host_address
from aclog.authorizer.acls_image import RuleChange
from aclog.authorizer.codes import AclOperation
from aclog.authorizer.settings import named_generation, parse_super_users
from aclog.config.node_config import ClientSecurity
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
from aclog.metalog.values import frozen
from aclog.ops import check as proofs
from aclog.ops.export_rows import change_row, row_object
from aclog.ops.lint import lint_source
from aclog.ops.plan import DesiredRules, Ownership, new_plan, read_goal
from aclog.ops.policies import TwoStates, compare, difference_objects
from aclog.ops.removal_limit import DEFAULT_PERCENT, RemovalLimit
from aclog.ops.review import review_change, review_objects
from aclog.ops.review_sides import ReviewedChange
from aclog.ops.tables import DIFFERENCES, FINDINGS, PLAIN, TableForm, table_of
from aclog.ops.test import Measures, SelectedTests, load_tests, measure, run_files, summary_object
from aclog.planning.plan import PlaceAddress, PlaceKind
from aclog.planning.planner import DeleteLimit
from aclog.sources.acl_lines import NameFile
from aclog.sources.choice import ChosenSource
from aclog.sources.repository import AuthorizerSettings, RepositorySettings, load_repository_settings
from aclog.sources.server_flags import client_security, parse_servers
from aclog.terminal.columns import json_text
from aclog.terminal.output import notices_to

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from aclog.ops.migrate import Migration, ReverseMigration
    from aclog.ops.migration_targets import Target

AnyPath: TypeAlias = str | PathLike[str]


@frozen(repr=False)
class Report:
    """What a command found: the objects of its JSON, and whether it would end with exit code 0."""

    passed: bool
    """True if nothing is found that makes the command fail."""
    objects: tuple[Mapping[str, Any], ...] = field(kw_only=True)
    notes: tuple[str, ...] = field(kw_only=True)
    """What the command prints on stderr; warnings begin with `warning: `."""
    _form: TableForm = field(default=PLAIN, kw_only=True)

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

    def to_arrow(self) -> "pa.Table":
        """Return the objects as rows with one value per cell. Raises ConfigError: pyarrow is not installed."""
        return table_of(self.objects, self._form).to_arrow()

    def to_pandas(self) -> "pd.DataFrame":
        """Return the same as a data frame. Raises ConfigError: pandas is not installed."""
        return table_of(self.objects, self._form).to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the same to Polars, DuckDB and others by Arrow's PyCapsule interface. Raises as `to_arrow`."""
        return arrow_stream(self.to_arrow(), requested_schema)

    def _repr_html_(self) -> str:
        table = table_of(self.objects, self._form)
        return html_table(tuple(table.kinds), table.rows, caption=repr(self), total=len(table.rows))


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


def check_arguments(function: str, values: Mapping[str, Any], arguments: type) -> None:
    """Raise TypeError, as Python does, for a keyword argument that is not of a TypedDict or its bases."""
    names = get_type_hints(arguments)
    for name in values:
        if name not in names:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def stated_settings(function: str, values: Mapping[str, Any], arguments: type = Deciding) -> AuthorizerSettings:
    """Return what is stated of the authorizer. Raises ConfigError: as Image.authorizer; TypeError: another argument."""
    check_arguments(function, values, arguments)
    semantics, users = values.get("semantics"), values.get("super_users")
    if semantics not in (None, "kafka", "documented"):
        raise ConfigError(f"semantics {value_text(semantics)} is neither 'kafka' nor 'documented'")
    if users is not None and not isinstance(users, str):
        users = ";".join(texts_of("super_users", users, "User:admin"))
    users = optional_text("super_users", users, "User:admin")
    parse_super_users(users)
    # kafka_version and cidr state one thing, the Kafka that decides: together they must agree.
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


def _settings(config: AnyPath | None, arguments: AuthorizerSettings) -> tuple[RepositorySettings, frozenset[str]]:
    """Return the settings of a file with those that are stated, and the names of these; without a file these alone."""
    settings = RepositorySettings()
    if config is not None:
        settings = load_repository_settings(Path(path_of("config", config)))
    # The names are returned too, since a file of tests may state the same settings, and the caller wins over it.
    names = ("super_users", "allow_everyone", "semantics", "cidr")
    values: dict[str, Any] = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    return evolve(settings, authorizer=evolve(settings.authorizer, **values)), frozenset(values)


def _path(what: str, value: AnyPath | None) -> str | None:
    return None if value is None else path_of(what, value)


@contextmanager
def noting(where: str) -> Iterator[list[str]]:
    """Take the notices of what runs in the `with`; what the operating system refuses is a LogError.

    Yields the list that they go to.
    """
    notes: list[str] = []
    with notices_to(lambda text: notes.append(text.removeprefix("note: "))), told_as_log_errors(where):
        yield notes


def several_texts(what: str, values: str | Iterable[str] | None, example: str) -> tuple[str, ...] | None:
    """Return one text or several, None for None. Raises ConfigError: anything else."""
    if values is None:
        return None
    return (values,) if isinstance(values, str) and values else tuple(texts_of(what, values, example))


def whole_number(what: str, value: object, least: int, most: int | None = None) -> int:
    """Return an argument that must be a whole number in these bounds. Raises ConfigError: it is not."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ConfigError(f"{what} {value_text(value)}: expected a number {bounds}")
    return value


def _number(what: str, value: object, expected: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{what} {value_text(value)}: expected {expected}")
    return value


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
        accesses: recent accesses, in any form that `aclog accesses usage` reads.
        deciding: the arguments of Image.authorizer.

    Raises:
        ConfigError: an argument or a setting that is not valid; MetadataError: something cannot be read.

    """
    with noting("rules") as notes:
        settings, _ = _settings(config, stated_settings("lint", deciding))
        inputs = {"topics": topics, "groups": groups, "accesses": accesses}
        source: dict[str, Any] = {name: path_of(name, path) for name, path in inputs.items() if path is not None}
        settings = evolve(settings, source=evolve(settings.source, **source))
        if (words := several_texts("select", select, "08")) is not None:
            settings = evolve(settings, lint=evolve(settings.lint, select=words))
        if fail_on not in (None, "error", "warning", "never"):
            raise ConfigError(f"fail_on {value_text(fail_on)}: expected 'error', 'warning' or 'never'")
        names = settings.source.topics
        linted = lint_source(chosen_source("rules", rules), settings, topics=None if names is None else NameFile(names))
        objects = tuple(linted.objects())
        # `aclog lint` prints these after its answer: they are part of the report, not notices of reading.
        notes += [f"warning: {text}" for text in linted.report.notes()]
        if linted.not_judged is not None:
            notes.append(linted.not_judged)
        passed = not linted.report.fails(fail_on or settings.lint.fail_on or "error")
    return Report(passed, objects=objects, notes=tuple(notes), form=FINDINGS)


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
        mutate: also fail for each rule that can be removed, widened or flipped while all tests still pass.
        deciding: the arguments of Image.authorizer; they win over what a file states.

    Raises:
        ConfigError: an argument or a test that is not valid, or no test; MetadataError: something cannot be read.

    """
    with noting("rules") as notes:
        settings, argument_names = _settings(config, stated_settings("test", deciding))
        selection = SelectedTests(
            files=[path_of("a file of tests", each) for each in files],
            choose=lambda own: _tested(rules, own),
            source_wins=rules is not None,
            settings_win=argument_names,
            globs=several_texts("run", run, "billing*") or (),
        )
        results = list(run_files(load_tests(selection, settings)))
        least = settings.test.min_coverage if min_coverage is None else min_coverage
        measured = list(measure(results, Measures(coverage=coverage, least=least, mutate=mutate)))
        objects = [item for each in (*results, *measured) for item in each.objects()]
        passed = not any(each.fails for each in (*results, *measured))
    return Report(passed, objects=(*objects, summary_object(results)), notes=tuple(notes))


test.__test__ = False  # type: ignore[attr-defined]  # no test of pytest


def _tested(rules: Rules | None, settings: RepositorySettings) -> tuple[ChosenSource, RepositorySettings] | None:
    named = settings.existing_acls() if rules is None else rules
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
        accesses: recent accesses, in any form that `aclog accesses usage` reads.
        fail_on: what makes it fail, as the kinds of `--fail-on`; "never" for nothing.
        deciding: the arguments of Image.authorizer; they win over what a file states.

    Raises:
        ConfigError: an argument or a setting that is not valid, or an unknown commit; MetadataError: something cannot
            be read.

    """
    with noting("rules") as notes:
        settings, argument_names = _settings(config, stated_settings("review", deciding))
        if accesses is not None:
            settings = evolve(settings, source=evolve(settings.source, accesses=path_of("accesses", accesses)))
        if tests is not None:
            files = tuple(path_of("tests", each) for each in ([tests] if isinstance(tests, str) else tests))
            settings = evolve(settings, test=evolve(settings.test, files=files))
        if (kinds := several_texts("fail_on", fail_on, "gained")) is not None:
            settings = evolve(settings, review=evolve(settings.review, fail_on=kinds))
        change = ReviewedChange(
            path=_path("path", path),
            base=text_of("base", base, "origin/main"),
            head=optional_text("head", head, "HEAD"),
        )
        reviewed = review_change(change, settings, settings_win=argument_names)
        objects = tuple(review_objects(reviewed))
    passed = not any(each.review.fails for each in reviewed.values())
    return Report(passed, objects=objects, notes=tuple(notes))


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
    with noting("rules") as notes:
        settings = stated_settings("plan", place, Place)
        ownership = Ownership(
            journal=Path(path_of("journal", journal)),
            adopt=flag_of("adopt", adopt, False),
            limit=DeleteLimit.parse(None if max_deletes is None else str(max_deletes)),
        )
        proposal = new_plan(_address(place), read_goal(DesiredRules(path=path_of("want", want))), ownership, settings)
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

    with noting("rules") as notes:
        read = None if accesses is None else read_accesses(path_of("accesses", accesses))
        each = two_states(old, new, stated_settings("diff", deciding), topics=topics).read_each()
        compared, premises = compare(each, accesses=read), next(iter(each.values())).premises
        unknown = [turning(premises, own) for own in compared.values() if not own.differences]
        objects = tuple(difference_objects(compared))
    return Report(not objects and not any(unknown), objects=objects, notes=tuple(notes), form=DIFFERENCES)


def two_states(
    old: Rules,
    new: Rules | None,
    settings: AuthorizerSettings,
    *,
    topics: AnyPath | None = None,
    changes: Sequence[RuleChange] = (),
) -> TwoStates:
    """Return two states to compare, or one and its changes; nothing is read yet. Raises as chosen_source."""
    path = _path("topics", topics)
    return TwoStates(
        first=chosen_source("old", old),
        second=None if new is None else chosen_source("new", new),
        changes=changes,
        old_settings=settings,
        new_settings=settings,
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
        resources: a resource or several; a text is a topic, and "pii-*" all that begin so. `no-new-access` is about
            these only, if there are any.
        principals: those that may not (`not-granted`), or that alone may (`only`).
        host: only requests from this address.
        deciding: the arguments of Image.authorizer.

    Raises:
        ConfigError: an argument that is not valid; MetadataError: something cannot be read.

    """
    of_two = {"no-new-access": Direction.GAINED, "equal": None}
    expected = 2 if claim in of_two else 1 if claim in ("not-granted", "only", "no-public") else None
    if expected is None:
        raise ConfigError(
            f"claim {value_text(claim)} is not one of no-new-access, equal, not-granted, only and no-public"
        )
    if len(states) != expected:
        raise ConfigError(
            f"{claim}: {len(states)} state{' is' if len(states) == 1 else 's are'} given: expected {expected}"
        )
    with noting("rules") as notes:
        settings = stated_settings("check", deciding)
        proof: proofs.ComparisonProof | proofs.PermissionProof
        if claim in of_two:
            (old, new), direction = states, of_two[claim]
            what = proofs.EQUAL if direction is None else proofs.no_new_access(_resources(resources))
            proof = proofs.prove_comparison(what, two_states(old, new, settings), direction=direction)
        else:
            named = several_texts("principals", principals, "User:alice") or ()
            question = _question(claim, (operation, intent), _resources(resources), named, host)
            proof = proofs.prove_none(question, chosen_source("states", states[0]), settings)
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
    asked = proofs.Asked(operation=code, intent=None if intent is None else Intent(intent), resources=resources)
    requests = None if code is None or not resources else tuple((each.resource_type, code) for each in resources)
    return proofs.question_of(claim, query, asked, principals=principals, requests=requests)


# What writes: a log that records a cluster, and the way from ZooKeeper and back.


class Removals(TypedDict, total=False):
    """How much may be removed at once: by default 20 percent, if ten entries or more, and never all."""

    max_removal: float
    """In percent."""
    accept_removal: int | None
    """One larger removal, of at most so many entries."""


def sync(
    bootstrap_server: str, to: AnyPath, *, command_config: AnyPath | None = None, **removals: Unpack[Removals]
) -> Report:
    """Poll the ACLs of a cluster once, and record what has changed in a log (`aclog sync --once`).

    An object for each change, in the form of `aclog sync --format jsonl`. It has always passed: a poll that fails, or
    is not trusted, is an error, and nothing is recorded.

        >>> report = aclog.sync("kafka1:9092", "history", command_config="client.properties")
        >>> [(each["change"], each["acl"]["principal"]) for each in report]

    Args:
        bootstrap_server: the brokers, comma-separated.
        to: the directory of the log; it is created if it is missing or empty.
        command_config: a client properties file.
        removals: `max_removal` in percent, and `accept_removal`, as the flags of the command.

    Raises:
        ConfigError: an argument that is not valid, or a directory with something else.
        MetadataError: the cluster cannot be polled or is another one, the poll would remove too much, or the log cannot
            be written.

    """
    from aclog.ops.sync import sync_once  # noqa: PLC0415  # few programs speak to a cluster

    with noting("the log") as notes:
        check_arguments("sync", removals, Removals)
        servers = parse_servers("bootstrap_server", text_of("bootstrap_server", bootstrap_server, "kafka1:9092"))
        directory = Path(path_of("to", to))
        changes = sync_once(servers, _security(command_config), directory, _limit(removals))
        objects = tuple(row_object(change_row(each)) for each in changes)
    return Report(True, objects=objects, notes=tuple(notes))


def _security(command_config: AnyPath | None) -> ClientSecurity:
    path = _path("command_config", command_config)
    return client_security(None if path is None else Path(path))


def _limit(removals: Mapping[str, Any]) -> RemovalLimit:
    percent, accepted = removals.get("max_removal", DEFAULT_PERCENT), removals.get("accept_removal")
    limit = RemovalLimit(
        percent=_number("max_removal", percent, "a percentage"),
        accepted=None if accepted is None else whole_number("accept_removal", accepted, 1),
    )
    limit.check("max_removal", "accept_removal")
    return limit


class Migrated(Removals, total=False):
    """Both sides of a migration, and what is not refused.

    From `zookeeper` to exactly one of `log`, `bootstrap_checkpoint` and `bootstrap_controller`; or from `log`
    `to_zookeeper`.
    """

    zookeeper: str | None
    to_zookeeper: str | None
    zk_tls_config_file: AnyPath | None
    log: AnyPath | None
    bootstrap_checkpoint: AnyPath | None
    bootstrap_controller: str | None
    command_config: AnyPath | None
    replace: bool
    """Remove what only the written side has."""
    skip_unreadable: bool
    """Leave out what cannot be read, or not be held."""
    until_quiet: float | None
    """Follow changes until none comes for so many seconds."""
    force: bool
    """Write to a log although a node or Kafka wrote it."""


def migrate(mode: Literal["dry-run", "compare", "run"], **sides: Unpack[Migrated]) -> Report:
    """Migrate ACLs, SCRAM credentials and tokens from ZooKeeper to a metadata log, or back (`aclog migrate`).

    Objects of the plan (`dry-run`), which has passed if nothing blocks it; or of the comparison of both sides, which
    has passed if they are equal. Nothing is confirmed on a terminal: what is not accepted is an error.

        >>> report = aclog.migrate("dry-run", zookeeper="zk1:2181/kafka", log="log")
        >>> report.passed, [each["reason"] for each in report if each["kind"] == "obstacle"]

    Args:
        mode: only show what would be done, only compare both sides, or migrate and then compare.
        sides: as the flags of the command: `zookeeper` and the target, or `to_zookeeper` and `log`; `replace`,
            `skip_unreadable`, `until_quiet`, `force`, `max_removal`, `accept_removal`, `zk_tls_config_file` and
            `command_config`.

    Raises:
        ConfigError: arguments that are not valid together, or what blocks the migration.
        MetadataError: ZooKeeper is unavailable, or the other side cannot be read or written.

    """
    from aclog.ops import migrate as migration  # noqa: PLC0415  # it takes kazoo, an extra

    if mode not in ("dry-run", "compare", "run"):
        raise ConfigError(f"mode {value_text(mode)} is not one of 'dry-run', 'compare' and 'run'")
    with noting("the log") as notes:
        check_arguments("migrate", sides, Migrated)
        both = _migration(sides, is_written=mode == "run")
        if mode == "dry-run":
            preview = both.preview()
            if isinstance(both, migration.Migration):
                migration.warn_of_limitation(both.target, preview.store_state)
            objects, passed = tuple(preview.objects()), not preview.obstacles
            notes += [f"warning: {each}" for each in preview.obstacles]
        else:
            comparison = both.compare() if mode == "compare" else both.run()
            objects, passed = tuple(migration.comparison_objects(comparison)), comparison.is_equal
    return Report(passed, objects=objects, notes=tuple(notes))


def _migration(sides: Migrated, *, is_written: bool) -> "Migration | ReverseMigration":
    from aclog.ops.migrate import Migration, ReverseMigration, store_settings  # noqa: PLC0415

    store, back = sides.get("zookeeper"), sides.get("to_zookeeper")
    if (store is None) is (back is None):
        raise ConfigError("expected exactly one ZooKeeper: zookeeper or to_zookeeper")
    properties = _path("zk_tls_config_file", sides.get("zk_tls_config_file"))
    tls = None if properties is None else Path(properties)
    replace = flag_of("replace", sides.get("replace"), False)
    skip_unreadable = flag_of("skip_unreadable", sides.get("skip_unreadable"), False)
    quiet = sides.get("until_quiet")
    if quiet is not None and not (is_written and _number("until_quiet", quiet, "seconds") >= 0):
        raise ConfigError(f"until_quiet {value_text(quiet)}: expected seconds, and only with mode 'run'")
    if store is not None:
        return Migration(
            store=store_settings(text_of("zookeeper", store, "zk1:2181/kafka"), tls, is_written=False),
            target=_target(sides),
            until_quiet=quiet,
            replace=replace,
            skip_unreadable=skip_unreadable,
            limit=_limit(sides),
        )
    log, others = (
        _path("log", sides.get("log")),
        ("bootstrap_checkpoint", "bootstrap_controller", "until_quiet", "force"),
    )
    if log is None or any(sides.get(name) for name in others):
        raise ConfigError(f"to_zookeeper: expected log, and none of {', '.join(others)}")
    return ReverseMigration(
        store=store_settings(text_of("to_zookeeper", back, "zk1:2181/kafka"), tls, is_written=is_written),
        log=Path(log),
        replace=replace,
        skip_unreadable=skip_unreadable,
        limit=_limit(sides),
    )


def _target(sides: Migrated) -> "Target":
    from aclog.ops.migration_targets import CheckpointTarget, LogTarget, QuorumTarget  # noqa: PLC0415

    log, checkpoint = _path("log", sides.get("log")), _path("bootstrap_checkpoint", sides.get("bootstrap_checkpoint"))
    servers = optional_text("bootstrap_controller", sides.get("bootstrap_controller"), "kafka1:9093")
    if sum(each is not None for each in (log, checkpoint, servers)) != 1:
        raise ConfigError("expected exactly one target: log, bootstrap_checkpoint or bootstrap_controller")
    force = flag_of("force", sides.get("force"), False)
    if force and log is None:
        raise ConfigError("force: expected only with log")
    if sides.get("command_config") is not None and servers is None:
        raise ConfigError("command_config: expected only with bootstrap_controller")
    if log is not None:
        return LogTarget(directory=Path(log), force=force)
    if checkpoint is not None:
        return CheckpointTarget(path=Path(checkpoint))
    controllers = parse_servers("bootstrap_controller", servers)
    return QuorumTarget(controllers=controllers, security=_security(sides.get("command_config")))
