"""Listings of kafka-acls.sh: of each generation of the tool, what is skipped between them, and what is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.sources.acl_lines import read_acls
from aclog.sources.choice import AclsSource
from aclog.sources.formats.format import AclsFormat
from tests.support.cli.command import aclog
from tests.support.kafka.jvm import ROOT
from tests.support.sources.files_of_rules import read_rules, refused, write_files

_RECORDED = ROOT / "tests" / "data" / "kafka-4.3.1-small" / "expected"
_OF_OLD_TOOLS = ROOT / "tests" / "data" / "acls-listings"
"""Recorded by tests.support.zookeeper.acls_listing."""

_NEW = """\
Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)`:
\t(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)
\t(principal=User:mallory, host=10.0.0.1, operation=ALL, permissionType=DENY)

Current ACLs for resource `ResourcePattern(resourceType=GROUP, name=a=b, (c), patternType=x, patternType=PREFIXED)`:
\t(principal=User:CN=a,O=(b), host=*, operation=DESCRIBE, permissionType=ALLOW)

"""
_NEW_RULES = {
    "ALLOW READ TOPIC orders to User:alice": [2],
    "DENY ALL TOPIC orders to User:mallory from 10.0.0.1": [3],
    "ALLOW DESCRIBE GROUP a=b, (c), patternType=x* to User:CN=a,O=(b)": [6],
}
_OLD = (
    "Current ACLs for resource `Topic:orders`: \n"
    " \tUser:alice has Allow permission for operations: Read from hosts: *\n"
    "\tUser:mallory has Deny permission for operations: All from hosts: 10.0.0.1 \n"
    "\n"
    "Current ACLs for resource `Group:PREFIXED:a:b`: \n"
    " \tUser:x has y has ALLOW permission for operations: DESCRIBE from hosts: * \n"
    "\n"
    "Current ACLs for resource `Cluster:kafka-cluster`: \n"
    "  \n"
    "\n"
)
_OLD_RULES = {
    "ALLOW READ TOPIC orders to User:alice": [2],
    "DENY ALL TOPIC orders to User:mallory from 10.0.0.1": [3],
    "ALLOW DESCRIBE GROUP a:b* to User:x has y": [6],
}


def _rules(directory: Path, text: str) -> dict[str, list[int]]:
    (directory / "acls.txt").write_text(text, newline="")
    return read_rules(directory / "acls.txt").rules


def test_a_listing_of_todays_tool(tmp_path: Path) -> None:
    assert _rules(tmp_path, _NEW) == _NEW_RULES


def test_a_listing_of_the_tools_up_to_2_1_and_of_authorizers(tmp_path: Path) -> None:
    assert _rules(tmp_path, _OLD) == _OLD_RULES


def test_windows_lines_a_byte_order_mark_and_a_new_indentation(tmp_path: Path) -> None:
    assert _rules(tmp_path, "\ufeff" + _NEW.replace("\n", "\r\n")) == _NEW_RULES
    assert _rules(tmp_path, _OLD.replace(" \t", "\t").replace("\t", "    ").replace(" \n", "\n")) == _OLD_RULES


def test_several_listings_with_what_tools_print_between_them(tmp_path: Path) -> None:
    noise = (
        "Picked up JAVA_TOOL_OPTIONS: -Xmx1g\n"
        "SLF4J: Class path contains multiple SLF4J bindings.\n"
        "log4j:WARN No appenders could be found for logger (x).\n"
        "OpenJDK 64-Bit Server VM warning: Options were deprecated\n"
        "[2026-11-20 10:00:00,123] WARN The configuration 'x' was supplied but is unknown. (y)\n"
    )
    text = noise + "ACLs for principal `User:alice`\n" + _NEW + noise + _NEW
    assert _rules(tmp_path, text) == {rule: [line + 6, line + 18] for rule, (line,) in _NEW_RULES.items()}
    middle = _NEW.replace("\t(principal=User:m", noise + "\t(principal=User:m")
    assert list(_rules(tmp_path, middle)) == list(_NEW_RULES)


_HEAD = "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)`:\n"
_ENTRY = "\t(principal=User:a, host=*, operation=READ, permissionType=ALLOW)\n"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (_HEAD, "1: no ACL follows this resource: the listing is cut short"),
        (_HEAD + _HEAD + _ENTRY, "1: no ACL follows this resource"),
        (_HEAD[:-1], "1: no ACL follows"),
        (_HEAD[:60] + "\n", "1: expected Current ACLs for resource `...`:, on one line"),
        (_HEAD + _ENTRY[:50] + "\n", "2: '(principal=User:a, host=*"),
        (_HEAD + _ENTRY + "\n" + _ENTRY, "4: '(principal=User:a, host=*"),
        (_HEAD + _ENTRY + "Error while executing ACL command: x\n", "3: 'Error while executing"),
        (_HEAD + _ENTRY + "[2026-11-20 10:00:00,123] ERROR lost (x)\n", "3: '[2026-11-20 10:00:00"),
        (_HEAD + _ENTRY.replace("READ", "Consume"), "2: 'Consume' is not one of UNKNOWN, ANY, ALL, READ"),
        (_HEAD.replace("TOPIC", "Queue"), "1: 'Queue' is not one of"),
        (_HEAD + _ENTRY.replace("User:a,", "User:a, host=x,"), "2: ', host=' occurs twice"),
        (
            _HEAD + "\tUser:a has Deny permission for operations: All from hosts: x permission for operations: y\n",
            "2: ' permission for operations: ' occurs twice",
        ),
        (_HEAD + "\t(principal=a, host=" * 10_000 + "\n", "2: ', host=' occurs more than 100 times in a line"),
        (_HEAD.replace("name=t", "name=a\nb") + _ENTRY, "1: expected Current ACLs for resource `...`:, on one line"),
        (
            _HEAD + "\t(principal=User:a\nb, host=*, operation=READ, permissionType=ALLOW)\n",
            "2: '(principal=User:a' is not",
        ),
    ],
)
def test_what_is_not_understood_is_named_with_its_line(tmp_path: Path, text: str, where: str) -> None:
    (tmp_path / "acls.txt").write_text(text)
    assert refused(tmp_path / "acls.txt").startswith(f"{tmp_path / 'acls.txt'}:{where}")


def test_a_page_with_a_listing_in_it_is_no_listing(tmp_path: Path) -> None:
    write_files(tmp_path, {"README.md": "Like this:\n" + _NEW, "acls.txt": _NEW})
    found = read_rules(tmp_path)
    assert (list(found.rules), found.ignored) == (list(_NEW_RULES), {"other file": 1})


def test_a_listing_in_utf_16_is_not_left_out(tmp_path: Path) -> None:
    (tmp_path / "acls.txt").write_text(_NEW, encoding="utf-16")
    (tmp_path / "more.txt").write_text(_NEW)
    (found,) = read_rules(tmp_path).unread
    assert found.text() == f"{tmp_path}/acls.txt:1: encoded not read: text in UTF-16: save it as UTF-8"
    assert refused(tmp_path / "acls.txt") == f"{tmp_path}/acls.txt:1: text in UTF-16: save it as UTF-8"


def test_an_empty_listing_is_one_if_the_format_is_given(tmp_path: Path) -> None:
    for text in ("", "\n", "[2026-11-20 10:00:00,123] INFO nothing (x)\n"):
        write_files(tmp_path, {"acls.txt": text})
        assert read_rules(tmp_path / "acls.txt", AclsFormat.KAFKA_ACLS).rules == {}


def test_the_recorded_listing_of_a_real_kafka_is_its_state() -> None:
    listed = {rule.acl for rule in AclsSource(str(_RECORDED / "acls-cli.txt")).image().acls}
    assert listed == {rule.acl for rule in read_acls(str(_RECORDED / "acls.jsonl"))}


@pytest.mark.parametrize("version", ["1.1.1", "2.3.1", "3.9.1"])
def test_recorded_listings_of_older_tools_are_what_was_added(version: str) -> None:
    rules = {
        "ALLOW READ TOPIC orders to User:alice",
        "ALLOW DESCRIBE_CONFIGS TOPIC orders to User:alice",
        "DENY ALL TOPIC orders to User:mallory from 10.0.0.1",
        "ALLOW DESCRIBE GROUP g:1, x=y to User:CN=a,O=(b) c",
        "ALLOW WRITE TRANSACTIONAL_ID tx- to User:*",
        "ALLOW IDEMPOTENT_WRITE CLUSTER kafka-cluster to Group:ops",
        "ALLOW ALL TOPIC * to User:a",
    }
    prefixed = set() if version == "1.1.1" else {"ALLOW READ TOPIC p.* to User:p"}
    assert set(read_rules(_OF_OLD_TOOLS / f"{version}.txt").rules) == rules | prefixed


def test_what_we_list_is_read_back_as_it_is(tmp_path: Path) -> None:
    rules = str(_RECORDED / "acls.jsonl")
    (tmp_path / "acls.txt").write_text(aclog("acls", "list", "--acls", rules, "--format", "kafka").out)
    listed = {rule.acl for rule in AclsSource(str(tmp_path / "acls.txt")).image().acls}
    assert listed == {rule.acl for rule in read_acls(rules)}


_NAMES = st.text(
    st.sampled_from("ab*,=() `'\"\u2028\x85\x0b:") | st.characters(codec="utf-8", exclude_characters="\n\r"), min_size=1
)
_ACLS = st.builds(
    StandardAcl,
    resource_type=st.sampled_from(ResourceType),
    resource_name=_NAMES,
    pattern_type=st.sampled_from(PatternType),
    principal=_NAMES.map(lambda name: f"User:{name}"),
    host=st.sampled_from(["*", "10.0.0.1", "::1", "a, b"]),
    operation=st.sampled_from(AclOperation),
    permission_type=st.sampled_from(AclPermissionType),
)


@given(st.lists(_ACLS, min_size=1, max_size=5))
def test_whatever_is_listed_is_read_exactly(tmp_path_factory: pytest.TempPathFactory, acls: list[StandardAcl]) -> None:
    text = "".join(
        f"Current ACLs for resource `ResourcePattern(resourceType={ResourceType(acl.resource_type).name}, "
        f"name={acl.resource_name}, patternType={PatternType(acl.pattern_type).name})`: \n"
        f" \t(principal={acl.principal}, host={acl.host}, operation={AclOperation(acl.operation).name}, "
        f"permissionType={AclPermissionType(acl.permission_type).name}) \n\n"
        for acl in acls
    )
    directory = tmp_path_factory.getbasetemp()
    (directory / "listing.txt").write_text(text, encoding="utf-8", newline="")
    assert {rule.acl for rule in AclsSource(str(directory / "listing.txt")).image().acls} == set(acls)
