"""A tiny application behind the console's guard, on a state that a test holds in its hands."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from aclog.authorizer.codes import AclOperation
from aclog.authorizer.settings import Settings
from aclog.console.http import Hosts
from aclog.console.login.forms import Cookies
from aclog.console.login.guard import Guard, Own, Sights, csrf_token_of
from aclog.console.login.sessions import Sessions, Visit, Way
from aclog.console.shared import LineFile
from aclog.snapshots.image import Image
from tests.support.builders.acls import acl, cluster_acl
from tests.support.web.points import image_of

ADMIN_AND_ALICE = image_of(
    cluster_acl("User:admin", AclOperation.DESCRIBE),
    acl("orders", "User:alice"),
    acl("orders", "User:bob"),
    acl("news", "User:*"),
)


class NewestState:
    """The newest state, which a test replaces."""

    def __init__(self, image: Image | None = ADMIN_AND_ALICE):
        self.image = image

    def __call__(self) -> Image | None:
        return self.image


def guard_of(
    way: Way | None,
    *,
    newest: Callable[[], Image | None] | None = None,
    settings: Settings | None = None,
    hosts: Hosts | None = None,
    audit: Path | None = None,
    secure: bool = False,
    clock: Callable[[], float] = lambda: 0.0,
) -> Guard:
    return Guard(
        way=way,
        sights=Sights(newest=newest or NewestState(), settings=settings or Settings()),
        hosts=hosts or Hosts.of(listen="127.0.0.1", is_local=True, base_url=None),
        cookies=Cookies(secure=secure, port=8181),
        audit=None if audit is None else LineFile(audit),
        stylesheet="/static/console.css",
        sessions=Sessions(clock=clock),
    )


def app_of(guard: Guard) -> Any:
    """A page with a form, and what the viewer sees of the rules."""

    async def page(request: Request) -> Response:
        viewer = Visit.in_scope(request.scope).viewer
        assert viewer is not None
        form = f'<input name="csrf_token" value="{csrf_token_of(request)}">'
        return HTMLResponse(f"<p>{viewer.name}|{viewer.principal}|{viewer.sees_all}</p>{form}")

    async def rules(request: Request) -> Response:
        sight, newest = guard.sight(request), guard.sights.newest()
        principals = (
            [] if newest is None else [str(rule.acl.principal) for rule in guard.sights.image(newest, sight).acls]
        )
        return JSONResponse({"rules": sorted(principals), "notice": sight.notice if isinstance(sight, Own) else None})

    async def change(request: Request) -> Response:
        async with request.form() as form:
            return JSONResponse({key: str(value) for key, value in form.items() if key != "csrf_token"})

    async def style(_request: Request) -> Response:
        return PlainTextResponse("p {}", headers={"Cache-Control": "max-age=60"}, media_type="text/css")

    routes = [
        Route("/", page),
        Route("/rules", rules),
        Route("/change", change, methods=["POST"]),
        Route("/draft", change, methods=["POST"]),
        Route("/static/console.css", style),
    ]
    return guard.around(Starlette(routes=routes))
