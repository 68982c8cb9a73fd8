"""The watch over a log's topic while a controller runs: is it there, is it the same, can it hold a log?"""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial

from attrs import define, field

from aclog.metalog.errors import ConfigError, LogError, MetadataError
from aclog.nodes.controller.shared.identity_keeper import IdentityKeeper
from aclog.nodes.controller.shared.topic_identity import LogEnd
from aclog.nodes.telemetry.metrics import Metrics

_RECORD_SECONDS = 1.0
_LOOK_SECONDS = 5.0
_SETTINGS_SECONDS = 60.0
_RETRY_SECONDS = 0.2
IDENTITY, SETTINGS = "identity", "settings"

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class TopicWatch:
    """Owned by a controller; all but the properties runs on its event loop.

    What a check finds stays until a later one finds otherwise. A check that no broker answers finds nothing: whether
    the log can be reached is for its readers and writers to tell.
    """

    keeper: IdentityKeeper
    committed: Callable[[], LogEnd]
    """How far this node has published what is committed."""
    on_lost: Callable[[LogError], None]
    """Called when the topic is found to be missing or another one."""
    _found: dict[str, str | None] = field(factory=dict, init=False)
    """What is wrong, by check; None if nothing is."""
    _checked: dict[str, float] = field(factory=dict, init=False)
    """When a check was answered last, by time.monotonic."""
    _unanswered: str = field(default="", init=False)
    """Why the last check was not answered, if it was not."""
    _one_at_a_time: asyncio.Lock = field(factory=asyncio.Lock, init=False)

    @property
    def trouble(self) -> str | None:
        """What is wrong with the topic, in one line; None if nothing is known to be."""
        return self._found.get(IDENTITY) or self._found.get(SETTINGS)

    def observe(self, metrics: Metrics) -> None:
        """Show the checks in metrics."""
        for check in (IDENTITY, SETTINGS):
            metrics.topic_wrong.labels(check).set_function(partial(self._wrong, check))
            metrics.topic_check_age.labels(check).set_function(partial(self._age, check))

    def begin(self) -> None:
        """Both checks have just passed, as the controller started."""
        for check in (IDENTITY, SETTINGS):
            self._found[check], self._checked[check] = None, time.monotonic()

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            await asyncio.sleep(_RECORD_SECONDS)
            await self.record()
            if self._age(IDENTITY) >= _LOOK_SECONDS:
                await self._check(IDENTITY, self.keeper.look)
            # What is wrong is looked at more often, so that the mend is seen soon.
            if self._age(SETTINGS) >= (_LOOK_SECONDS if self._found.get(SETTINGS) else _SETTINGS_SECONDS):
                await self._check(SETTINGS, self.keeper.shared.check_settings)

    async def fit_to_lead(self, still_wanted: Callable[[], bool]) -> bool:
        """Check everything before a takeover, for as long as no broker answers and the takeover is still wanted."""
        while still_wanted():
            answered = await self._check(IDENTITY, self.keeper.look)
            if answered and await self._check(SETTINGS, self.keeper.shared.check_settings):
                return self.trouble is None
            await asyncio.sleep(_RETRY_SECONDS)
        return False

    async def record(self) -> None:
        """Record how far the log is committed, if the topic is known to be the right one."""
        if self._found.get(IDENTITY) is not None:
            return
        try:
            async with self._one_at_a_time:
                await asyncio.to_thread(self.keeper.record, self.committed())
        except LogError as error:
            _log.warning("%s; trying again", error)

    async def _check(self, check: str, look: Callable[[], None]) -> bool:
        """Make one check; return whether it was answered."""
        try:
            async with self._one_at_a_time:
                await asyncio.to_thread(look)
        except ConfigError as error:
            self._note(check, str(error))
        except MetadataError as error:
            if str(error) != self._unanswered:
                _log.warning("the topic's %s cannot be checked: %s; trying again", check, error)
            self._unanswered = str(error)
            return False
        else:
            self._note(check, None)
        return True

    def _note(self, check: str, wrong: str | None) -> None:
        self._unanswered = ""
        before, self._found[check] = self._found.get(check), wrong
        self._checked[check] = time.monotonic()
        if wrong is not None and wrong != before:
            _log.critical("%s", wrong)
        if wrong is None and before is not None:
            _log.info("%s: the topic's %s is right again", self.keeper.shared.name, check)
        if wrong is not None and check == IDENTITY:
            self.on_lost(LogError(wrong))

    def _wrong(self, check: str) -> bool:
        return self._found.get(check) is not None

    def _age(self, check: str) -> float:
        return time.monotonic() - self._checked.get(check, 0.0)
