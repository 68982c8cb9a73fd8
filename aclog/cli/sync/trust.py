"""Whether a poll is to be believed: one that would remove too much is asked again, then refused."""

from attrs import define, evolve, field

from aclog.cli.removal_limit import RemovalLimit
from aclog.cli.sync.log import SyncLog
from aclog.cli.sync.poller import ClusterPoller, Poll
from aclog.metalog.errors import MetadataError
from aclog.terminal.notices import note
from aclog.terminal.timestamps import utc_text


class RefusedPollError(MetadataError):
    """A poll would remove more than is plausible; `removed` of `total` ACLs."""

    def __init__(self, poll: Poll, removed: int, total: int) -> None:
        super().__init__(
            f"the poll of {utc_text(poll.timestamp)} is refused: {removed} of {total} rules would go, and no broker "
            "shows them; is a broker without its metadata answering? If they were really removed, run the command "
            f"with --accept-removal {removed}"
        )
        self.removed = removed
        self.notice = f"newest poll refused at {utc_text(poll.timestamp)}: {removed} of {total} rules would go"


@define(eq=False, kw_only=True)
class RemovalTrust:
    """The limit of a run; the one larger removal that its operator has accepted is spent by the poll that needs it."""

    limit: RemovalLimit
    refused: int = field(default=0, init=False)
    """How many rules the newest poll would have removed, if it was refused."""

    async def trusted_poll(self, poller: ClusterPoller, log: SyncLog | None) -> Poll:
        """Poll; return a response that may be recorded.

        Raises:
            RefusedPollError: it would remove too much, also if asked again; the log has a notice of that.
            MetadataError: as ClusterPoller.poll.

        """
        if log is None:
            # Nothing is recorded that could be removed; but what an old state has in excess would be later.
            return await poller.poll_settled()
        poll = await poller.poll()
        if not poll.is_settled and log.differs_from(poll):
            poll = await poller.poll_settled()
        if not self._is_plausible(poll, log):
            again = await poller.poll_again(lambda other: self._is_plausible(other, log))
            if again is not None and log.differs_from(again):
                again = await poller.poll_settled()
            poll = again if again is not None and self._is_plausible(again, log) else self._accepted(poll, log)
        self.refused = 0
        log.withdraw_notice()
        return poll

    def _is_plausible(self, poll: Poll, log: SyncLog) -> bool:
        return not self.limit.is_exceeded(log.removed_by(poll), len(log.recorded))

    def _accepted(self, poll: Poll, log: SyncLog) -> Poll:
        removed, total = log.removed_by(poll), len(log.recorded)
        if not self.limit.is_accepted(removed):
            self.refused, refusal = removed, RefusedPollError(poll, removed, total)
            log.leave_notice(refusal.notice)
            raise refusal
        note(f"the removal of {removed} of {total} rules is accepted: --accept-removal {self.limit.accepted} is spent")
        self.limit = evolve(self.limit, accepted=None)
        return poll
