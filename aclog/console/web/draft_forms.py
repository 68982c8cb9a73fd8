"""What is sent of a draft: rules typed or opened as a file, and what a client needs, to be appended."""

import time
from collections.abc import Mapping

from attrs import evolve, frozen
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from aclog.authorizer.acls_image import AclsImage
from aclog.console.draft.draft_text import MOST_BYTES
from aclog.console.draft.presets import Preset, preset_lines
from aclog.console.login.forms import FormError, parsed, read_body, replayed
from aclog.console.pages.asked import Asked, url
from aclog.console.pages.console import Console
from aclog.console.pages.draft import PATH, draft_page, drafted, intent_of, names_of, planned
from aclog.console.pages.draft_plan import PATH as PLAN
from aclog.console.pages.page import Mark, Notice
from aclog.console.web.answers import Answers
from aclog.metalog.clock import elapsed_seconds
from aclog.metalog.errors import ConfigError, MetadataError

_MOST_BODY = 8 << 20
"""Bytes of a form: a text in it may be three times as long as it is."""
_WAIT_S, _LOOK_S = 2.0, 0.02
"""For how long a page waits for the state after an apply, and how often it looks."""
_IN_ADDRESS = 8192
"""Bytes of a draft that its address holds; a larger one is kept here."""


@frozen
class Sent:
    """The fields of a form; a file stands in the place of the text that was typed."""

    fields: Mapping[str, str]

    @property
    def rules(self) -> str:
        """The draft, with the line ends that it has in a file."""
        return self.fields.get("rules", "").replace("\r\n", "\n")


async def read_sent(request: Request) -> Sent:
    """Return what a form sent. Raises FormError: it is too large, or cannot be read."""
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
        raise FormError(400, f"the file is no text: byte {error.start + 1:,} is not UTF-8") from error


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
    """Lead to the address of what was sent. Raises FormError, MetadataError: it cannot be."""
    text = sent.rules
    if sent.fields.get("do") == "append":
        try:
            text = _appended(console, text, sent.fields)
        except MetadataError as error:
            return _said(request, console, sent, answers, f"Nothing is appended: {error}")
        return leading(request, draft_address(console, text), is_other=True)
    if sent.fields.get("do") == "plan":
        return _plan(request, console, sent, answers)
    return leading(request, draft_address(console, text))


def applied(_request: Request, console: Console, sent: Sent, _answers: Answers) -> Response:
    """Apply a plan, and lead to what was done. Raises FormError: nothing is written here."""
    if console.editing is None:
        raise FormError(403, "nothing is written here, or not by you: aclog console --edit applies plans")
    digest, before = sent.fields.get("plan", ""), console.states.now().image.acls
    known = console.editing.get(digest)
    done = console.editing.apply(digest, accept_transient=bool(sent.fields.get("accept_transient")), who=console.viewer)
    if done is not None and done.is_done and done is not known:
        _await_another_state(console, before)
    return RedirectResponse(url(PLAN, plan=digest), 303)


def _await_another_state(console: Console, before: AclsImage) -> None:
    """Wait a little for the pages to show what was applied: who reads without a script would not see it come."""
    end = elapsed_seconds() + _WAIT_S
    while console.states.now().image.acls is before and elapsed_seconds() < end:
        time.sleep(_LOOK_S)


def _plan(request: Request, console: Console, sent: Sent, answers: Answers) -> Response:
    """Make the plan of a draft, and lead to it."""
    try:
        found = planned(console, drafted(console, sent.rules, {}), Asked(sent.fields))
    except (MetadataError, OSError) as error:
        return _said(request, console, sent, answers, f"There is no plan: {error}")
    return leading(request, url(PLAN, plan=found.digest), is_other=True)


def _said(request: Request, console: Console, sent: Sent, answers: Answers, text: str) -> Response:
    """Return the page of what was sent, with what is wrong."""
    asked = Asked({**sent.fields, "rules": sent.rules})
    page = draft_page(console, asked)
    notices = (Notice(text=text, mark=Mark.ERROR), *page.notices)
    return answers.page(request, evolve(page, notices=notices), asked, 400)


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
        topics=names_of(fields.get("topic", "")),
        groups=names_of(fields.get("group", "")),
        transactional_ids=names_of(fields.get("transactional_id", "")),
        outputs=names_of(fields.get("output", "")),
    )
    lines = preset_lines(preset, drafted(console, text, {}).effect)
    if not lines:
        raise ConfigError(f"{preset.principal} may {preset.intent} already, with the draft")
    return "".join(f"{line}\n" for line in (*text.rstrip("\n").split("\n"), *lines) if line)
