"""Pages over HTTP: as HTML, JSON and CSV, in trouble, and with hostile names."""

import gzip
import re
from html.parser import HTMLParser

import pytest

from aclog.console.pages.page import Page, Parameters, url
from aclog.console.pages.states import Console
from aclog.console.pages.views import VIEWS
from aclog.console.web.app import WebConsole
from tests.support.builders.acls import acl
from tests.support.builders.hostile_names import NAMES, visible_text
from tests.support.web.asgi import Reply, ask
from tests.support.web.consoles import console_of, look
from tests.support.web.pages import PAGES
from tests.support.web.points import HeldSource, image_of

HOSTILE = "<script>alert(1)</script>\u202e'\"&<img src=x onerror=y>"
RULES = acl("orders", "User:alice"), acl(HOSTILE, f"User:{HOSTILE}"), acl("=1+1", "User:eve"), acl("n" * 249, "odd")


class Elements(HTMLParser):
    """The elements of a document, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def get(source: HeldSource, path: str) -> Reply:
    return ask(WebConsole(console=console_of(source)).app(), "GET", path)


@pytest.fixture
def source() -> HeldSource:
    return HeldSource(image_of(*RULES))


def test_the_start_has_names_in_its_html(source: HeldSource) -> None:
    reply = get(source, "/")
    assert reply.status == 200
    assert b"orders" in reply.body
    assert b"User:alice" in reply.body


def test_completions_are_of_the_newest_state(source: HeldSource) -> None:
    console = console_of(source)
    app = WebConsole(console=console).app()

    def principals() -> list[str]:
        matches = ask(app, "GET", "/complete?q=ala").json["completions"]
        return [each["text"] for each in matches if each["kind"] == "principal"]

    assert principals() == principals() == []
    source.current = image_of(acl("orders", "User:alan"))
    look(console)
    assert principals() == ["User:alan"]
    source.current = image_of(*RULES)
    look(console)
    assert principals() == []


@pytest.mark.parametrize("path", VIEWS)
def test_every_view_answers_in_every_form(source: HeldSource, path: str) -> None:
    assert get(source, path).status == 200
    found = get(source, f"{path}?format=json").json
    assert found["title"]
    tables = [key for key, part in found.items() if isinstance(part, dict) and "rows" in part]
    for key in tables:
        rows = get(source, f"{path}?format=csv&table={key}")
        assert rows.headers["content-type"].startswith("text/csv")
        assert len(rows.body.splitlines()) == 1 + len(found[key]["rows"])


@pytest.mark.parametrize(
    "path",
    ["/", "/rules", url("/principal", name=f"User:{HOSTILE}"), url("/resource", name=HOSTILE), url("/search", q="<")],
)
def test_hostile_names_are_text(source: HeldSource, path: str) -> None:
    html = harmless(get(source, path))
    assert "\\u202e" in html.text
    assert "\u202e" not in html.text
    assert "<script>alert(1)</script>" in html.text


def test_every_view_is_looked_at_in_a_browser() -> None:
    assert {path.partition("?")[0] for path in PAGES.values()} >= VIEWS.keys()


def harmless(page: Reply) -> Elements:
    """What is in a page, in which no name is more than text."""
    html = Elements(page.body.decode())
    scripts = [attributes for tag, attributes in html.found if tag == "script"]
    assert all(attributes.get("src", "") and attributes["src"].startswith("/static/") for attributes in scripts)
    assert not any(tag == "img" or any(name.startswith("on") for name in found) for tag, found in html.found)
    assert not any("style" in found for _, found in html.found)
    return html


@pytest.mark.parametrize("name", NAMES)
def test_each_hostile_name_is_text(source: HeldSource, name: str) -> None:
    name = NAMES[name]
    source.current = image_of(acl(name, f"User:{name}"))
    own = (url("/principal", name=f"User:{name}"), url("/resource", name=name), url("/search", q=name))
    for path in ("/", "/names", "/rules", "/principal", *own):
        html = harmless(get(source, path))
        assert visible_text(name) in " ".join(html.text.split())


def test_links_of_hostile_names_come_back_to_them(source: HeldSource) -> None:
    html = Elements(get(source, "/rules").body.decode())
    links = [str(found["href"]) for tag, found in html.found if tag == "a" and "href" in found]
    [there] = {link for link in links if link.startswith("/principal") and "script" in link}
    assert get(source, f"{there}&format=json").json["title"] == f"User:{HOSTILE}"


def test_a_lone_surrogate_in_an_address_is_shown_not_sent(source: HeldSource) -> None:
    for form in ("", "&format=json", "&format=csv&table=resources"):
        reply = get(source, f"{url('/search', q=chr(0xD800))}{form}")
        assert reply.status == 200
        reply.body.decode("utf-8")


def test_formulas_are_inert_in_csv(source: HeldSource) -> None:
    lines = get(source, "/rules?format=csv&table=rules").body.decode().splitlines()
    assert any(",'=1+1," in line for line in lines)


def test_formulas_are_inert_where_cells_are_separated_by_semicolons(source: HeldSource) -> None:
    source.current = image_of(acl("a;=1+1", "User:a; -2"), acl("b;c", "User:b"))
    body = get(source, "/rules?format=csv&table=rules").body.decode()
    assert not re.search(r"(^|;) *[=+@-]", body, re.MULTILINE)
    assert "a;'=1+1" in body
    assert "b;c" in body


def test_a_moment_that_is_counted_from_now_is_asked_anew(source: HeldSource, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def page(_console: Console, asked: Parameters) -> Page:
        made.append(asked.word("since"))
        return Page(path="/", title="made")

    monkeypatch.setitem(VIEWS, "/", page)  # type: ignore[arg-type]
    app = WebConsole(console=console_of(source)).app()
    for query in ("since=10s%20ago", "until=now", "as_of=yesterday", "q=plain"):
        before = len(made)
        for _ in range(2):
            assert ask(app, "GET", f"/?{query}").status == 200
        assert len(made) - before == (1 if query == "q=plain" else 2)


def test_no_address_of_another_site_is_linked(source: HeldSource) -> None:
    reply = get(source, "//evil.example/x")
    assert reply.status == 404
    assert b"evil.example" not in reply.body


def test_trouble_is_told_with_its_status(source: HeldSource) -> None:
    bad = get(source, "/rules?operation=GUESS")
    assert bad.status == 400
    assert b"is not one of" in bad.body
    assert get(source, "/nowhere").status == 404
    assert get(source, "/rules?format=csv&table=none").status == 404
    silent = get(HeldSource(None), "/")
    assert silent.status == 503
    assert b"No state yet" in silent.body


def test_a_lost_source_is_called_so(source: HeldSource) -> None:
    console = console_of(source)
    app = WebConsole(console=console).app()
    before = ask(app, "GET", "/live").json
    assert before["trouble"] is None
    source.current = None
    look(console)
    after = ask(app, "GET", "/live").json
    assert after["version"] == before["version"]
    assert re.fullmatch(r"This state has not been confirmed for \d+ s: gone", after["trouble"])
    page = ask(app, "GET", "/rules")
    assert page.status == 200
    assert b"This state has not been confirmed" in page.body
    assert b"orders" in page.body


def test_a_page_as_json_says_itself_that_nobody_confirms_its_state(source: HeldSource) -> None:
    console = console_of(source)
    app = WebConsole(console=console).app()
    asked = "/rules?format=json"
    assert ask(app, "GET", asked).json["notices"] == []
    held, source.current = source.current, None
    look(console)
    lost = ask(app, "GET", asked).json
    assert re.fullmatch(r"This state has not been confirmed for \d+ s: gone", lost["notices"][0])
    assert len(lost["rules"]["rows"]) == len(RULES)
    source.current = held
    look(console)
    assert ask(app, "GET", asked).json["notices"] == [], "which is not kept with the page"
    assert "No state could be read yet: gone" in get(HeldSource(None), asked).json["notices"]


def test_a_page_is_made_anew_when_the_state_changes(source: HeldSource) -> None:
    console = console_of(source)
    app = WebConsole(console=console).app()
    first, again = (ask(app, "GET", "/rules").body for _ in range(2))
    assert first == again
    source.current = image_of(*RULES, acl("brand-new", "User:new"))
    look(console)
    assert b"brand-new" in ask(app, "GET", "/rules").body
    assert b"brand-new" not in first


def test_what_pages_need_is_served_and_nothing_else(source: HeldSource) -> None:
    html = Elements(get(source, "/").body.decode())
    for tag, found in html.found:
        address = found.get("src") or (found.get("href") if tag == "link" else None)
        if address is not None:
            assert address.startswith("/static/")
            assert get(source, address).status == 200
    assert get(source, "/static/../app.py").status == 404


def test_no_older_state_is_held_on_to(source: HeldSource) -> None:
    console = console_of(source)
    web = WebConsole(console=console)
    app = web.app()
    for number in range(5):
        source.current = image_of(*RULES, acl(f"new-{number}"))
        look(console)
        for path in VIEWS:
            assert ask(app, "GET", path).status == 200
    source.current = image_of(*RULES)
    look(console)
    assert ask(app, "GET", "/").status == 200
    assert {each._of for each in web._caches.values()} == {console.states.now()}, "of whichever kind the pages were"
    assert sum(len(each._pages) for each in web._caches.values()) == 1
    assert not any(each._making for each in web._caches.values())


def test_what_is_not_settled_is_made_anew(source: HeldSource, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Page] = []

    def page(_console: Console, _asked: Parameters) -> Page:
        made.append(Page(path="/", title=f"number {len(made)}", is_settled=False))
        return made[-1]

    monkeypatch.setitem(VIEWS, "/", page)  # type: ignore[arg-type]
    app = WebConsole(console=console_of(source)).app()
    assert b"number 0" in ask(app, "GET", "/").body
    assert b"number 1" in ask(app, "GET", "/").body


@pytest.mark.parametrize(
    ("site", "is_compressed"), [("none", True), ("same-origin", True), ("cross-site", False), ("", False)]
)
def test_only_what_another_site_did_not_request_is_compressed(
    source: HeldSource, site: str, is_compressed: bool
) -> None:
    app = WebConsole(console=console_of(source)).app()
    headers = {"Accept-Encoding": "gzip", **({"Sec-Fetch-Site": site} if site else {})}
    reply, plain = ask(app, "GET", "/rules", headers=headers), ask(app, "GET", "/rules")
    assert (reply.headers.get("content-encoding") == "gzip") is is_compressed
    assert (gzip.decompress(reply.body) if is_compressed else reply.body) == plain.body
    assert "Sec-Fetch-Site" in reply.headers["vary"]


def test_what_is_transferred_is_small(source: HeldSource) -> None:
    source.current = image_of(*(acl(f"orders.{number}", f"User:service-{number % 70}") for number in range(3_000)))
    app = WebConsole(console=console_of(source)).app()
    headers = {"Accept-Encoding": "gzip", "Sec-Fetch-Site": "none"}
    html = Elements(ask(app, "GET", "/").body.decode())
    addresses = [found.get("src") or found.get("href") for tag, found in html.found if tag in ("script", "link")]
    sizes = {path: len(ask(app, "GET", str(path), headers=headers).body) for path in ("/", *addresses)}
    assert sum(sizes.values()) <= 150_000
    for path in VIEWS:
        assert len(ask(app, "GET", path, headers=headers).body) <= 30_000
