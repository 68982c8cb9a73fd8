"""Logging in with a name and a password."""

import math
from collections.abc import Sequence
from pathlib import Path

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from attrs import define, field
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from aclog.console.login.attempts import Attempts
from aclog.console.login.entry import Entry
from aclog.console.login.pages import local_path
from aclog.console.login.password_file import MOST_CHARACTERS, Passwords, read_passwords
from aclog.console.login.sessions import Session, same_proof
from aclog.console.login.visit import Visit

_AT_ONCE, _WAITING = 2, 32
"""Passwords that are hashed at the same time, each of which takes memory, and logins that wait for it."""


@define(eq=False, kw_only=True)
class PasswordWay:
    """Logins by a file of passwords."""

    path: Path
    passwords: Passwords
    attempts: Attempts = field(factory=Attempts)
    _limiter: CapacityLimiter | None = field(default=None, init=False)

    @classmethod
    def read(cls, path: Path) -> "PasswordWay":
        """Return the logins of a file. Raises as `read_passwords`."""
        return cls(path=path, passwords=read_passwords(path))

    def routes(self, entry: Entry) -> Sequence[Route]:
        """Return the form, and what reads it."""

        async def form(request: Request) -> Response:
            """Show the form."""
            visit = Visit.in_scope(request.scope)
            wanted = local_path(request.query_params.get("next"))
            return entry.pages.form(visit, wanted) if visit.session is None else RedirectResponse(wanted, 303)

        async def log_in(request: Request) -> Response:
            """Read the form."""
            async with request.form(max_files=0, max_fields=10) as fields:
                return await self._answer(entry, Visit.in_scope(request.scope), fields)

        return [Route("/login", form), Route("/login", log_in, methods=["POST"])]

    def still_good(self, session: Session) -> bool:
        """Return whether the line of who has logged in is the same."""
        return same_proof(session.proof, self.passwords.proof(session.principal))

    def reload(self) -> None:
        """Read the file again. Raises as `read_passwords`."""
        self.passwords = self.passwords.renewed(read_passwords(self.path))

    async def _answer(self, entry: Entry, visit: Visit, fields: FormData) -> Response:
        name, password, wanted = (_text(fields, key) for key in ("name", "password", "next"))
        target = local_path(wanted)
        if not name or not password or max(len(name), len(password)) > MOST_CHARACTERS:
            return entry.pages.form(visit, target, status=400, problem="Name and password are needed.")
        # Of who fails, no name is kept anywhere: people type passwords into the wrong field.
        counted = self.passwords.principal(name) or name
        wait = self.attempts.begin(visit.address, counted)
        if wait > 0:
            return _refused(entry, visit, target, 429, math.ceil(wait))
        limiter = self._limiter = self._limiter or CapacityLimiter(_AT_ONCE)
        if limiter.statistics().tasks_waiting >= _WAITING:
            return _refused(entry, visit, target, 503, 5)
        passwords = self.passwords
        principal = await run_sync(passwords.verify, name, password, limiter=limiter)
        # The file may have been read again meanwhile: who is gone from it, or has another line, is not let in.
        if principal is None or not same_proof(passwords.proof(principal), self.passwords.proof(principal)):
            return entry.pages.form(visit, target, status=403, problem="That name and password do not fit.")
        self.attempts.succeeded(visit.address, counted)
        shown = principal.removeprefix("User:")
        entry.enter(visit, shown, principal, passwords.proof(principal))
        return RedirectResponse(target, 303)


def _refused(entry: Entry, visit: Visit, target: str, status: int, seconds: int) -> Response:
    problem = f"Too many attempts. Try again in {seconds} s."
    answer = entry.pages.form(visit, target, status=status, problem=problem)
    answer.headers["Retry-After"] = str(seconds)
    return answer


def _text(fields: FormData, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""
