"""Names that clients choose to harm who looks at them: shown as text, and led back to as they are."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from aclog.authorizer.settings import name_text
from tests.support.builders.acls import acl
from tests.support.builders.hostile_names import ON_PAGES as NAMES
from tests.support.builders.hostile_names import visible_text
from tests.support.processes.node_zygote import shared_zygote
from tests.support.web.console import ConsoleProcess
from tests.support.web.estate import write_rules
from tests.support.web.visitor import Hands

NO_COLON = "nobody-can-be-this"


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    rules = [acl(name, f"User:{name}") for name in NAMES.values()]
    log = write_rules(tmp_path_factory.mktemp("hostile") / "log", [*rules, acl("harmless", NO_COLON)])
    with ConsoleProcess("--log", log, zygote=shared_zygote()) as started:
        yield started


def asked_for(url: str) -> str:
    """The name in an address."""
    return parse_qs(urlsplit(url).query, keep_blank_values=True, errors="surrogatepass")["name"][-1]


CASES = [
    *((Hands.MOUSE, name) for name in NAMES),
    *((Hands.PLAIN, name) for name in ("image", "backwards", "blanks", "lines")),
]


@pytest.mark.parametrize(("hands", "name"), CASES)
def test_a_name_is_shown_as_text_and_leads_back_to_itself(visit, name, hands):
    visitor, name = visit(hands), NAMES[name]
    visitor.start("/rules")
    visitor.follow(visible_text(name))
    assert asked_for(visitor.page.url) == name
    visitor.sees(visible_text(f"any operation on TOPIC {name_text(name)}: 1 principal"))
    visitor.fill("Operation", "READ")
    visitor.submit("Who can?")
    visitor.sees(visible_text(f"READ on TOPIC {name_text(name)}: 1 principal"))
    visitor.follow(visible_text(f"User:{name}"))
    assert asked_for(visitor.page.url) == f"User:{name}"
    visitor.sees(visible_text(f"User:{name}: 1 permission"))
    visitor.submit("Show permissions")
    visitor.follow(visible_text(name))
    assert asked_for(visitor.page.url) == name


@pytest.mark.parametrize("path", ["/", "/names", "/rules", "/principal", "/search?q=e"])
def test_lists_of_such_names_are_text(visit, path):
    visitor = visit()
    visitor.start(path)
    expect(visitor.page.locator("main script, main img, main [onfocus], main [onerror]")).to_have_count(0)
    visitor.sees("onerror=alert(1)>")


@pytest.mark.parametrize("hands", [Hands.MOUSE, Hands.PLAIN])
def test_a_lone_surrogate_that_no_log_can_hold_is_asked_for_as_it_is(visit, hands):
    visitor = visit(hands)
    visitor.start("/resource?type=TOPIC&name=lone%ED%A0%80one")
    visitor.sees("any operation on TOPIC lone\\ud800one: no principals")
    visitor.fill("Operation", "READ")
    visitor.submit("Who can?")
    visitor.sees("READ on TOPIC lone\\ud800one: no principals")
    visitor.page.reload()
    visitor.sees("READ on TOPIC lone\\ud800one: no principals")


def test_a_principal_that_nobody_can_be_has_its_rules(visit):
    visitor = visit()
    visitor.start("/principal")
    visitor.follow(NO_COLON)
    visitor.sees(NO_COLON, "no client is this principal", "harmless")
