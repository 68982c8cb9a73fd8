"""`aclog test --follow`: guardrails on a growing log."""

from collections import Counter as Count
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from enum import Enum
from typing import TypeAlias

from attrs import evolve, field
from prometheus_client import Counter

from aclog.analysis.policy import Policy
from aclog.analysis.regions import JsonObject, Query, decided_by_object, request_object
from aclog.analysis.rule_tests.case import Case, Failure
from aclog.analysis.rule_tests.results import EachRun
from aclog.analysis.timeline import concerns
from aclog.authorizer.acl import acl_text, origin_text
from aclog.authorizer.acls_image import Action, RuleChange
from aclog.authorizer.settings import Generation, Settings
from aclog.authorizer.standard import ALL_KNOWN, Premises
from aclog.cli.flags.commands import GuardFlags, RunFlags
from aclog.cli.flags.common import FollowerFlags
from aclog.cli.follow import FollowerStatus, Webhook, serving, step_changes
from aclog.cli.signals import on_signals
from aclog.cli.test_report import SelectingFlags
from aclog.config.node_config import HostPort
from aclog.metalog.errors import ConfigError, LogError, MetadataError, printable
from aclog.metalog.values import define, frozen
from aclog.snapshots.deciding_kafka import deciding_kafka, kafka_text
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import Followed, follow
from aclog.sources.choice import ChosenSource
from aclog.terminal.columns import OutputFormat, json_text
from aclog.terminal.notices import STALE_SECONDS, AgeWatch
from aclog.terminal.output import emit, say, time_text

# The results of tests on a growing log: which are red, green, or unknown.


Policies: TypeAlias = Mapping[Generation, Policy]
"""The policy of one state for each generation of Kafka that may decide on it."""


class Color(Enum):
    """Of a case."""

    GREEN = "GREEN"
    RED = "RED"
    UNKNOWN = "UNKNOWN"
    """What it compares with cannot be read."""


@frozen(kw_only=True)
class Turn:
    """A case that turned to another color."""

    case: Case
    color: Color
    failures: tuple[Failure, ...]
    changes: tuple[RuleChange, ...]
    """Those that can have done it."""
    problem: str = ""
    """Why it is unknown."""
    software: str = ""
    """Which Kafka decides from now on, if that changed."""


@define(eq=False, kw_only=True)
class Verdicts:
    """The colors of some cases; owned by the one who follows the log."""

    cases: Sequence[Case]
    settings: Settings
    premises: Premises = ALL_KNOWN
    """What is unknown of the settings: a case that it could turn is not green."""
    configs: frozenset[str] = frozenset()
    """The properties of brokers whose values the settings have."""
    colors: list[Color] = field(init=False)
    _queries: list[tuple[Query, ...]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.colors = [Color.GREEN] * len(self.cases)
        self._queries = [case.queries(self.settings) for case in self.cases]

    def first(self, policies: Policies) -> Iterator[Turn]:
        """Run all cases; yield those that are not green. Raises MetadataError: what one compares with is unreadable."""
        run = self._run(policies)
        for number, case in enumerate(self.cases):
            outcome = run.run(case)
            if not outcome.passed:
                self.colors[number] = Color.RED
                yield Turn(case=case, color=Color.RED, failures=outcome.failures, changes=())

    def after(self, policies: Policies, changes: Sequence[RuleChange], software: str = "") -> Iterator[Turn]:
        """Run the cases on which some changes can bear, or all if other software decides; yield those that turn."""
        run = self._run(policies)
        for number, case in enumerate(self.cases):
            bearing = tuple(change for change in changes if self._bears(number, change))
            if bearing or software or self.colors[number] is Color.UNKNOWN:
                turn = evolve(_turn(case, run, bearing), software=software)
                if turn.color is not self.colors[number]:
                    self.colors[number] = turn.color
                    yield turn

    def _run(self, policies: Policies) -> EachRun:
        return EachRun.of(policies, self.premises, self.configs)

    def _bears(self, number: int, change: RuleChange) -> bool:
        return any(concerns(query, change.acl, self.settings) for query in self._queries[number])


def _turn(case: Case, run: EachRun, changes: tuple[RuleChange, ...]) -> Turn:
    try:
        outcome = run.run(case)
    except (MetadataError, OSError) as error:
        return Turn(case=case, color=Color.UNKNOWN, failures=(), changes=changes, problem=str(error))
    color = Color.GREEN if outcome.passed else Color.RED
    return Turn(case=case, color=color, failures=outcome.failures, changes=changes)


# A case that turned red or green, as lines for people and as JSON.


_MAX_ITEMS = 3
"""Failures and changes of a case as text; the JSON has more."""
_MOST = 100
"""In a JSON line, whose receiver has to take it whole."""


def turn_lines(turn: Turn, *, offset: int, timestamp: int) -> Iterator[str]:
    """Yield the lines; `offset` and `timestamp` (ms) are those of the newest record of the state."""
    place = f"{time_text(timestamp)} offset {offset}"
    yield f"{turn.color.value:<7} {place}: {turn.case.test}: {turn.case.text} ({origin_text(turn.case.origin)})"
    yield from (f"  {failure.actual}" for failure in turn.failures[:_MAX_ITEMS])
    if len(turn.failures) > _MAX_ITEMS:
        yield f"  and {len(turn.failures) - _MAX_ITEMS:,} more"
    if turn.problem:
        yield f"  {turn.problem}"
    if turn.software:
        yield f"  by: {turn.software}"
    yield from (f"  by: {_change_text(change)}" for change in turn.changes[:_MAX_ITEMS])
    if len(turn.changes) > _MAX_ITEMS:
        yield f"  by: {len(turn.changes) - _MAX_ITEMS:,} more changes of the same record batch or transaction"


def turn_object(turn: Turn, *, offset: int, end_offset: int, timestamp: int) -> JsonObject:
    """Return the JSON line of a turn: what `--format jsonl` prints and `--webhook` posts."""
    line: JsonObject = {
        "event": turn.color.value,
        "test": turn.case.test,
        "case": turn.case.text,
        "file": turn.case.origin.file,
        "line": turn.case.origin.line,
        "offset": offset,
        "endOffset": end_offset,
        "timestamp": timestamp,
        "failures": [_failure_object(failure) for failure in turn.failures[:_MOST]],
        "changes": [
            {"action": (Action.ADD if change.added else Action.REMOVE).value, "rule": decided_by_object(change.acl)}
            for change in turn.changes[:_MOST]
        ],
    }
    more = {"problem": turn.problem, "software": turn.software}
    return {**line, **{key: text for key, text in more.items() if text}}


def _failure_object(failure: Failure) -> JsonObject:
    fields: JsonObject = {"found": failure.actual}
    if failure.request is not None:
        fields["request"] = request_object(failure.request)
        fields["decidedBy"] = decided_by_object(failure.decided_by)
    return fields


def _change_text(change: RuleChange) -> str:
    return f"{'added' if change.added else 'removed'} {acl_text(change.acl)}"


# Guardrails: follows a log, and reports each test of rules that a committed change turns red, or green again.


STOPPED, TURNED_RED = 0, 1
"""Exit codes."""


def follow_tests(selection: SelectingFlags, flags: RunFlags, guard: GuardFlags, follower: FollowerFlags) -> int:
    """Run the selected tests on each change of the log that they are about; return the exit code.

    Raises:
        ConfigError: as load_tests and follow_cases, or the tests are about several sources.
        MetadataError, OSError: a file or a source cannot be read, or the log is damaged or lost.

    """
    form = flags.output(is_live=True).form
    if form not in (OutputFormat.TEXT, OutputFormat.JSONL):
        raise ConfigError(f"--follow with --format {form}: expected text or jsonl")
    http, patience = follower.address(), follower.patience()
    loaded = selection.load(selection.repository.load())
    rules = loaded[0].rules
    if any(each.rules is not rules for each in loaded):
        raise ConfigError("--follow: the files name several sources, or settings: expected one: name it by a flag")
    options = GuardOptions(
        settings=evolve(rules.policy.settings, is_kafka_stated=rules.is_kafka_named),
        jsonl=form is OutputFormat.JSONL,
        http=http,
        give_up_after=patience,
        webhook=guard.webhook,
        exit_on_red=guard.exit_on_red,
        premises=rules.premises,
        configs=rules.configs,
    )
    return follow_cases(rules.choice, rules.cases, options)


@frozen(kw_only=True)
class GuardOptions:
    """How tests are run on a growing log."""

    settings: Settings
    jsonl: bool
    http: HostPort | None
    give_up_after: float | None
    """In seconds."""
    webhook: str | None
    exit_on_red: bool
    premises: Premises = ALL_KNOWN
    """What was unknown of the settings when it began."""
    configs: frozenset[str] = frozenset()
    """The properties of brokers whose values the settings have."""


class _TestsStoppedError(Exception):
    """A signal, or a red test with --exit-on-red, ended the loop; raised and caught here only."""


def follow_cases(choice: ChosenSource, cases: Sequence[Case], options: GuardOptions) -> int:
    """Run the cases on each committed change until SIGINT or SIGTERM; return the exit code.

    Raises:
        ConfigError: the source is a single state, the webhook is no URL, or --http cannot listen.
        MetadataError: what a case compares with cannot be read, the log is damaged or deleted, or unconfirmed
            for too long.

    """
    log = choice.source.log
    if log is None:
        raise ConfigError(f"{choice.source.name}: a single state has no changes: use --log or --bootstrap-controller")
    status = FollowerStatus()
    hook = None if options.webhook is None else Webhook.of(options.webhook, status.registry)
    verdicts = Verdicts(cases=cases, settings=options.settings, premises=options.premises, configs=options.configs)
    guard = Guard(choice=choice, options=options, verdicts=verdicts, status=status, hook=hook)
    image = choice.image()
    with serving(options.http, status), nullcontext() if hook is None else hook.running(), on_signals(guard.stop):
        try:
            guard.begin(image)
            for step in follow(choice.source, log, image, guard.idle):
                guard.show(step)
        except _TestsStoppedError:
            pass
    return TURNED_RED if options.exit_on_red and Color.RED in verdicts.colors else STOPPED


@define(eq=False, kw_only=True)
class Guard:
    """Runs the cases, and reports their results."""

    choice: ChosenSource
    options: GuardOptions
    verdicts: Verdicts
    status: FollowerStatus
    hook: Webhook | None
    stopping: bool = field(default=False, init=False)
    """Set by a signal: a line is never cut."""
    _age: AgeWatch = field(factory=AgeWatch, init=False)
    _turns: Counter = field(init=False)

    def __attrs_post_init__(self) -> None:
        registry = self.status.registry
        self._turns = Counter("aclog_rule_test_turns", "Tests of rules that turned.", ["to"], registry=registry)
        for color in Color:
            self._turns.labels(color.value.lower())
            name, text = (
                f"aclog_rule_tests_{color.value.lower()}",
                f"Tests of rules that are {color.value.lower()} now.",
            )
            # Scraped in another thread: of an int in a list a reader sees the old value or the new one.
            self.status.gauge(name, f"{text} All are unknown while the cluster does not answer.").set_function(
                lambda color=color: self._now(color)  # type: ignore[misc]
            )

    def stop(self) -> None:
        """End after the step that is being shown."""
        self.stopping = True

    def begin(self, image: Image) -> None:
        """Run all cases on the state to begin with."""
        turns = list(self.verdicts.first(self._policies(image)))
        if not self.options.jsonl:
            green, name = len(self.verdicts.cases) - len(turns), printable(self.choice.source.name)
            now = f"{green:,} green, {len(turns):,} red"
            say(f"following {name} from offset {image.end_offset}: {now}; stop with Ctrl-C", flush=True)
        self._tell(turns, image, image)
        self.status.succeeded()

    def idle(self) -> None:
        """Note that the log was read; raise _StoppedError if it is time to end."""
        freshness = self.choice.source.freshness()
        if freshness is None or freshness.seconds < STALE_SECONDS:
            self.status.succeeded()
        else:
            self.status.failed(freshness.problem or f"no answer for {freshness.seconds:.0f} s")
            self._age.tell(freshness)
            patience = self.options.give_up_after
            if patience is not None and freshness.seconds > patience:
                raise LogError(
                    f"{freshness.server}: no answer for {freshness.seconds:.0f} s: gave up (--give-up-after)"
                )
        if self.stopping:
            raise _TestsStoppedError

    def show(self, step: Followed) -> None:
        """Run the cases on which a step can bear."""
        changes, software = step_changes(step), self._software(step)
        if changes or software:
            turns = list(self.verdicts.after(self._policies(step.after), changes, software))
            self._tell(turns, step.before, step.after)
        if self.stopping:
            raise _TestsStoppedError
        self.status.succeeded()

    def _tell(self, turns: Sequence[Turn], before: Image, after: Image) -> None:
        for turn in turns:
            self._turns.labels(turn.color.value.lower()).inc()
            line = json_text(
                turn_object(turn, offset=before.end_offset, end_offset=after.end_offset, timestamp=after.timestamp)
            )
            if self.options.jsonl:
                emit(line, flush=True)
            else:
                for text in turn_lines(turn, offset=after.end_offset - 1, timestamp=after.timestamp):
                    say(printable(text), flush=True)
            if self.hook is not None:
                self.hook.post(line)
        if self.options.exit_on_red and any(turn.color is Color.RED for turn in turns):
            raise _TestsStoppedError

    def _software(self, step: Followed) -> str:
        """Return which Kafka decides after a step, if other generations may decide on these ACLs than before."""
        if self.options.settings.is_kafka_stated:
            return ""
        was, kafka = (deciding_kafka(each.with_acls(step.after.acls), None) for each in (step.before, step.after))
        return "" if was.generations == kafka.generations else kafka_text(kafka)

    def _policies(self, image: Image) -> Policies:
        """Return the policies of a state, of each generation of Kafka that may decide on it."""
        settings = self.options.settings
        generations = deciding_kafka(image, settings.generation).generations
        each = {generation: settings.of_generation(generation) for generation in generations}
        return {
            generation: Policy(image.acls.with_options(documented=own.documented, cidr=own.cidr), own)
            for generation, own in each.items()
        }

    def _now(self, color: Color) -> int:
        if self.status.trouble is not None:
            return len(self.verdicts.cases) if color is Color.UNKNOWN else 0
        return Count(self.verdicts.colors)[color]
