"""The pages of the newest state: each is made once, in a thread, however many ask for it."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable

from attrs import define, field

from aclog.console.web.made_page import MadePage

_REFUSED = 400
"""From this status on, a page says why there is none."""


@define(eq=False, kw_only=True)
class KeptPages:
    """Owned by the event loop: no call but those of the pages themselves runs elsewhere."""

    most: int
    _of: object = field(default=None, init=False)
    """The newest state; no other is held on to."""
    _pages: "OrderedDict[Hashable, MadePage]" = field(factory=OrderedDict, init=False)
    _making: "dict[Hashable, asyncio.Task[MadePage]]" = field(factory=dict, init=False)

    async def get(
        self, state: object, key: Hashable, make: Callable[[], Awaitable[MadePage]], *, is_moving: bool = False
    ) -> MadePage:
        """Return what was made of a state; who asks while it is being made waits for it.

        `is_moving`: what the key asks for is another thing later, so that it is made anew for whoever comes after.
        """
        self.follow(state)
        known = self._pages.get(key)
        if known is not None:
            self._pages.move_to_end(key)
            return known
        making = self._making.get(key)
        if making is None:
            making = self._making[key] = asyncio.ensure_future(self._made(state, key, make, is_kept=not is_moving))
            making.add_done_callback(_heard)
        return await asyncio.shield(making)  # whoever gives up waiting does not end it for the others

    def follow(self, state: object) -> None:
        """Keep pages of this state only."""
        if self._of is not state:
            self._of = state
            self._pages.clear()
            self._making.clear()  # whoever waits for one still gets it

    async def _made(
        self, state: object, key: Hashable, make: Callable[[], Awaitable[MadePage]], *, is_kept: bool
    ) -> MadePage:
        try:
            made = await make()
        finally:
            if self._making.get(key) is asyncio.current_task():
                del self._making[key]
        if is_kept and self._of is state and made.status < _REFUSED and made.page.is_settled:
            self._pages[key] = made
            while len(self._pages) > self.most:
                self._pages.popitem(last=False)
        return made


def _heard(task: "asyncio.Task[MadePage]") -> None:
    """Take note of an error that nobody waits for any more."""
    if not task.cancelled():
        task.exception()
