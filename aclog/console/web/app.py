"""The console's application: views, forms and answers, and the threads that make pages."""

import asyncio
import gzip
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from mimetypes import guess_type
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar, TypeVarTuple
from weakref import WeakValueDictionary

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from attrs import evolve, field
from starlette.applications import Starlette
from starlette.datastructures import Headers, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from aclog.authorizer.acl import NO_ORIGINS
from aclog.authorizer.acls_image import AclsImage
from aclog.console.connections import Refusals
from aclog.console.draft import MOST_BYTES, Preset, preset_lines
from aclog.console.login.forms import FormError, parsed, read_body, replayed
from aclog.console.login.guard import All, Guard, csrf_token_of, decides_alone, may_alter
from aclog.console.login.sessions import Visit
from aclog.console.pages import draft, why
from aclog.console.pages.completion import COMPLETE_PATH, are_quick, completions
from aclog.console.pages.draft import DRAFT_PATH as PATH
from aclog.console.pages.draft import PLAN_PATH as PLAN
from aclog.console.pages.draft import draft_page, drafted, intent_of, planned
from aclog.console.pages.generations import View
from aclog.console.pages.page import BadParameterError, File, Form, Mark, Notice, Page, Parameters, url
from aclog.console.pages.span import is_settled
from aclog.console.pages.states import (
    DAY_MS,
    Console,
    NotReadyError,
    NotShownError,
    OwnStates,
    States,
    UnknownStateError,
)
from aclog.console.pages.views import DOWNLOADS, MENU, OWN_VIEWS, VIEWS
from aclog.console.shared import NoTurnError, Precedence, Turns
from aclog.console.web.rendering import STATIC, Around, Kept, MadePage, page_object, table_csv
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.primitives import current_time_ms, elapsed_seconds
from aclog.metalog.text_forms import comma_parts
from aclog.metalog.values import define, frozen
from aclog.server.connection_budget import network_of
from aclog.snapshots.moments import timestamp_text
from aclog.terminal.columns import json_text

# Forms that are posted, and the pages that answer them.


class Answers(Protocol):
    """The application's way to show pages."""

    def page(self, request: Request, page: Page, parameters: Parameters, status: int) -> Response:
        """Return the response with a page."""
        ...


# The form of a draft: rules typed or opened as a file, and an intent whose ACLs are appended.


_MOST_BODY = 8 << 20
"""Bytes of a form: a text in it may be three times as long as it is."""
_WAIT_S, _LOOK_S = 2.0, 0.02
"""For how long a page waits for the state after an apply, and how often it looks."""
_IN_ADDRESS = 8192
"""Bytes of a draft that its address holds; a larger one is kept here."""


@frozen
class Sent:
    """The fields of a form; the text of a file replaces the typed text."""

    fields: Mapping[str, str]

    @property
    def rules(self) -> str:
        """The draft, with the line ends that it has in a file."""
        return self.fields.get("rules", "").replace("\r\n", "\n")


async def read_sent(request: Request) -> Sent:
    """Parse a posted form. Raises FormError: it is too large, or malformed."""
    body = await read_body(request.receive, _MOST_BODY)
    return await parsed(body, lambda: _sent_in(request, body))


async def _sent_in(request: Request, body: bytes) -> Sent:
    try:
        again = Request(request.scope, replayed(body, request.receive))
        async with again.form(max_files=1, max_fields=100, max_part_size=_MOST_BODY) as form:
            fields = {name: value for name, value in form.items() if isinstance(value, str)}
            file = form.get("file")
            opened = await file.read() if isinstance(file, UploadFile) else b""
    except (HTTPException, ClientDisconnect, ValueError) as error:
        raise FormError(400, "the form cannot be read") from error
    if not opened:
        return Sent(fields)
    try:
        return Sent({**fields, "rules": opened.decode()})
    except UnicodeDecodeError as error:
        raise FormError(400, f"the file is not text: byte {error.start + 1:,} is not UTF-8") from error


def draft_address(console: Console, text: str) -> str:
    """Return the address of a draft, which is kept if it is large. Raises FormError: it is too large."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MOST_BYTES:
        raise FormError(
            413, f"the draft has more than {MOST_BYTES:,} bytes: `aclog diff --change FILE` takes any number"
        )
    if size <= _IN_ADDRESS:
        return url(PATH, rules=text)
    return url(PATH, id=console.drafts.texts.keep(text))


def typed(request: Request, console: Console, sent: Sent, answers: Answers) -> Response:
    """Redirect to the address of the draft. Raises FormError, MetadataError: as the parts it calls."""
    text = sent.rules
    if sent.fields.get("do") == "append":
        try:
            text = _appended(console, text, sent.fields)
        except MetadataError as error:
            return _rejection(request, console, sent, answers, f"Nothing is appended: {error}")
        return leading(request, draft_address(console, text), is_other=True)
    if sent.fields.get("do") == "plan":
        return _plan(request, console, sent, answers)
    return leading(request, draft_address(console, text))


def applied(_request: Request, console: Console, sent: Sent, _answers: Answers) -> Response:
    """Apply a plan, and redirect to its outcome. Raises FormError: this console, or this viewer, may not write."""
    if console.editing is None:
        raise FormError(403, "the console is read-only, or read-only for you: aclog console --edit applies plans")
    digest, before = sent.fields.get("plan", ""), console.states.now().image.acls
    plan = console.editing.get(digest)
    done = console.editing.apply(digest, accept_transient=bool(sent.fields.get("accept_transient")), who=console.viewer)
    if done is not None and done.is_done and done is not plan:
        _await_another_state(console, before)
    return RedirectResponse(url(PLAN, plan=digest), 303)


def _await_another_state(console: Console, before: AclsImage) -> None:
    """Wait a little for the pages to show the applied changes: without a script, a browser would not refresh."""
    end = elapsed_seconds() + _WAIT_S
    while console.states.now().image.acls is before and elapsed_seconds() < end:
        time.sleep(_LOOK_S)


def _plan(request: Request, console: Console, sent: Sent, answers: Answers) -> Response:
    """Make the plan of a draft, and lead to it."""
    try:
        plan = planned(console, drafted(console, sent.rules, {}), Parameters(sent.fields))
    except (MetadataError, OSError) as error:
        return _rejection(request, console, sent, answers, f"No plan: {error}")
    return leading(request, url(PLAN, plan=plan.digest), is_other=True)


def _rejection(request: Request, console: Console, sent: Sent, answers: Answers, text: str) -> Response:
    """Return the page of the posted form, with the error."""
    parameters = Parameters({**sent.fields, "rules": sent.rules})
    page = draft_page(console, parameters)
    notices = (Notice(text=text, mark=Mark.ERROR), *page.notices)
    return answers.page(request, evolve(page, notices=notices), parameters, 400)


def leading(request: Request, address: str, *, is_other: bool = False) -> Response:
    """Lead to an address; a script exchanges the answer, or loads the page if `is_other` than the one it is on."""
    if is_other and request.headers.get("hx-request") == "true":
        return Response(status_code=200, headers={"HX-Redirect": address})
    return RedirectResponse(address, 303)


def _appended(console: Console, text: str, fields: Mapping[str, str]) -> str:
    """Return a draft with the rules that a client lacks. Raises ConfigError, RefusedError: it cannot be granted."""
    preset = Preset(
        intent=intent_of(fields.get("intent", "")),
        principal=fields.get("principal", ""),
        topics=comma_parts(fields.get("topic", "")),
        groups=comma_parts(fields.get("group", "")),
        transactional_ids=comma_parts(fields.get("transactional_id", "")),
        outputs=comma_parts(fields.get("output", "")),
    )
    lines = preset_lines(preset, drafted(console, text, {}).effect)
    if not lines:
        raise ConfigError(f"{preset.principal} may {preset.intent} already, with the draft")
    return "".join(f"{line}\n" for line in (*text.rstrip("\n").split("\n"), *lines) if line)


# Handlers of posted forms, by path.


Receiver: TypeAlias = Callable[[Request, Console, Sent, Answers], Response]

RECEIVERS: Mapping[str, Receiver] = {draft.DRAFT_PATH: typed, draft.APPLY: applied}
"""Each is called in a thread, behind the guard; the viewer may see what its path shows."""


# Threads that make pages: pages of the newest state never wait for costly ones.


_Args = TypeVarTuple("_Args")
_R = TypeVar("_R")

_AT_ONCE = 2
"""Pages of each kind that are made at the same time: one that takes long does not hold up the others, and more of them
would only wait for each other."""
_COSTLY = frozenset((why.PATH, why.WHEN_PATH, draft.DRAFT_PATH, draft.PLAN_PATH, draft.APPLY))
"""Paths of pages that compare states, or make a state of a draft."""


def is_costly(path: str, parameters: Parameters) -> bool:
    """Return whether a page may need a state of the past, a difference or a draft."""
    return path in _COSTLY or bool(parameters.word("as_of"))


@define(eq=False, kw_only=True)
class Pools:
    """The threads; owned by the event loop."""

    precedence: Precedence
    """Gives pages of the newest state priority over all other work in this process."""
    refusals: Refusals
    _newest: CapacityLimiter | None = field(default=None, init=False)
    _costly: CapacityLimiter | None = field(default=None, init=False)
    _completing: CapacityLimiter | None = field(default=None, init=False)
    _own: "WeakValueDictionary[Hashable, asyncio.Semaphore]" = field(factory=WeakValueDictionary, init=False)
    """By viewer: each has one thread for pages of the newest state."""
    _turns: Turns = field(factory=lambda: Turns(waiting=1, replaces=True), init=False)
    """By viewer, for costly pages."""

    async def newest(self, viewer: Hashable | None, function: Callable[[*_Args], _R], *args: *_Args) -> _R:
        """Call a function in a thread, before all work that no viewer waits for; None: any viewer."""

        def called() -> _R:
            with self.precedence.page():
                return function(*args)

        self._newest = self._newest or CapacityLimiter(_AT_ONCE)
        if viewer is None:
            return await run_sync(called, limiter=self._newest)
        own = self._own.get(viewer)
        if own is None:
            own = self._own[viewer] = asyncio.Semaphore(1)
        async with own:
            return await run_sync(called, limiter=self._newest)

    async def completing(self, function: Callable[[*_Args], _R], *args: *_Args) -> _R:
        """Call a function that makes completions in a thread of its own: a key does not wait for pages."""

        def called() -> _R:
            with self.precedence.page():
                return function(*args)

        self._completing = self._completing or CapacityLimiter(1)
        return await run_sync(called, limiter=self._completing)

    async def costly(
        self, viewer: Hashable, function: Callable[[*_Args], _R], *args: *_Args, is_lasting: bool = False
    ) -> _R:
        """Call a costly function in a thread of their own pool, one at a time for each viewer.

        The next one of the same viewer waits until a newer one replaces it; one that `is_lasting` is never replaced.

        Raises:
            NoTurnError: it was replaced, or cannot wait; and what the function raises.

        """
        try:
            async with self._turns.turn(viewer, is_lasting=is_lasting):
                self._costly = self._costly or CapacityLimiter(_AT_ONCE)
                return await run_sync(function, *args, limiter=self._costly)
        except NoTurnError:
            self.refusals.request("past")
            raise


# The console's application: each view under its path, and the endpoint that reports changes.


_PAGES, _COSTLY_PAGES, _VIEWERS, _COMPLETIONS = 64, 32, 256, 256
_RETRY_S = 1
"""Retry-After of a refusal, and the delay before it is sent: a client that keeps retrying does so once per second."""
_OTHERS_DECIDE = (
    "Hidden rules can also decide your requests: this list may be incomplete or too long. The page Why is exact."
)
_ONE_AT_A_TIME = "States of the past, differences and drafts are made one at a time for each viewer."
_NOT_TOLD = "the console cannot read it; the reason is shown to users with DESCRIBE on the cluster"
_MOMENTS = ("as_of", "since", "until")
"""Pages with times relative to now: `yesterday` is another day tomorrow."""
_OLD_S = 5.0
"""A state without confirmation for so many seconds is called old."""


@define(eq=False, kw_only=True)
class WebConsole:
    """The application; pages are cached until the state changes, so that many viewers of a page cost as much as one."""

    console: Console
    """For viewers who see everything."""
    guard: Guard | None = None
    """Authenticates viewers; None: no guard, all viewers see everything."""
    precedence: Precedence = field(factory=Precedence)
    """Gives page rendering priority over background work in this process."""
    refusals: Refusals = field(factory=Refusals)
    retry_s: float = _RETRY_S
    """The delay of a refusal, in seconds."""
    _pools: Pools = field(init=False)
    _caches: dict[tuple[bool, bool], Kept[MadePage]] = field(factory=dict, init=False)
    """By whether the viewer sees all, and whether the page is costly: pages of one kind evict no others."""
    _completions: Kept[tuple[bytes, bool]] = field(init=False)
    """For viewers who see everything: completions as JSON, and whether the history had reached their state."""
    _own: "OrderedDict[str, OwnStates]" = field(factory=OrderedDict, init=False)
    """By principal, for viewers who see their own permissions only."""
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._pools = Pools(precedence=self.precedence, refusals=self.refusals)
        for sees_all in (False, True):
            for costs_more in (False, True):
                most = _COSTLY_PAGES if costs_more else _PAGES
                self._caches[sees_all, costs_more] = Kept(most=most, lasts=attrgetter("lasts"))
        self._completions = Kept(most=_COMPLETIONS, lasts=itemgetter(1))

    def app(self) -> ASGIApp:
        """Return the application, guarded."""
        app = Starlette(
            routes=[
                *(Route(path, self._endpoint(path, view)) for path, view in VIEWS.items()),
                *(Route(path, self._receiver(path, receive), methods=["POST"]) for path, receive in RECEIVERS.items()),
                Route("/live", self._live),
                Route(COMPLETE_PATH, self._complete),
                Route("/healthz", self._healthy),
                Mount("/static", _Static(directory=STATIC)),
            ],
            exception_handlers={404: self._not_found, 500: self._failed},
        )
        return app if self.guard is None else self.guard.around(app)

    def _endpoint(self, path: str, view: View) -> Callable[[Request], "Response"]:
        async def endpoint(request: Request) -> Response:
            """Answer a view."""
            return await self._answered(path, view, request)

        return endpoint  # type: ignore[return-value]

    def _receiver(self, path: str, receive: Receiver) -> Callable[[Request], "Response"]:
        async def receiver(request: Request) -> Response:
            """Handle a posted form."""
            try:
                sent = await read_sent(request)
            except FormError as error:
                return await self._plain(request, _trouble(path, "Not accepted", str(error)), error.status)
            try:
                return await self._pools.costly(
                    self._viewer(request), self._receive, path, receive, request, sent, is_lasting=True
                )
            except NoTurnError:
                return await self._busy(request, path)

        return receiver  # type: ignore[return-value]

    def _viewer(self, request: Request) -> Hashable:
        """Return the viewer: a principal, or where no login is required all of a network."""
        if self.guard is not None:
            visit = Visit.in_scope(request.scope)
            if visit.session is not None:
                return visit.session.principal
        return ("network", network_of("" if request.client is None else request.client.host))

    async def _in_thread(
        self, request: Request, costs_more: bool, function: Callable[[*_Args], _R], *args: *_Args
    ) -> _R:
        """Call a function that a viewer waits for. Raises NoTurnError: replaced by the viewer's newer request."""
        viewer = self._viewer(request)
        if costs_more:
            return await self._pools.costly(viewer, function, *args)
        return await self._pools.newest(viewer if isinstance(viewer, str) else None, function, *args)

    async def _busy(self, request: Request, path: str) -> Response:
        """Return the refusal of a costly page beyond the one that is made for a viewer at a time."""
        await asyncio.sleep(self.retry_s)
        response = await self._plain(request, _trouble(path, "Try again in a moment", _ONE_AT_A_TIME), 429)
        response.headers["Retry-After"] = str(_RETRY_S)
        return response

    def _receive(self, path: str, receive: Receiver, request: Request, sent: Sent) -> Response:
        console = self._console_of(request)
        try:
            _check_shown(console, path)
            return receive(request, console, sent, self)
        except FormError as error:
            page, status = _trouble(path, "Not accepted", str(error)), error.status
        except _REFUSALS as error:
            page, status = _refused(path, error, console)
        return self.page(request, page, Parameters(), status)

    async def _answered(self, path: str, view: View, request: Request) -> Response:
        console = self._console_of(request)
        await self._know_version(request, console)
        around = self._around(request, console)  # a page may be newer than its version
        parameters = Parameters()
        try:
            parameters = Parameters.of(request.scope.get("query_string", b""))
            download = DOWNLOADS.get(path, {}).get(parameters.word("format"))
            if download is not None:
                _check_shown(console, path)
                return _file(await self._in_thread(request, True, download, console, parameters))
            rendered = await self._page(request, console, path, view, parameters, around)
        except NoTurnError:
            return await self._busy(request, path)
        except _REFUSALS as error:
            page, status = _refused(path, error, console)
            rendered = MadePage.of(page, parameters, status)
        form = parameters.word("format")
        if form == "json":
            return await self._pools.newest(None, _json, _confirmed(rendered.page, around), rendered.status)
        if form == "csv":
            return await self._pools.newest(None, _csv, rendered.page, parameters.word("table"))
        if rendered.page.leads_to is not None:
            return leading(request, rendered.page.leads_to, is_other=True)
        return _html(request, rendered, around)

    async def _know_version(self, request: Request, console: Console) -> None:
        """Compute the version for one viewer in a thread, to keep the event loop free."""
        states = console.states
        while isinstance(states, OwnStates) and not states.is_version_known:
            await self._in_thread(request, False, getattr, states, "version")

    def _console_of(self, request: Request) -> Console:
        """Return the console as its viewer may see it."""
        if self.guard is None:
            return self.console if self.console.editing is None else evolve(self.console, editing=None)
        sight = self.guard.sight(request)
        if isinstance(sight, All) or not isinstance(self.console.states, States):
            return self._editable(Visit.in_scope(request.scope))
        with self._lock:
            states = self._own.get(sight.principal)
            if states is None:
                states = OwnStates(states=self.console.states, sights=self.guard.sights, own=sight)
                self._own[sight.principal] = states
                while len(self._own) > _VIEWERS:
                    self._own.popitem(last=False)
            self._own.move_to_end(sight.principal)
        return evolve(
            self.console,
            states=states,
            own=sight,
            command=self.console.command.without_super_users(),
            origins=NO_ORIGINS,  # a line number reveals how many rules precede it
            files=None,
            history=None,
            lookout=None,  # the use of a rule for all users would reveal other principals
            editing=None,
            viewer=sight.principal,
        )

    def _editable(self, visit: Visit) -> Console:
        """Return the console for viewers who see everything; writing needs ALTER, or no login."""
        viewer, console = visit.viewer, self.console
        if console.editing is None or viewer is None:
            return console if console.editing is None else evolve(console, editing=None)
        if viewer.principal is None:
            return console
        try:
            policies = console.states.now().policies.values()
            may = visit.host is not None and all(
                may_alter(viewer.principal, visit.host, policy.authorizer) for policy in policies
            )
        except NotReadyError:
            may = False
        return evolve(console, editing=console.editing if may else None, viewer=viewer.principal)

    async def _page(
        self, request: Request, console: Console, path: str, view: View, parameters: Parameters, around: Around
    ) -> MadePage:
        """Return a page, made anew only if the state has changed since; with the document of the first viewer.

        Raises:
            NotShownError, NotReadyError, NoTurnError: see the exceptions.

        """
        _check_shown(console, path)
        whole = self.console.states.now()
        day = current_time_ms() // DAY_MS  # charts end today
        query = tuple(sorted(parameters.values.items()))
        key = (console.own, console.editing is None, console.version, path, query, day)
        costs_more, is_own = is_costly(path, parameters), False
        for each in self._caches.values():
            each.follow(whole)
        cache = self._caches[console.own is None, costs_more]

        async def make() -> MadePage:
            nonlocal is_own
            is_own = True
            return await self._in_thread(request, costs_more, self._render, console, path, view, parameters, around)

        while True:
            try:
                return await cache.get(whole, key, make, is_moving=any(map(parameters.word, _MOMENTS)))
            except NoTurnError:
                if is_own:
                    raise
                # The viewer for whom it was being made has cancelled: it is made for this one.

    def _render(self, console: Console, path: str, view: View, parameters: Parameters, around: Around) -> MadePage:
        try:
            page, status = self._noticed(view(console, parameters), console), 200
        except _REFUSALS as error:
            page, status = _refused(path, error, console)
            if isinstance(error, BadParameterError):
                page = evolve(page, parts=_forms(console, view, parameters))
        if parameters.word("format"):
            return MadePage.of(page, parameters, status, wants_html=False)
        made = MadePage.of(page, parameters, status)
        made.prepare(around)
        return made

    def _noticed(self, page: Page, console: Console) -> Page:
        """Return a page with a notice that its content may be incomplete."""
        premises = console.states.now().premises
        unknown = tuple(Notice(text=each.note()) for each in premises.unknown)
        page = evolve(page, notices=(*unknown, *page.notices))
        if console.own is None:
            return page
        whole = self.console.states.now()
        notices = [Notice(text=console.own.notice)]
        if not decides_alone(whole.image, whole.policy.settings):
            notices.append(Notice(text=_OTHERS_DECIDE))
        return evolve(page, notices=(*notices, *page.notices))

    def _around(self, request: Request, console: Console | None = None) -> Around:
        viewer = None if self.guard is None else Visit.in_scope(request.scope).viewer
        if self.guard is not None and viewer is None:  # unauthenticated, at a path that needs no login
            return Around(source="", status="", trouble=None, version="", menu=())
        console = console or self._console_of(request)
        status, trouble, version = self._status(console)
        around = Around(
            source=self.console.name,
            cluster_id=self.console.cluster_id,
            status=status,
            trouble=trouble,
            version=version,
            time=_time(console),
        )
        if viewer is None:
            return around
        menu = MENU if viewer.sees_all else [(path, name) for path, name in MENU if path in OWN_VIEWS]
        return evolve(around, menu=menu, viewer=viewer.name, csrf_token=csrf_token_of(request))

    def _status(self, console: Console) -> tuple[str, str | None, str]:
        """Return a line about the state, why it may be old, and its version, as far as a viewer may see them."""
        states = console.states
        newest, trouble, age = states.live.newest, states.live.trouble, states.live.age()
        if trouble is not None and console.own is not None:
            trouble = _NOT_TOLD
        if newest is None or age is None:
            return "no state yet", f"No state could be read yet: {trouble}", "none"
        status = f"at offset {newest.image.end_offset:,}" if newest.image.end_offset else "one state"
        if trouble is not None or age > _OLD_S:
            why = trouble or "the source is silent"
            return status, f"This state has not been confirmed for {age:.0f} s: {why}", console.version
        return status, None, console.version

    async def _live(self, request: Request) -> Response:
        console = self._console_of(request)
        await self._know_version(request, console)
        status, trouble, version = self._status(console)
        body = {"status": status, "trouble": trouble, "version": version, "time": _time(console)}
        return JSONResponse(body, headers={"Cache-Control": "no-store"})

    async def _complete(self, request: Request) -> Response:
        """Answer the search while it is typed in, from what the viewer sees."""
        console = self._console_of(request)
        try:
            parameters = Parameters.of(request.scope.get("query_string", b""))
            if is_costly(COMPLETE_PATH, parameters):
                answer, _ = await self._pools.costly(self._viewer(request), _completion, console, parameters)
            else:
                answer = await self._completed(console, parameters)
        except NoTurnError:
            return await self._busy(request, COMPLETE_PATH)
        except _REFUSALS as error:
            page, status = _refused(COMPLETE_PATH, error, console)
            return JSONResponse({"completions": [], "error": page.notices[0].text}, status)
        return Response(answer, media_type="application/json")

    async def _completed(self, console: Console, parameters: Parameters) -> bytes:
        """Return completions of the newest state as JSON, made once: many viewers type the same first letters."""

        async def make() -> tuple[bytes, bool]:
            # Threads of pages hold the interpreter: two changes of threads would cost more than the completions.
            if are_quick(console, parameters.text("q")):
                return _completion(console, parameters)
            return await self._pools.completing(_completion, console, parameters)

        if console.own is not None:
            return (await make())[0]
        key = (console.version, tuple(sorted(parameters.values.items())))
        return (await self._completions.get(self.console.states.now(), key, make))[0]

    async def _healthy(self, _request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _not_found(self, request: Request, _error: Exception) -> Response:
        page = _trouble("/", "Page not found", "Use the menu.")
        return await self._plain(request, page, 404)

    async def _failed(self, request: Request, _error: Exception) -> Response:
        page = _trouble(request.url.path, "Internal error", "See the log of the console.")
        return await self._plain(request, page, 500)

    async def _plain(self, request: Request, page: Page, status: int) -> Response:
        await self._know_version(request, self._console_of(request))
        return self.page(request, page, Parameters(), status)

    def page(self, request: Request, page: Page, parameters: Parameters, status: int) -> Response:
        """Return the response with a page."""
        return _html(request, MadePage.of(page, parameters, status), self._around(request))


_SMALL = 1024
"""Bytes of a document that is not compressed."""


def _html(request: Request, page: MadePage, around: Around) -> Response:
    """Return a page as a document, compressed if only the viewer, or a page of the console, can have requested it.

    The size of a compressed document depends on what it has in common with the text of its request. Another site that
    sends a browser here must not be able to try texts (BREACH).
    """
    document, is_own = page.document(around), request.headers.get("sec-fetch-site") in ("same-origin", "none")
    if not is_own or len(document) < _SMALL or "gzip" not in request.headers.get("accept-encoding", ""):
        return HTMLResponse(document, page.status, headers={"Vary": "Accept-Encoding, Sec-Fetch-Site"})
    headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding, Sec-Fetch-Site"}
    return HTMLResponse(page.compressed(around), page.status, headers=headers)


class _Static(StaticFiles):
    """Static files, whose addresses change with their content, so that browsers may cache them for ever."""

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """Return a file, to be kept; compressed for clients that accept it."""
        if "gzip" in Headers(scope=scope).get("accept-encoding", ""):
            kind = guess_type(full_path)[0]
            headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
            response = Response(_compressed(str(full_path)), status_code, headers=headers, media_type=kind)
        else:
            response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


@cache
def _compressed(path: str) -> bytes:
    return gzip.compress(Path(path).read_bytes(), mtime=0)


def _trouble(path: str, title: str, text: str) -> Page:
    return Page(path=path, title=title, notices=(Notice(text=text, mark=Mark.ERROR),))


def _forms(console: Console, view: View, parameters: Parameters) -> tuple[Form, ...]:
    """Return the forms of a view with the values of the request, to be corrected."""
    try:
        forms = [part for part in view(console, Parameters()).parts if isinstance(part, Form)]
    except _REFUSALS:
        return ()
    return tuple(
        evolve(form, fields=tuple(evolve(each, value=parameters.text(each.name, each.value)) for each in form.fields))
        for form in forms
    )


def _check_shown(console: Console, path: str) -> None:
    if console.own is not None and path not in OWN_VIEWS:
        raise NotShownError("This view shows all rules: it needs DESCRIBE on the cluster.")


_REFUSALS = (NotShownError, NotReadyError, MetadataError, OSError)


def _refused(path: str, error: Exception, console: Console) -> tuple[Page, int]:
    """Return the page of an error, and its status; an error of the source may name rules of other principals."""
    text = str(error) if console.own is None else _NOT_TOLD
    if isinstance(error, UnknownStateError):
        return _trouble(path, "Invalid request", text), 400
    if isinstance(error, BadParameterError):
        return _trouble(path, "Invalid request", str(error)), 400
    if isinstance(error, NotShownError):
        return _trouble(path, "Not authorized", str(error)), 403
    if isinstance(error, NotReadyError):
        return _trouble(path, "No state yet", f"No state to show: {text}"), 503
    return _trouble(path, "Request failed", text), 503


def _file(file: File) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{file.name}"', "Cache-Control": "no-store"}
    return Response(file.content.encode("utf-8", "replace"), media_type=file.media_type, headers=headers)


def _confirmed(page: Page, around: Around) -> Page:
    """Return a page with a notice if its state may be old."""
    if around.trouble is None:
        return page
    return evolve(page, notices=(Notice(text=around.trouble, mark=Mark.ERROR), *page.notices))


def _json(page: Page, status: int) -> Response:
    return Response(_json_bytes(page_object(page)), status, media_type="application/json")


def _json_bytes(value: object) -> bytes:
    # Lone surrogates of hostile names have no UTF-8: JSON has escapes for them.
    return json_text(value).encode("utf-8", "backslashreplace")


def _completion(console: Console, parameters: Parameters) -> tuple[bytes, bool]:
    """Return completions as JSON, and whether the history had reached their state."""
    has_history = is_settled(console, console.states.now().offset)
    return _json_bytes({"completions": completions(console, parameters)}), has_history


def _time(console: Console) -> str:
    """Return the time of the newest record, in ISO 8601; empty if it is unknown.

    For viewers who see everything: that of a record that another viewer must not see would reveal it.
    """
    newest = console.states.live.newest
    if newest is None or console.own is not None or newest.image.provenance.timestamp < 0:
        return ""
    return timestamp_text(newest.image.provenance.timestamp)


def _csv(page: Page, key: str) -> Response:
    table = next((each for each in page.tables() if each.key == key), None)
    if table is None:
        return PlainTextResponse("no such table\n", 404)
    name = f'attachment; filename="{key}.csv"' if key.replace("-", "").isalnum() and key.isascii() else "attachment"
    return Response(table_csv(table), media_type="text/csv", headers={"Content-Disposition": name})
