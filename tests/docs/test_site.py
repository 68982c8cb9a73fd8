"""The site has every page and every flag, links lead somewhere, and it needs no other host."""

import re
from pathlib import Path

import pytest

from aclog.cli.app import LazyCommand, app
from aclog.cli.schema import schema_names
from aclog.config.node_settings import CLIENT_PREFIX
from aclog.config.security import CHECKED_KEYS
from aclog.config.server_properties import CLIENT_KEYS, OWN_KEYS, USED_KEYS
from aclog.metalog.errors import MetadataError
from aclog.server.telemetry import Metrics
from tests.docs.address import address
from tests.docs.site.__main__ import site_pages
from tests.docs.site.check import faults
from tests.docs.site.links import BrokenLinkError, Links
from tests.docs.site.markdown import for_site
from tests.docs.site.navigation import navigation
from tests.docs.site.places import ROOT, command_place


@pytest.fixture(scope="module")
def pages():
    return site_pages()


def flags(command, words=()):
    """Yield each command that is no group, with its flags: read here by other code than that which writes the pages."""
    command = command.load() if isinstance(command, LazyCommand) else command
    for name, below in getattr(command, "commands", {}).items():
        yield from flags(below, (*words, name))
    if not hasattr(command, "commands"):
        yield words, {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)}


def test_the_page_of_a_command_has_each_of_its_flags_in_a_table(pages):
    for words, known in flags(app):
        page = pages[command_place(" ".join(words))]
        table = re.search(rf"### Flags of aclog {' '.join(words)}\n(.*?)(?=\n## |\Z)", page, re.DOTALL)
        listed = set(
            re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", "\n".join(re.findall(r"^\| `([^`]+)`", table[1], re.MULTILINE)))
        )
        assert {flag for flag in known if flag.startswith("-")} <= listed


def test_the_page_of_a_command_has_what_is_written_about_it(pages):
    assert "Lists the ACLs of a state" in pages["commands/acls.md"]
    assert pages["commands/acls.md"].count("aclog acls list SOURCE") == 1


def test_each_page_is_in_the_navigation_once(pages):
    listed = re.findall(r'"([^"]+\.md)"', navigation([*pages, "new.md"]))
    assert sorted(listed) == sorted([*pages, "new.md"])


@pytest.mark.parametrize(
    ("link", "there"),
    [
        ("commands/acls.md#aclog-acls-list", "commands/acls.md#aclog-acls-list"),
        ("commands/README.md#times", "commands/index.md#times"),
        ("commands/README.md", "commands/index.md"),
        ("../SECURITY.md", "project/security.md"),
        ("../aclog/cli/app.py", f"{address()}/blob/main/aclog/cli/app.py"),
        ("../benchmarks/results/spark.svg", "assets/benchmarks/results/spark.svg"),
        ("https://example.org/a", "https://example.org/a"),
        ("#here", "#here"),
    ],
)
def test_links_lead_to_the_place_in_the_site(link, there):
    links = Links(source="docs/spark.md", place="spark.md")
    assert links.rewritten(f"[a]({link})\n```\n[a]({link})\n```\n") == f"[a]({there})\n```\n[a]({link})\n```\n"


def test_a_link_to_nothing_is_refused():
    with pytest.raises(BrokenLinkError, match="nowhere"):
        Links(source="docs/spark.md", place="spark.md").rewritten("[a](nowhere.md)")


def test_what_forges_read_otherwise_is_written_so_that_both_agree():
    assert for_site("| `a\\|b` | c\\|d |") == "| `a|b` | c\\|d |"
    assert for_site("These:\n- a\n- b") == "These:\n\n- a\n- b"


def test_the_check_finds_what_is_broken(tmp_path: Path):
    (tmp_path / "a.html").write_text(
        '<script src="https://x.org/a.js"></script><a href="b.html#no">b</a><a href="c.html">c</a>'
    )
    (tmp_path / "b.html").write_text(
        '<h1 id="yes">b</h1><a href="a.html">a</a><a href="#yes">b</a><a href="https://x.org">x</a>'
    )
    assert faults(tmp_path) == [
        "a.html: loads https://x.org/a.js",
        "a.html: b.html#no: no such mark",
        "a.html: c.html: no such file",
    ]


def below(kind):
    """Yield the classes derived from one, as far as they are imported."""
    for each in kind.__subclasses__():
        yield each
        yield from below(each)


def test_each_error_class_is_in_the_reference_with_what_to_do(pages):
    rows = dict(re.findall(r"^\| `(\w+)`[^|]*\|(.*)\|$", pages["reference/errors.md"], re.MULTILINE))
    imported = {each.__name__ for each in below(MetadataError) if each.__module__.startswith("aclog.")}
    assert {name for name in imported if not name.startswith("_")} <= set(rows)
    assert len(rows) >= 40
    assert all(cell.strip() for row in rows.values() for cell in row.split(" | "))


def test_each_metric_that_a_node_serves_is_in_the_reference_with_its_labels(pages):
    metrics = Metrics(process=False)
    metrics.connections.labels("l").set(1)
    metrics.request_errors.labels("a", "e").inc()
    metrics.watch_acl_count(lambda: 1)
    page = pages["reference/metrics.md"]
    for line in metrics.text().decode().splitlines():
        if line.startswith("# HELP ") and not line.split()[2].endswith("_created"):
            assert f"| `{line.split()[2]}` |" in page
    assert "| `aclog_request_errors_total` | counter | `api`, `error_code` |" in page


def test_each_metric_that_the_sources_name_is_in_the_reference(pages):
    made = re.compile(r'(?:Gauge|gauge|Counter|Histogram)\(\s*"(aclog_\w+)"|^ +"(aclog_\w+)": \(', re.MULTILINE)
    sources = (path.read_text("utf-8") for path in (ROOT / "aclog/cli").rglob("*.py"))
    names = {first or second for source in sources for first, second in made.findall(source)}
    assert len(names) >= 10
    for name in names:
        assert re.search(rf"\| `{name}(_total)?` \|", pages["reference/metrics.md"]), name


@pytest.mark.tier("test")
def test_each_property_is_in_the_reference_and_described(pages):
    page = pages["reference/properties.md"]
    listed = dict(re.findall(r"^\| `([^`]+)` \|.*\| (.*) \|$", page, re.MULTILINE))
    wanted = USED_KEYS | OWN_KEYS | CHECKED_KEYS | {CLIENT_PREFIX + key for key in CLIENT_KEYS}
    assert set(listed) == wanted
    assert [key for key, place in listed.items() if not place] == []


def test_the_options_before_a_command_are_on_the_page_that_all_have_in_common(pages):
    table = pages["commands/index.md"].partition("## Options before a command")[2]
    for option in app.params:
        assert all(f"{name}" in table for name in option.opts)


def test_each_json_schema_and_each_variable_is_in_the_reference_and_described(pages):
    for name in schema_names():
        assert f"\n## {name}\n" in pages["reference/schemas.md"]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", pages["reference/variables.md"], re.MULTILINE))
    assert {"ACLOG_CONTEXT", "ACLOG_CONFIG", "ACLOG_PAGER", "ACLOG_TIMEZONE", "ACLOG_NATIVE", "NO_COLOR"} <= set(rows)
    assert [name for name, described in rows.items() if not described] == []
