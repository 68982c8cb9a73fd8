"""Applying a plan: checks, then the journal, then the target, piece by piece."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from attrs import evolve, field

from aclog.authorizer.acl import StandardAcl, acl_text
from aclog.authorizer.acls_image import content_of, ranges_among
from aclog.authorizer.symbols import symbol_refusal
from aclog.metalog.errors import MetadataError
from aclog.metalog.values import define, frozen
from aclog.planning.journal import (
    Entry,
    EntryKind,
    JournalAction,
    JournalStep,
    JournalWriter,
    sent_of,
    settle,
    unsure_texts,
)
from aclog.planning.plan import (
    NOTHING_SENT,
    ApplyNote,
    Batching,
    Completion,
    JournalError,
    PlaceState,
    Plan,
    RefusedError,
    Sent,
    Step,
    StoppedError,
    TouchedRegion,
    WritablePlace,
    plan_digest,
    touched,
)

# Checks that a target has not changed since a plan was made.


_MAX_SHRINK = 0.2
"""The largest share of the ACLs at plan time that may be missing: a response that lost more is probably incomplete."""

_AGAIN = "nothing was changed; create a new plan"


@frozen(kw_only=True)
class Remaining:
    """The steps of a plan that are not made yet, in order, and the number of steps already made."""

    steps: tuple[Step, ...]
    completed: int


def check_base(plan: Plan, state: PlaceState, name: str, sent: Sent) -> Remaining:
    """Check that a target is unchanged since the plan was made; return the remaining steps.

    `sent` is the progress of an earlier run of the apply: its own changes are not counted as a change of the target. A
    step in `sent.unsure` counts as made if its ACL is in the expected state.

    Raises:
        RefusedError: ACLs in the region that the plan touches have changed, or the target lost many of its ACLs.

    """
    looks_made = {number for number, step in enumerate(plan.steps) if _looks_made(step, state)}
    completed = sorted(sent.completed | (sent.unsure & looks_made))
    before = _without([plan.steps[number] for number in completed if number in looks_made], state.contents)
    _check_whole(plan, before, state, name)
    changed = min(looks_made.symmetric_difference(completed), default=None)
    if changed is not None:
        step = plan.steps[changed]
        what = "exists" if step.adds is (changed in looks_made) else "no longer exists"
        since = "an apply of the plan had made it" if changed in sent.completed else "the plan was made"
        raise RefusedError(f"{name}: changed since {since}: {acl_text(step.acl)} {what}: {_AGAIN}")
    now = touched(region_of(plan).among(before))
    if now != plan.base.touched:
        raise RefusedError(
            f"{name}: ACLs that the plan touches have changed since it was made: {now.rules:,} now, "
            f"{plan.base.touched.rules:,} at plan time: {_AGAIN}"
        )
    remaining = tuple(step for number, step in enumerate(plan.steps) if number not in looks_made)
    return Remaining(steps=remaining, completed=len(completed))


def _looks_made(step: Step, state: PlaceState) -> bool:
    return (content_of(step.acl) in state.contents) is step.adds


def _check_whole(plan: Plan, before: AbstractSet[bytes], state: PlaceState, name: str) -> None:
    """Refuse an incomplete response, or that of an older copy; `before` excludes the plan's own changes."""
    base = plan.base
    if not state.contents and len(before) < base.rules:  # equal: the plan removed all there was
        raise RefusedError(
            f"{name}: returned no ACLs, but had {base.rules:,} when the plan was made: it may not be ready, or is "
            f"another target: {_AGAIN}"
        )
    if len(before) < base.rules * (1 - _MAX_SHRINK):
        raise RefusedError(
            f"{name}: has {len(before):,} ACLs, but had {base.rules:,} when the plan was made: more than "
            f"{_MAX_SHRINK:.0%} are missing: {_AGAIN}"
        )
    if base.end_offset is not None and state.end_offset is not None and state.end_offset < base.end_offset:
        raise RefusedError(
            f"{name}: ends at offset {state.end_offset}, but ended at {base.end_offset} when the plan was made, so it "
            f"is an older copy: {_AGAIN}"
        )


def region_of(plan: Plan) -> TouchedRegion:
    """Return the region touched by the steps of a plan and by the ACLs that it adopts and releases."""
    acls = (*(step.acl for step in plan.steps), *plan.adopt, *plan.release)
    return TouchedRegion.of(acls, allow_everyone=plan.settings.allow_everyone)


def _without(steps: list[Step], contents: AbstractSet[bytes]) -> AbstractSet[bytes]:
    """Return the contents before these steps."""
    if not steps:
        return contents
    before = set(contents)
    for step in steps:
        if step.adds:
            before.discard(content_of(step.acl))
        else:
            before.add(content_of(step.acl))
    return before


# Applying a plan: checks, then the journal, then the target, piece by piece, each read back; then the journal again.
#
# If the apply is killed at any moment, the journal and the target together determine which steps were made: BEGIN is
# durable before the first step, and DONE is written after the last step was read back.


Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of steps made and the total number of steps."""


@frozen(kw_only=True)
class ApplyOptions:
    """The author and the time of an apply, and what its user has accepted."""

    apply: str
    """The id of a new apply."""
    at: str
    """ISO 8601, UTC."""
    who: str
    git: str | None = None
    accept_transient: bool = False
    resume: bool = False
    """Whether to require an interrupted apply of the same plan; without a journal, whether there may be one."""


@frozen(eq=False, kw_only=True)
class Ready:
    """The work of an apply, as of the target's state when it was checked."""

    state: PlaceState
    begun: Entry | None
    """The newest entry of an earlier run of the same apply."""
    remaining: Remaining
    sent: Sent = NOTHING_SENT
    """The progress of that run."""

    @property
    def is_done(self) -> bool:
        """Whether that run has completed, so that nothing is left to do."""
        return self.begun is not None and self.begun.kind is EntryKind.DONE


@frozen(kw_only=True)
class Outcome:
    """The result of an apply."""

    apply: str
    completed: int
    """The number of steps that it made."""
    completed_before: int
    """The number of steps that an earlier run of the same apply had made."""
    was_done: bool = False
    """Whether an earlier run had completed the apply, so that this run did nothing."""


@define(eq=False, kw_only=True)
class Applying:
    """One apply of a plan; owned by the command."""

    plan: Plan
    place: WritablePlace
    journal: JournalWriter | None
    options: ApplyOptions
    notify: Callable[[str], None]
    """Called with a warning for each ACL that an interrupted apply, or another writer, may have added."""
    _digest: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._digest = plan_digest(self.plan)

    def check(self) -> Ready:
        """Return the work to do. Writes nothing.

        Raises:
            RefusedError, JournalError: the plan does not match the target or the journal.
            MetadataError: the target cannot be read.

        """
        self._check_plan()
        state = self.place.read()
        begun = self._begun()
        if begun is not None and begun.kind is EntryKind.DONE:
            self._check_same(state, begun)
            return Ready(state=state, begun=begun, remaining=Remaining(steps=(), completed=len(self.plan.steps)))
        self._check_place(state, begun)
        if begun is not None and self.place.completion(begun.apply) is Completion.ALL:
            # later changes by others do not matter
            return Ready(state=state, begun=begun, remaining=Remaining(steps=(), completed=len(self.plan.steps)))
        self._check_settings()
        self._check_kafka(state)
        sent = self._sent(begun)
        remaining = check_base(self.plan, state, self.place.name, sent)
        self.place.check(remaining.steps)
        self._check_owned(state, begun)
        return Ready(state=state, begun=begun, remaining=remaining, sent=sent)

    def make(self, ready: Ready, progress: Progress) -> Outcome:
        """Make the steps that `check` returned, and write the journal.

        Raises:
            StoppedError: the apply stopped before its last step; the journal lists the steps that may have been made.
            MetadataError: the journal cannot be written.

        """
        begun, remaining = ready.begun, ready.remaining
        if begun is not None and ready.is_done:
            return Outcome(apply=begun.apply, completed=0, completed_before=remaining.completed, was_done=True)
        apply = self.options.apply if begun is None else begun.apply
        settled = self._settled(ready)
        if begun is None:
            self._append(EntryKind.BEGIN, apply, settled)
        self._make(ready, self._note(apply), progress)
        self._append(EntryKind.DONE, apply)
        return Outcome(apply=apply, completed=len(remaining.steps), completed_before=remaining.completed)

    def _check_plan(self) -> None:
        for acl in (*(step.acl for step in self.plan.steps), *self.plan.adopt):
            why = symbol_refusal(acl)
            if why is not None:
                raise RefusedError(f"{acl_text(acl)}: {why}")
        if self.plan.transient and not self.options.accept_transient:
            raise RefusedError(
                f"{len(self.plan.transient):,} sets of requests would be denied transiently, though they are allowed "
                "before and after (the plan lists them): expected --accept-transient-denials"
            )
        if self.plan.place.batching is not self.place.batching:
            raise RefusedError(
                f"{self.place.name}: makes changes visible in other units than at plan time: create a new plan"
            )

    def _sent(self, begun: Entry | None) -> Sent:
        """Return the progress of an earlier run; without a journal only the target may have recorded it."""
        if self.journal is not None:
            return NOTHING_SENT if begun is None else sent_of(self.journal.journal, self.place.completion)
        if not self.options.resume:
            return NOTHING_SENT
        steps = len(self.plan.steps)
        unsure = Sent(unsure=frozenset(range(steps)))
        return unsure if begun is None else unsure.of(self.place.completion(begun.apply), steps)

    def _begun(self) -> Entry | None:
        """Return the newest entry of an apply of this plan; None without one.

        Raises:
            JournalError: the journal has changed since the plan was made.

        """
        mark, writer = self.plan.journal, self.journal
        if mark is None or writer is None:
            return self._noted()
        entries = writer.journal.entries
        last = entries[-1] if entries else None
        if last is not None and last.plan == self._digest:
            self._check_whole(last)
            return last
        if self.options.resume:
            raise RefusedError(f"{writer.journal.path}: no interrupted apply of this plan: apply it without --resume")
        if len(entries) != mark.entries or (mark.checksum and writer.journal.checksum != mark.checksum):
            raise JournalError(
                f"{writer.journal.path}: has {len(entries):,} entries, but {mark.entries:,}, or others, when the plan "
                "was made: another plan was applied, or this is another copy: create a new plan"
            )
        return None

    def _noted(self) -> Entry | None:
        """Return the target's note of an unfinished earlier run; None if it keeps no notes, or has none of this plan.

        Raises MetadataError: the target's notes are damaged.
        """
        note = self.place.noted(self._digest) if self.options.resume else None
        if note is None:
            return None
        return Entry(
            kind=EntryKind.BEGIN,
            apply=note.apply,
            at=note.at,
            who=note.who,
            plan=note.plan,
            place=self.plan.place.identity,
            git=note.git,
            steps=tuple(_journal_steps(self.plan)),
        )

    def _check_whole(self, last: Entry) -> None:
        """Check that a completed apply of this plan made every step: a later command may have settled it partway."""
        completed, steps = set(last.steps), set(_journal_steps(self.plan))
        if last.kind is EntryKind.DONE and completed != steps:
            raise RefusedError(
                f"apply {last.apply} of this plan was interrupted, and a later command settled it with "
                f"{len(completed):,} of its {len(steps):,} changes: create a new plan"
            )

    def _check_same(self, state: PlaceState, done: Entry) -> None:
        """Check that the target is the one to which a completed apply was made.

        Raises RefusedError: it is another one.
        """
        identity, name = self.place.identity(), self.place.name
        if identity != done.place or (self.plan.steps and not state.exists):
            what = f"is {identity}" if identity is not None else "is new, was replaced, or has no identity"
            raise RefusedError(
                f"{name}: {what}, but apply {done.apply} of this plan was made to {done.place}: nothing was changed"
            )

    def _check_place(self, state: PlaceState, begun: Entry | None) -> None:
        self._check_identity(begun)
        if state.exists is not self.plan.base.exists and not (state.exists and begun is not None):
            now, then = ("exists", "did not exist") if state.exists else ("does not exist", "existed")
            raise RefusedError(f"{self.place.name}: {now}, but {then} when the plan was made: create a new plan")

    def _check_identity(self, begun: Entry | None) -> None:
        expected, identity, name = self.plan.place.identity, self.place.identity(), self.place.name
        fingerprint, end = self.plan.place.fingerprint, self.plan.base.end_offset
        if fingerprint is not None:
            if self.place.fingerprint(end or 0) != fingerprint:
                raise RefusedError(
                    f"{name}: not the target that the plan was made for (a log is identified by its first batch and "
                    "the one before the plan's end, a ZooKeeper by the creation of /kafka-acl): nothing was changed"
                )
            if expected is None:
                return  # identified by its contents; an apply of another source may have given it an identity since
        if begun is not None and expected is None:  # the interrupted apply may have created the target
            if identity is not None and not self.place.was_noted(begun.apply):
                raise RefusedError(f"{name}: not the target that this apply created: nothing was changed")
        elif identity != expected:
            raise RefusedError(
                f"{name}: is {identity or 'new, or has no identity'}, but the plan was made for "
                f"{expected or 'a new target, or one without an identity'}: expected the same target"
            )

    def _check_settings(self) -> None:
        """Check that resources which the plan counts as closed are not open: its transient denials would be wrong."""
        settings, plan = self.place.settings(), self.plan
        if settings is None and plan.settings_by_place and not plan.settings.allow_everyone:
            raise RefusedError(
                f"{self.place.name}: no longer reports allow.everyone.if.no.acl.found, but reported false when the "
                "plan was made (a Kafka hides the value once it is set): nothing was changed; create a new plan, on "
                "this target or with --no-allow-everyone-if-no-acl-found if resources without ACLs are closed"
            )
        if settings is not None and settings.allow_everyone and not plan.settings.allow_everyone:
            raise RefusedError(
                f"{self.place.name}: resources without ACLs are open to everyone (allow.everyone.if.no.acl.found), but "
                "were closed when the plan was made, or by a flag: nothing was changed; create a new plan with the "
                "present setting"
            )

    def _check_kafka(self, state: PlaceState) -> None:
        """Check that the plan knows every generation of Kafka that may decide: steps may mean something else to it."""
        planned = self.plan.generations
        if planned is None:
            return
        contents = (*state.contents, *(content_of(step.acl) for step in self.plan.steps))
        ranges = list(ranges_among(contents))
        if not ranges:  # those that the plan was about are gone
            return
        now = self.place.kafka(ranges)
        if not set(now.generations) <= set(planned):
            by = " or ".join(map(str, planned))
            why = now.reason() or f"its brokers run {now.generations[0]}"
            raise RefusedError(
                f"{self.place.name}: the plan was made for {by}, but {why}: a host that is a range is decided "
                "otherwise; nothing was changed; create a new plan"
            )

    def _check_owned(self, state: PlaceState, begun: Entry | None) -> None:
        """Check that the plan removes only managed ACLs, except those that it lists as unmanaged."""
        if self.journal is None:
            return
        journal, unowned = self.journal.journal, set(self.plan.unowned)
        owned = (settle(journal, state.contents, self.place.completion).journal if begun is None else journal).owned
        for step in self.plan.steps:
            if not step.adds and step.acl not in unowned and content_of(step.acl) not in owned:
                raise RefusedError(f"{acl_text(step.acl)}: not managed by the journal: create a new plan")

    def _settled(self, ready: Ready) -> tuple[Entry, ...]:
        """Report the unsure steps of an interrupted apply; return the entry that ends an apply of another plan."""
        if self.journal is None:
            return ()
        journal = self.journal.journal
        settled = settle(journal, ready.state.contents, self.place.completion)
        for text in unsure_texts(journal, settled.unsure):
            self.notify(text)
        if ready.begun is not None or journal.open is None:
            return ()
        done = settled.journal.entries[-1]
        return (evolve(done, at=self.options.at, who=self.options.who, place=self.place.identity()),)

    def _make(self, ready: Ready, note: ApplyNote, progress: Progress) -> None:
        remaining, total = ready.remaining, len(self.plan.steps)
        numbers = {step: number for number, step in enumerate(self.plan.steps)}
        pending = {numbers[step] for step in remaining.steps}
        completed = set(range(total)) - pending
        progress(len(completed), total)
        self.place.note_begin(note)
        stage, sent = remaining.steps[0].stage if remaining.steps else None, ready.sent
        for piece in self.place.pieces(remaining.steps):
            if piece and piece[0].stage != stage:
                self._check_alone(completed)
                stage = piece[0].stage
            sent = self._note_sent(note.apply, sent.sending(completed, (numbers[step] for step in piece)))
            try:
                self.place.write(piece)
                self._check_written(piece)
            except MetadataError as error:
                raise StoppedError(self._stopped(error, len(completed))) from error
            completed.update(numbers[step] for step in piece)
            progress(len(completed), total)
        self.place.note_done(note)

    def _note_sent(self, apply: str, sent: Sent) -> Sent:
        """Record durably which steps are sent next, so that a later run knows which may have been made."""
        if self.journal is not None and self.plan.place.batching is not Batching.ALL:
            self.journal.note_sent(apply, sent)
        return sent

    def _check_alone(self, completed: set[int]) -> None:
        """Check between two stages that no other writer has changed what the plan touches, where a plan takes a while.

        A DENY that was redundant when the plan was made may be needed now. Brokers with a ZooKeeper read changes each
        in its own order: a cluster is read once all of them show the previous stage. A later step that another
        writer has made meanwhile counts as made.
        """
        if self.plan.place.batching is not Batching.RULE:
            return
        total = len(self.plan.steps)
        sent = Sent(completed=frozenset(completed), unsure=frozenset(range(total)) - completed)
        try:
            check_base(self.plan, self.place.read(), self.place.name, sent)
        except RefusedError as error:
            raise StoppedError(
                f"{self.place.name}: another writer has changed ACLs that the plan touches since the apply began; "
                f"stopped after {len(completed):,} of {total:,} steps: create a new plan from the present state"
            ) from error
        except MetadataError as error:
            raise StoppedError(self._stopped(error, len(completed))) from error

    def _check_written(self, piece: Sequence[Step]) -> None:
        there = self.place.read_back([step.acl for step in piece])
        for step in piece:
            if (step.acl in there) is not step.adds:
                what = "is missing" if step.adds else "still exists"
                raise StoppedError(
                    f"{self.place.name}: {acl_text(step.acl)} {what} after the write: is there another writer?"
                )

    def _stopped(self, error: MetadataError, completed: int) -> str:
        note = "" if self.journal is None else "; the journal lists the steps that may have been made"
        return (
            f"{error}; stopped after {completed:,} of {len(self.plan.steps):,} steps{note}: continue with `aclog apply "
            "PLAN --resume`, or create a new plan from the present state"
        )

    def _note(self, apply: str) -> ApplyNote:
        options = self.options
        return ApplyNote(
            apply=apply,
            at=options.at,
            who=options.who,
            plan=self._digest,
            journal=None if self.plan.journal is None else self.plan.journal.id,
            git=options.git or self.plan.origin.git,
        )

    def _append(self, kind: EntryKind, apply: str, settled: tuple[Entry, ...] = ()) -> None:
        """Write an entry of this apply, with the one that ends an earlier apply: alone that would block this plan."""
        if self.journal is None:
            return
        options = self.options
        self.journal.append(
            *settled,
            Entry(
                kind=kind,
                apply=apply,
                at=options.at,
                who=options.who,
                plan=self._digest,
                place=self.place.identity(),
                git=options.git or self.plan.origin.git,
                at_once=kind is EntryKind.BEGIN and self.plan.place.batching is Batching.ALL,
                steps=_journal_steps(self.plan),
            ),
        )


def _journal_steps(plan: Plan) -> tuple[JournalStep, ...]:
    return (
        *(
            JournalStep(action=JournalAction.ADD if step.adds else JournalAction.REMOVE, content=content_of(step.acl))
            for step in plan.steps
        ),
        *_of(JournalAction.ADOPT, plan.adopt),
        *_of(JournalAction.RELEASE, plan.release),
    )


def _of(action: JournalAction, acls: Sequence[StandardAcl]) -> list[JournalStep]:
    return [JournalStep(action=action, content=content_of(acl)) for acl in acls]
