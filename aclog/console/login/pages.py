"""The pages of a login."""

from attrs import field, frozen
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from aclog.console.login.visit import Visit

_CONTROLS = frozenset(map(chr, (*range(0x21), 0x7F)))


def _environment() -> Environment:
    return Environment(loader=PackageLoader("aclog.console.login"), autoescape=True, undefined=StrictUndefined)


@frozen(kw_only=True)
class Pages:
    """Renders them; without script, and with the console's stylesheet if there is one."""

    stylesheet: str | None = None
    icon: str | None = None
    """Their paths."""
    _templates: Environment = field(factory=_environment, init=False, repr=False)

    def form(self, visit: Visit, wanted: str, *, status: int = 200, problem: str = "") -> HTMLResponse:
        """Return the form for name and password."""
        return self._page("password.html", "Log in", problem, status, csrf_token=visit.csrf_token, next=wanted)

    def link(self, provider: str, start: str) -> HTMLResponse:
        """Return the page that leads to a provider's login."""
        return self._page("provider.html", "Log in", "", 200, provider=provider, start=start)

    def message(self, title: str, problem: str = "", *, status: int = 200) -> HTMLResponse:
        """Return a page that says something, with a link to the login."""
        return self._page("message.html", title, problem, status)

    def _page(self, template: str, title: str, problem: str, status: int, **more: str) -> HTMLResponse:
        found = self._templates.get_template(template)
        around = {"stylesheet": self.stylesheet, "icon": self.icon}
        text = found.render(title=title, problem=problem, **around, **more)
        return HTMLResponse(text, status)


def local_path(text: str | None) -> str:
    """Return where to go after a login: a path of this console; `/` for anything else, which may be another host."""
    if not text or len(text) > 4096 or not text.startswith("/") or text[1:2] in {"/", "\\"}:
        return "/"
    return "/" if not _CONTROLS.isdisjoint(text) or not text.isascii() else text
