"""Plans of drafts, and their applying: by a console that was allowed to, in the one place that it shows."""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from attrs import define, evolve, field, frozen

from aclog.analysis.review.document_text import text_lines
from aclog.authorizer.cidr import is_cidr
from aclog.authorizer.rule_change import RuleChange
from aclog.metalog.errors import MetadataError
from aclog.metalog.uuids import random_uuid, uuid_text
from aclog.places.found_place import ToldSettings, find_place
from aclog.places.origin import origin_now, time_now
from aclog.places.plan_apply import PlanApply, told_outcome
from aclog.planning.applying import ApplyOptions
from aclog.planning.delete_limit import DeleteLimit
from aclog.planning.errors import RefusedError
from aclog.planning.making import make_plan
from aclog.planning.plan import PlaceAddress, Plan
from aclog.planning.plan_file import plan_digest
from aclog.planning.planner import change_as_asked
from aclog.planning.report.plan_document import document_of
from aclog.planning.report.plan_report import PlanReport

_PLANS = 32
"""Plans that are kept."""


@frozen(kw_only=True)
class Ownership:
    """What a plan may do with rules that its journal does not own, and how many it may delete."""

    adopt: bool = False
    max_deletes: str = ""
    """As --max-deletes; empty for the default."""


@frozen(kw_only=True)
class Applied:
    """What became of an apply."""

    text: str
    """What was done, or why it was not."""
    apply: str | None = None
    """The id of an apply that was done."""


@frozen(eq=False, kw_only=True)
class DraftPlan:
    """A plan of a draft."""

    plan: Plan
    digest: str
    lines: tuple[str, ...]
    """What people read of it."""
    applied: Applied | None = None
    """None: nobody has applied it here."""

    @property
    def is_done(self) -> bool:
        """Whether it was applied."""
        return self.applied is not None and self.applied.apply is not None


@define(eq=False, kw_only=True)
class Editing:
    """Makes plans for one place and one journal, and applies them one by one. Safe for any number of threads."""

    address: PlaceAddress
    told: ToldSettings
    journal: Path
    others: Sequence[Path] = ()
    """Journals of other sources for the same place."""
    notify: Callable[[str], None]
    _plans: "OrderedDict[str, DraftPlan]" = field(factory=OrderedDict, init=False)
    _keeping: threading.Lock = field(factory=threading.Lock, init=False)
    _applying: threading.Lock = field(factory=threading.Lock, init=False)

    def plan(self, changes: Sequence[RuleChange], ownership: Ownership, who: str | None) -> DraftPlan:
        """Return a plan that makes the changes, and keep it; `who` asks for it, if that is known.

        Raises:
            ConfigError: a limit of deletes that is none.
            RefusedError: it deletes too much or what is not owned, or something cannot be created.
            MetadataError: the place or the journal cannot be read.

        """
        limit = DeleteLimit.parse(ownership.max_deletes or None)
        hosts = filter(is_cidr, (each.acl.host for each in changes))
        found = find_place(self.address, self.told, self.journal, self.notify, self.others, hosts=hosts)
        change = change_as_asked(found.held, changes, adopt=ownership.adopt)
        origin = origin_now()
        plan = make_plan(change, found.circumstances(evolve(origin, who=_by(who, origin.who))))
        found.check_plan(change, plan.steps, limit)
        if plan.is_empty:
            raise RefusedError(f"{found.name}: nothing to do: it is so already")
        report = PlanReport(
            name=found.name,
            state=found.state,
            plan=plan,
            change=change,
            kafka=found.kafka,
            premises=found.premises,
        )
        lines = tuple(text_lines(document_of(report, full=True)))
        made = DraftPlan(plan=plan, digest=plan_digest(plan), lines=lines)
        self._keep(made)
        return made

    def get(self, digest: str) -> DraftPlan | None:
        """Return a plan; None if it is forgotten, or never was."""
        with self._keeping:
            return self._plans.get(digest)

    def apply(self, digest: str, *, accept_transient: bool, who: str | None) -> DraftPlan | None:
        """Apply a plan, once: who asks again is told what was done. None: it is forgotten.

        What refuses or stops it is kept with it, and told.
        """
        with self._applying:
            known = self.get(digest)
            if known is None or known.is_done:
                return known
            try:
                applied = self._applied(known.plan, accept_transient=accept_transient, who=who)
            except (MetadataError, OSError) as error:
                applied = Applied(text=str(error))
            done = evolve(known, applied=applied)
            self._keep(done)
            return done

    def _applied(self, plan: Plan, *, accept_transient: bool, who: str | None) -> Applied:
        options = ApplyOptions(
            apply=uuid_text(random_uuid(secrets.token_bytes)),
            at=time_now(),
            who=_by(who, origin_now().who),
            accept_transient=accept_transient,
        )
        applied = PlanApply(plan=plan, address=self.address, options=options, notify=self.notify)
        name, outcome = applied.run(None, lambda _place: nullcontext(_untold))
        return Applied(text=told_outcome(plan, outcome, name), apply=outcome.apply)

    def _keep(self, plan: DraftPlan) -> None:
        with self._keeping:
            self._plans[plan.digest] = plan
            self._plans.move_to_end(plan.digest)
            while len(self._plans) > _PLANS:
                self._plans.popitem(last=False)


def _by(who: str | None, process: str) -> str:
    """Return who does something, and as whom the console runs."""
    return process if who is None else f"{who} by {process}"


def _untold(_made: int, _of: int) -> None:
    """Tell nobody how far it is."""
