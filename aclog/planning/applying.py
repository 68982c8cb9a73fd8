"""Applying a plan: checks, then the journal, then the target, piece by piece."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from attrs import define, evolve, field, frozen

from aclog.authorizer.acl import StandardAcl, acl_text
from aclog.authorizer.acls_image import content_of
from aclog.metalog.errors import MetadataError
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
from aclog.snapshots.deciding_kafka import SOME_RANGE

# Whether a place is still what a plan was made from.


_MAX_SHRINK = 0.2
"""Of what there was when the plan was made: an answer that lost more is hardly whole."""

_AGAIN = "nothing was changed; make the plan again"


@frozen(kw_only=True)
class Remaining:
    """The steps of a plan that are still to be made, in order, and how many are made already."""

    steps: tuple[Step, ...]
    completed: int


def check_base(plan: Plan, state: PlaceState, name: str, sent: Sent) -> Remaining:
    """Check that a place is what the plan was made from; return the steps that are to be made.

    `sent` is how far an apply of this plan has come: what it made does not count as a change, and of the steps of which
    it is unsure those are made that look so.

    Raises:
        RefusedError: what the plan's steps touch has changed, or the place lost much of what it had.

    """
    looks_made = {number for number, step in enumerate(plan.steps) if _looks_made(step, state)}
    completed = sorted(sent.completed | (sent.unsure & looks_made))
    before = _without([plan.steps[number] for number in completed if number in looks_made], state.contents)
    _check_whole(plan, before, state, name)
    changed = min(looks_made.symmetric_difference(completed), default=None)
    if changed is not None:
        step = plan.steps[changed]
        what = "is there" if step.adds is (changed in looks_made) else "is gone"
        since = "an apply of the plan had made it" if changed in sent.completed else "the plan was made"
        raise RefusedError(f"{name}: changed since {since}: {acl_text(step.acl)} {what}: {_AGAIN}")
    now = touched(region_of(plan).among(before))
    if now != plan.base.touched:
        raise RefusedError(
            f"{name}: rules in the region that the plan touches have changed since it was made: there are "
            f"{now.rules:,} now, and were {plan.base.touched.rules:,}: {_AGAIN}"
        )
    remaining = tuple(step for number, step in enumerate(plan.steps) if number not in looks_made)
    return Remaining(steps=remaining, completed=len(completed))


def _looks_made(step: Step, state: PlaceState) -> bool:
    return (content_of(step.acl) in state.contents) is step.adds


def _check_whole(plan: Plan, before: AbstractSet[bytes], state: PlaceState, name: str) -> None:
    """Refuse an answer that is hardly whole, or of an older copy; `before` is without what the plan made."""
    base = plan.base
    if not state.contents and len(before) < base.rules:  # equal: the plan removed all there was
        raise RefusedError(
            f"{name}: answers that it has no rules at all, and had {base.rules:,} when the plan was made: it may not "
            f"be ready, or not the same place: {_AGAIN}"
        )
    if len(before) < base.rules * (1 - _MAX_SHRINK):
        raise RefusedError(
            f"{name}: has {len(before):,} rules, and had {base.rules:,} when the plan was made: more than "
            f"{_MAX_SHRINK:.0%} are gone: {_AGAIN}"
        )
    if base.end_offset is not None and state.end_offset is not None and state.end_offset < base.end_offset:
        raise RefusedError(
            f"{name}: ends at offset {state.end_offset}, and ended at {base.end_offset} when the plan was made: an "
            f"older copy: {_AGAIN}"
        )


def region_of(plan: Plan) -> TouchedRegion:
    """Return the region that the steps of a plan touch, and what it adopts and releases."""
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


# Applying a plan: checks, then the journal, then the place, piece by piece, each read back; then the journal again.
#
# Whatever the moment at which it is killed, the journal and the place together tell what was made: BEGIN is durable
# before the first step, and DONE after the last one was read back.


Progress: TypeAlias = Callable[[int, int], None]
"""Called with the steps that are made, and with all of them."""


@frozen(kw_only=True)
class ApplyOptions:
    """Who applies, when, and what was accepted."""

    apply: str
    """The id of a new apply."""
    at: str
    """ISO 8601, UTC."""
    who: str
    git: str | None = None
    accept_transient: bool = False
    resume: bool = False
    """Whether an apply of the same plan must have been ended on its way; without a journal, that it may have been."""


@frozen(eq=False, kw_only=True)
class Ready:
    """What an apply is to do, as its place was when it was asked."""

    state: PlaceState
    begun: Entry | None
    """The newest entry of an earlier run of the same apply."""
    remaining: Remaining
    sent: Sent = NOTHING_SENT
    """How far that run had come."""

    @property
    def is_done(self) -> bool:
        """Whether that run has ended, so that nothing is to be done."""
        return self.begun is not None and self.begun.kind is EntryKind.DONE


@frozen(kw_only=True)
class Outcome:
    """What an apply did."""

    apply: str
    completed: int
    """Steps that it made."""
    completed_before: int
    """Steps that an earlier run of the same apply had made."""
    was_done: bool = False
    """Whether it had ended before, so that nothing was done now."""


@define(eq=False, kw_only=True)
class Applying:
    """One apply of a plan; owned by the command."""

    plan: Plan
    place: WritablePlace
    journal: JournalWriter | None
    options: ApplyOptions
    notify: Callable[[str], None]
    """Told which rules an apply may have added that was ended on its way, or somebody else."""
    _digest: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._digest = plan_digest(self.plan)

    def check(self) -> Ready:
        """Return what is to be done; nothing is written.

        Raises:
            RefusedError, JournalError: the plan is not, or no longer, for what is there.
            MetadataError: the place cannot be read.

        """
        self._check_plan()
        state = self.place.read()
        begun = self._begun()
        if begun is not None and begun.kind is EntryKind.DONE:
            self._check_same(state, begun)
            return Ready(state=state, begun=begun, remaining=Remaining(steps=(), completed=len(self.plan.steps)))
        self._check_place(state, begun)
        if begun is not None and self.place.completion(begun.apply) is Completion.ALL:
            # what others did since is no matter
            return Ready(state=state, begun=begun, remaining=Remaining(steps=(), completed=len(self.plan.steps)))
        self._check_settings()
        self._check_kafka()
        sent = self._sent(begun)
        remaining = check_base(self.plan, state, self.place.name, sent)
        self.place.check(remaining.steps)
        self._check_owned(state, begun)
        return Ready(state=state, begun=begun, remaining=remaining, sent=sent)

    def make(self, ready: Ready, progress: Progress) -> Outcome:
        """Make what `check` found is to be done, and keep the journal.

        Raises:
            StoppedError: it ended on its way; the journal has what may have been written.
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
        if self.plan.transient and not self.options.accept_transient:
            raise RefusedError(
                f"{len(self.plan.transient):,} sets of requests would be denied for a moment, though they are allowed "
                "before and after: the plan lists them; expected --accept-transient-denials"
            )
        if self.plan.place.batching is not self.place.batching:
            raise RefusedError(
                f"{self.place.name}: shows a change in other parts than the plan was made for: make the plan again"
            )

    def _sent(self, begun: Entry | None) -> Sent:
        """Return how far an earlier run has come; without a journal only the place may know."""
        if self.journal is not None:
            return NOTHING_SENT if begun is None else sent_of(self.journal.journal, self.place.completion)
        if not self.options.resume:
            return NOTHING_SENT
        steps = len(self.plan.steps)
        unsure = Sent(unsure=frozenset(range(steps)))
        return unsure if begun is None else unsure.of(self.place.completion(begun.apply), steps)

    def _begun(self) -> Entry | None:
        """Return the newest entry of an apply of this plan; None if there is none.

        Raises:
            JournalError: the journal is not where it was when the plan was made.

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
            raise RefusedError(
                f"{writer.journal.path}: no apply of this plan was ended on its way: apply it without --resume"
            )
        if len(entries) != mark.entries or (mark.checksum and writer.journal.checksum != mark.checksum):
            raise JournalError(
                f"{writer.journal.path}: has {len(entries):,} entries, and had {mark.entries:,} when the plan was "
                "made, or others: something else was applied, or it is another copy: make the plan again"
            )
        return None

    def _noted(self) -> Entry | None:
        """Return what the place has kept of an earlier run, if it is to be ended; None: it keeps no notes, or has none.

        Raises MetadataError: its record is damaged.
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
        """Check that an apply of this plan that has ended made all of it: another command may have settled it."""
        completed, steps = set(last.steps), set(_journal_steps(self.plan))
        if last.kind is EntryKind.DONE and completed != steps:
            raise RefusedError(
                f"apply {last.apply} of this plan was ended on its way, and settled by a later command with "
                f"{len(completed):,} of its {len(steps):,} changes: make the plan again"
            )

    def _check_same(self, state: PlaceState, done: Entry) -> None:
        """Check that the place is the one to which an apply was made that has ended. Raises RefusedError: it is not."""
        identity, name = self.place.identity(), self.place.name
        if identity != done.place or (self.plan.steps and not state.exists):
            what = f"is {identity}" if identity is not None else "is new, was replaced, or has no identity"
            raise RefusedError(
                f"{name}: {what}, and apply {done.apply} of this plan was made to {done.place}: nothing was changed"
            )

    def _check_place(self, state: PlaceState, begun: Entry | None) -> None:
        self._check_identity(begun)
        if state.exists is not self.plan.base.exists and not (state.exists and begun is not None):
            now, then = ("is there", "was not") if state.exists else ("is gone", "was there")
            raise RefusedError(f"{self.place.name}: {now}, and {then} when the plan was made: make the plan again")

    def _check_identity(self, begun: Entry | None) -> None:
        expected, identity, name = self.plan.place.identity, self.place.identity(), self.place.name
        fingerprint, end = self.plan.place.fingerprint, self.plan.base.end_offset
        if fingerprint is not None:
            if self.place.fingerprint(end or 0) != fingerprint:
                raise RefusedError(
                    f"{name}: another place than the one that the plan was made for: a log is known by its first batch "
                    "and the one before the plan's end, a ZooKeeper by when /kafka-acl was created; nothing was changed"
                )
            if expected is None:
                return  # it is known by what it holds; another source's apply may have given it an identity since
        if begun is not None and expected is None:  # the apply that was ended on its way may have made the place
            if identity is not None and not self.place.was_noted(begun.apply):
                raise RefusedError(f"{name}: another place than the one that this apply made: nothing was changed")
        elif identity != expected:
            raise RefusedError(
                f"{name}: is {identity or 'new, or without an identity'}, and the plan was made for "
                f"{expected or 'a place that was new, or had none'}: expected the same place"
            )

    def _check_settings(self) -> None:
        """Check that no name is open by now that the plan counts as closed: what it says of moments would be wrong."""
        settings, plan = self.place.settings(), self.plan
        if settings is None and plan.settings_by_place and not plan.settings.allow_everyone:
            raise RefusedError(
                f"{self.place.name}: does not tell any more whether names without rules are open to everyone "
                "(allow.everyone.if.no.acl.found), and said that they are closed when the plan was made: a Kafka hides "
                "it once it is set; nothing was changed; make the plan again, here, or with "
                "--no-allow-everyone-if-no-acl-found if they are closed"
            )
        if settings is not None and settings.allow_everyone and not plan.settings.allow_everyone:
            raise RefusedError(
                f"{self.place.name}: names without rules are open to everyone there (allow.everyone.if.no.acl.found), "
                "and were closed when the plan was made, or a flag said so: nothing was changed; make the plan again, "
                "as it is now"
            )

    def _check_kafka(self) -> None:
        """Check that no Kafka may decide by now that the plan knows nothing of: its steps may mean something else."""
        planned = self.plan.generations
        if planned is None:
            return
        now = self.place.kafka(SOME_RANGE)
        if not set(now.generations) <= set(planned):
            by = " or ".join(map(str, planned))
            why = now.reason() or f"its brokers run {now.generations[0]}"
            raise RefusedError(
                f"{self.place.name}: the plan was made for {by}, and {why}: a host that is a range decides otherwise; "
                "nothing was changed; make the plan again"
            )

    def _check_owned(self, state: PlaceState, begun: Entry | None) -> None:
        """Check that the plan removes only what is owned, but for what it says itself."""
        if self.journal is None:
            return
        journal, unowned = self.journal.journal, set(self.plan.unowned)
        owned = (settle(journal, state.contents, self.place.completion).journal if begun is None else journal).owned
        for step in self.plan.steps:
            if not step.adds and step.acl not in unowned and content_of(step.acl) not in owned:
                raise RefusedError(f"{acl_text(step.acl)}: the journal does not own it: make the plan again")

    def _settled(self, ready: Ready) -> tuple[Entry, ...]:
        """Tell what nobody knows of an apply that was ended on its way; return the end of that of another plan."""
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
        """Keep durably what is sent next, so that nobody takes for made what has not begun, nor the other way round."""
        if self.journal is not None and self.plan.place.batching is not Batching.ALL:
            self.journal.note_sent(apply, sent)
        return sent

    def _check_alone(self, completed: set[int]) -> None:
        """Check between two stages that nobody else changed what the plan touches, where that takes a while.

        A DENY that was needless when the plan was made may not be so any more. And brokers with a ZooKeeper learn of
        changes each in an order of its own: a cluster is read when all of them show the stage before. A later step that
        somebody else does meanwhile is done.
        """
        if self.plan.place.batching is not Batching.RULE:
            return
        total = len(self.plan.steps)
        sent = Sent(completed=frozenset(completed), unsure=frozenset(range(total)) - completed)
        try:
            check_base(self.plan, self.place.read(), self.place.name, sent)
        except RefusedError as error:
            raise StoppedError(
                f"{self.place.name}: somebody else has changed rules in the region that the plan touches, since the "
                f"apply began; stopped after {len(completed):,} of {total:,} steps: a new plan begins from what is "
                "there"
            ) from error
        except MetadataError as error:
            raise StoppedError(self._stopped(error, len(completed))) from error

    def _check_written(self, piece: Sequence[Step]) -> None:
        there = self.place.read_back([step.acl for step in piece])
        for step in piece:
            if (step.acl in there) is not step.adds:
                what = "is not there" if step.adds else "is still there"
                raise StoppedError(
                    f"{self.place.name}: {acl_text(step.acl)} {what} after it was written: who else writes?"
                )

    def _stopped(self, error: MetadataError, completed: int) -> str:
        note = "" if self.journal is None else "; the journal has what may have been made"
        return (
            f"{error}; stopped after {completed:,} of {len(self.plan.steps):,} steps{note}: `aclog apply PLAN "
            "--resume` goes on, and a new plan begins from what is there"
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
        """Write an entry of this apply, together with what ends an earlier one: alone, that would hinder this plan."""
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
