"""`aclog diff --follow`: each committed change of a log, and what it really changes."""

from collections.abc import Iterable
from uuid import UUID

from attrs import define, evolve, field, frozen
from prometheus_client import Counter

from aclog.analysis.comparison import Comparison, rows_of_each
from aclog.analysis.policy import Policy
from aclog.analysis.regions import Difference, Direction, ExistingNames, JsonObject, Region
from aclog.analysis.rows.report import row_lines
from aclog.authorizer.acl import AclOperation, StandardAcl, acl_of, acl_text
from aclog.authorizer.acls_image import RuleChange, changes_between, net_changes
from aclog.authorizer.settings import Generation, Settings, controllers_decide
from aclog.cli.followers import FollowerStatus, serving
from aclog.cli.signals import on_signals
from aclog.config.node_config import HostPort
from aclog.metalog.errors import ConfigError, LogError, printable
from aclog.metalog.records import AccessControlEntryRecord
from aclog.ops.policies import Compared, difference_objects
from aclog.snapshots.deciding_kafka import DecidingKafka, deciding_kafka, kafka_text
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import Followed, follow
from aclog.sources.choice import ChosenSource
from aclog.terminal.columns import OutputFormat, json_text
from aclog.terminal.notices import STALE_SECONDS, AgeWatch
from aclog.terminal.output import emit, say, time_text

# The ACLs that one step of a log changes.


def step_changes(step: Followed) -> list[RuleChange]:
    """Return the ACLs that one of the states has and the other has not."""
    if step.changes is None:
        return changes_between(step.before.acls, step.after.acls)
    return net_changes(_in_order(step))


def _in_order(step: Followed) -> Iterable[RuleChange]:
    added: dict[UUID, StandardAcl] = {}
    for change in step.changes or ():
        if isinstance(change, AccessControlEntryRecord):
            added[change.id] = acl_of(change)
            yield RuleChange(added=True, acl=added[change.id])
        else:
            removed = added.pop(change.id, None) or step.before.acls.get(change.id)
            if removed is not None:  # else it was added and removed before this step
                yield RuleChange(added=False, acl=removed)


# Follows a log, and prints what each committed change really gives and takes.


@frozen(kw_only=True)
class FollowOptions:
    """How to follow: the settings of both sides, what is counted, the format, and when to give up (seconds)."""

    settings: Settings
    topics: ExistingNames | None
    format: OutputFormat
    http: HostPort | None
    give_up_after: float | None


class _DiffStoppedError(Exception):
    """A signal, or patience that has run out, ended the loop; raised and caught here only."""


def follow_differences(choice: ChosenSource, options: FollowOptions) -> None:
    """Print the effective difference of each committed change until SIGINT or SIGTERM.

    Raises:
        ConfigError: the source is a single state, the format is not for streams, or --http cannot listen.
        MetadataError: the log is damaged or deleted, or unconfirmed for too long.

    """
    if options.format not in (OutputFormat.TEXT, OutputFormat.JSONL):
        raise ConfigError(f"--follow with --format {options.format}: expected text or jsonl")
    log = choice.source.log
    if log is None:
        raise ConfigError(f"{choice.source.name}: a single state has no changes: use --log or --bootstrap-controller")
    image = choice.image()
    follower = _Follower(choice=choice, options=options)
    with serving(options.http, follower.status), on_signals(follower.stop):
        if options.format is OutputFormat.TEXT:
            say(
                f"following {printable(choice.source.name)} from offset {image.end_offset}; stop with Ctrl-C",
                flush=True,
            )
        try:
            for step in follow(choice.source, log, image, follower.idle):
                follower.show(step)
        except _DiffStoppedError:
            return


@define(eq=False, kw_only=True)
class _Follower:
    """Prints steps, and reports its status."""

    choice: ChosenSource
    options: FollowOptions
    stopping: bool = field(default=False, init=False)
    """Set by a signal: a line is never cut."""
    status: FollowerStatus = field(factory=FollowerStatus, init=False)
    _last: dict[Generation, Policy] = field(factory=dict, init=False)
    _age: AgeWatch = field(factory=AgeWatch, init=False)
    _regions: Counter = field(init=False)
    _changes: Counter = field(init=False)

    def __attrs_post_init__(self) -> None:
        registry = self.status.registry
        self._changes = Counter("aclog_acl_changes", "ACLs that were added or removed.", registry=registry)
        self._regions = Counter(
            "aclog_effective_differences",
            "Regions of requests that committed changes allowed, or no longer allow.",
            ["change"],
            registry=registry,
        )
        for direction in Direction:
            self._regions.labels(direction.value)

    def stop(self) -> None:
        """End after the step that is being shown."""
        self.stopping = True

    def idle(self) -> None:
        """Note that the log was read; raise _DiffStoppedError if it is time to end."""
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
            raise _DiffStoppedError

    def show(self, step: Followed) -> None:
        """Print what a step gives and takes."""
        changes = step_changes(step)
        was, kafka = self._kafka(step.before), self._kafka(step.after)
        if changes or (was.generations, was.only_controllers) != (kafka.generations, kafka.only_controllers):
            before = self._before(step.before, was)
            after = self._policies(step.after, kafka)
            self._last = after
            reports: Compared = {
                generation: self._compared(before, generation, policy, changes, (was, kafka))
                for generation, policy in after.items()
            }
            self._changes.inc(len(changes))
            lines = list(difference_objects(reports))
            for line in lines:
                self._regions.labels(str(line["change"])).inc()
            self._print(step, _summary(changes) if changes else kafka_text(kafka), reports, lines)
        if self.stopping:
            raise _DiffStoppedError
        self.status.succeeded()

    def _compared(
        self,
        before: dict[Generation, Policy],
        generation: Generation,
        after: Policy,
        changes: list[RuleChange],
        kafkas: tuple[DecidingKafka, DecidingKafka],
    ) -> Comparison:
        """Return what a step changes on the nodes of a generation; `kafkas`: what may decide before and after it."""
        was, kafka = kafkas
        is_of_brokers = generation not in kafka.only_controllers
        old = before.get(generation)
        if old is None or (is_of_brokers and generation in was.only_controllers):
            # A node of another generation decides as none did before.
            old = next(policy for each, policy in before.items() if each not in was.only_controllers)
        comparison = Comparison.of(old, after, changes=changes, topics=self.options.topics)
        return comparison if is_of_brokers else evolve(comparison, differences=_by_controllers(comparison.differences))

    def _before(self, image: Image, kafka: DecidingKafka) -> dict[Generation, Policy]:
        """Return the policies of the last step if nothing came in between: they have many of the answers."""
        last = self._last
        if last and last.keys() == set(kafka.generations):
            first = next(iter(last.values()))
            if first.acls.index is image.acls.index:
                return last
        return self._policies(image, kafka)

    def _kafka(self, image: Image) -> DecidingKafka:
        return deciding_kafka(image, self.options.settings.generation)

    def _policies(self, image: Image, kafka: DecidingKafka) -> dict[Generation, Policy]:
        settings = self.options.settings
        return {
            each: Policy(
                image.acls.with_options(documented=settings.documented, cidr=each.has_ranges),
                evolve(settings, cidr=each.has_ranges, is_kafka_stated=True),
            )
            for each in kafka.generations
        }

    def _print(self, step: Followed, what: str, reports: Compared, lines: list[JsonObject]) -> None:
        if self.options.format is OutputFormat.JSONL:
            where: JsonObject = {
                "offset": step.before.end_offset,
                "endOffset": step.after.end_offset,
                "timestamp": step.after.timestamp,
            }
            for line in lines:
                emit(json_text({**where, **line}), flush=True)
            return
        place = f"offset {step.before.end_offset}..{step.after.end_offset - 1}, {time_text(step.after.timestamp)}"
        say(f"{place}: {what}", flush=True)
        for row in rows_of_each(reports):
            for text in row_lines(row):
                say(f"  {printable(text)}", flush=True)
        if not lines:
            say("  no difference: every request is decided as before", flush=True)


def _by_controllers(differences: list[Difference]) -> list[Difference]:
    """Return the parts of regions that controllers decide."""
    parts = (evolve(each, region=evolve(each.region, operations=_decided(each.region))) for each in differences)
    return [each for each in parts if each.region.operations]


def _decided(region: Region) -> int:
    operations = (each for each in AclOperation if controllers_decide(region.resource_type, each))
    return region.operations & sum(1 << each for each in operations)


def _summary(changes: list[RuleChange]) -> str:
    if len(changes) == 1:
        return f"{'added' if changes[0].added else 'removed'} {printable(acl_text(changes[0].acl))}"
    added = sum(change.added for change in changes)
    return f"{added:,} ACLs added, {len(changes) - added:,} removed"
