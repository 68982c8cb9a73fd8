"""ACLs as directories, against a naive model, with arbitrary names."""

import json
from collections import defaultdict
from uuid import UUID

import pytest
from attrs import define, evolve, field
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.layout import utf16
from aclog.metalog.primitives import uuid_text
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.shell.command import quoted
from aclog.shell.engine import run_command
from aclog.shell.tree import Directory, acl_directory, decode_name, encode_name
from aclog.snapshots.image import Image
from tests.support.builders.acls import acl_record
from tests.support.cli.shell_sources import SMALL, expected_acls, fixture_image, printed, session
from tests.support.runs.profiles import examples

NAMES = st.text("a.%/*\x00\n'\"\\ é😀", max_size=3)
IDS = st.integers(2, 2**128 - 1).map(lambda number: UUID(int=number))
ACLS = st.builds(
    StandardAcl,
    resource_type=st.sampled_from([0, 1, 2, 3, 7, 99]),
    resource_name=NAMES,
    pattern_type=st.sampled_from([0, 1, 2, 3, 4, 77]),
    principal=st.one_of(NAMES, NAMES.map("User:{}".format)),
    host=st.sampled_from(["*", "10.0.0.1"]),
    operation=st.sampled_from([2, 3]),
    permission_type=st.sampled_from([2, 3]),
)
RULES = st.dictionaries(IDS, ACLS, max_size=8).map(
    lambda found: {rule_id: acl for acl, rule_id in {acl: rule_id for rule_id, acl in found.items()}.items()}
)


@st.composite
def images(draw):
    """Return an image with ACLs in the base and the overlay, others added and removed again; and its ACLs."""
    based, added, gone = draw(RULES), draw(RULES), draw(RULES)
    acls = set(based.values())
    added = {rule_id: acl for rule_id, acl in added.items() if acl not in acls and rule_id not in based}
    acls |= set(added.values())
    gone = {i: acl for i, acl in gone.items() if acl not in acls and i not in based and i not in added}
    image = AclsImage.from_acls(StandardAclWithId(id=i, acl=acl) for i, acl in (based | gone).items())
    image = image.apply([acl_record(i, acl) for i, acl in added.items()])
    image = image.apply([RemoveAccessControlEntryRecord(id=i) for i in gone])
    if draw(st.booleans()):
        image = image.merged()
    return image, based | added


def walk(node, path=()):
    """Yield every file under a node with its text."""
    if not isinstance(node, Directory):
        return {path: node.text()}
    found = {}
    for name in node.names(""):
        found |= walk(node.child(name), (*path, name))
    return found


RESOURCE_TYPES = {0: "UNKNOWN", 1: "ANY", 2: "TOPIC", 3: "GROUP", 7: "USER", 99: "UNKNOWN"}
PATTERN_TYPES = {0: "UNKNOWN", 1: "ANY", 2: "MATCH", 3: "LITERAL", 4: "PREFIXED", 77: "UNKNOWN"}


@given(images())
@settings(max_examples=examples(60), deadline=None)
def test_every_rule_stands_under_its_id_its_resource_and_its_principal(made):
    image, rules = made
    expected = {}
    for rule_id, acl in rules.items():
        text = json.dumps(StandardAclWithId(id=rule_id, acl=acl).to_dict(), ensure_ascii=False, separators=(",", ":"))
        name, kind, pattern = uuid_text(rule_id), RESOURCE_TYPES[acl.resource_type], PATTERN_TYPES[acl.pattern_type]
        expected["id", name] = text
        expected["resource", kind, pattern, acl.resource_name, name] = text
        expected["principal", acl.principal, name] = text
    assert walk(acl_directory(image)) == expected


@given(images(), st.text("Aa9-_", max_size=3))
@settings(max_examples=examples(60), deadline=None)
def test_every_listing_is_in_order_and_by_prefix(made, prefix):
    image, rules = made
    pending = [acl_directory(image)]
    while pending:
        node = pending.pop()
        names = list(node.names(""))
        assert names == sorted(set(names), key=utf16)
        assert list(node.names(prefix)) == [name for name in names if name.startswith(prefix)]
        if names:
            assert list(node.names(names[0])) == [name for name in names if name.startswith(names[0])]
        pending += [child for child in map(node.child, names) if isinstance(child, Directory)]
    ids = acl_directory(image).child("id")
    for rule_id in rules:
        text = uuid_text(rule_id)
        for length in (1, 5, 20, 21, 22):
            assert text in list(ids.names(text[:length]))


@given(images())
@settings(max_examples=examples(40), deadline=None)
def test_every_path_that_find_prints_can_be_typed_back(made):
    image, rules = made
    state = session(Image(acls=image))
    files = 0
    for path in [line.text for line in run_command("find /acl", state)]:
        assert path.isprintable()
        (line,) = run_command(f"find {quoted(path)}", state) if path.count("/") > 5 else [None]
        (again,) = run_command(f"ls {quoted(path)}/", state) if line else [None]
        if line:
            assert line.text == path
            assert again.text == path.rpartition("/")[2]
            files += 1
    assert files == len(rules)  # the rules under /acl/resource: no other path is as deep


def test_the_fixture_by_principal_and_by_resource():
    image = fixture_image(SMALL, 231)
    by_principal = defaultdict(list)
    for row in expected_acls(SMALL):
        by_principal[row["principal"]].append(row)
    principals = acl_directory(image.acls).child("principal")
    assert set(principals.names("")) == set(by_principal)
    for principal, rows in by_principal.items():
        node = principals.child(principal)
        ours = [json.loads(node.child(name).text()) for name in node.names("")]
        for row in ours:
            del row["id"]
        assert sorted(ours, key=str) == sorted(({k: row[k] for k in ours[0]} for row in rows), key=str)


def test_hostile_names_from_a_real_kafka():
    state = session(fixture_image(SMALL, 231))
    names = [decode_name(line.text) for line in run_command("ls /acl/resource/TOPIC/LITERAL", state)]
    assert sorted(names) == sorted(
        {
            r["resourceName"]
            for r in expected_acls(SMALL)
            if (r["resourceType"], r["patternType"]) == ("TOPIC", "LITERAL")
        }
    )
    assert "." in names
    # a quoted star is a plain name: the topic `*`
    lines = list(run_command("cat '/acl/resource/TOPIC/LITERAL/*/'*", state))
    assert {json.loads(line.text)["resourceName"] for line in lines} == {"*"}
    assert len(list(run_command("cat /acl/resource/TOPIC/LITERAL/*/*", state))) > len(lines) > 0


@pytest.mark.parametrize(
    "name", ["nul\x00", "two\nlines", 'quo"te', "it's", "back\\slash", "x" * 32767, "{a,b}", "*", "🙂"]
)
def test_one_hostile_name_all_the_way(name):
    acl = StandardAcl(
        resource_type=2,
        resource_name=name,
        pattern_type=3,
        principal=f"User:{name}",
        host="*",
        operation=3,
        permission_type=3,
    )
    rule_id = UUID(int=2**127 + 5)
    state = session(Image(acls=AclsImage.from_acls([StandardAclWithId(id=rule_id, acl=acl)])))
    (listed,) = run_command("ls /acl/resource/TOPIC/LITERAL", state)
    assert listed.text == encode_name(name)
    path = f"/acl/resource/TOPIC/LITERAL/{listed.text}/{uuid_text(rule_id)}"
    (text,) = run_command(f"cat {quoted(path)}", state)
    assert json.loads(text.text)["resourceName"] == name
    assert text.text.isprintable()
    list(run_command(f"cd {quoted('/acl/principal/' + encode_name('User:' + name))}", state))
    assert printed(run_command("ls", state)) == uuid_text(rule_id) + "\n"
    assert printed(run_command(f"cat /image/acls/byId/{uuid_text(rule_id)}", state)) == f"{acl}\n"


def test_rules_without_an_id_are_named_by_what_they_say():
    acl = StandardAcl(
        resource_type=2,
        resource_name="o/1",
        pattern_type=3,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    denying = evolve(acl, permission_type=2)
    acls = AclsImage.from_acls([StandardAclWithId(id=None, acl=acl), StandardAclWithId(id=None, acl=denying)])
    state = session(Image(acls=acls))
    assert printed(run_command("ls /acl/id /image/acls/byId", state)) == ""
    assert printed(run_command("ls /acl/principal/User:a", state)) == (
        "ALLOW User:a READ on TOPIC LITERAL 'o%2F1' from *\nDENY User:a READ on TOPIC LITERAL 'o%2F1' from *\n"
    )
    (line,) = run_command("cat /acl/resource/TOPIC/LITERAL/o%2F1/DENY*", state)
    assert json.loads(line.text) == StandardAclWithId(id=None, acl=denying).to_dict()


def test_what_is_not_there():
    acls = acl_directory(fixture_image(SMALL, 231).acls)
    for path in (
        ("id", "AAAAAAAAAAAAAAAAAAAAAA"),
        ("id", "not a uuid"),
        ("id", ""),
        ("resource", "topic"),
        ("resource", "TOPIC", "Literal"),
        ("resource", "TOPIC", "LITERAL", "no such topic"),
        ("principal", "User:nobody"),
    ):
        *parents, last = path
        node = acls
        for name in parents:
            node = node.child(name)
        assert node.child(last) is None, path


@define
class CountingAcls:
    """An AclsImage of any size that supports look-ups only and rejects iteration."""

    acl: StandardAcl
    looked_up: list = field(factory=list)
    index = AclsImage.empty().index  # of which only is asked where it lies

    def get(self, rule_id):
        self.looked_up.append(rule_id)
        return self.acl

    def principals(self):
        raise AssertionError("nobody listed principals")

    def matching(self, wanted):
        self.looked_up.append(wanted.resource_name or wanted.principal)
        yield StandardAclWithId(id=UUID(int=7), acl=self.acl)

    def ids(self, low, high):
        """Yield a million ids in each range: reading more than the first ranges would take forever."""
        self.looked_up.append((low, high))
        return iter([UUID(int=low + 5)]) if len(self.looked_up) < 50 else iter(())


def test_big_images_stay_lazy():
    acl = StandardAcl(
        resource_type=2, resource_name="t", pattern_type=3, principal="User:a", host="*", operation=3, permission_type=3
    )
    acls = CountingAcls(acl)
    state = session(evolve(Image.EMPTY, acls=acls))
    rule_id = uuid_text(UUID(int=7))
    assert '"resourceName":"t"' in printed(run_command(f"cat /acl/id/{rule_id}", state))
    assert acls.looked_up == [UUID(int=7)]
    for command in (
        f"cat /image/acls/byId/{rule_id}",
        f"cat /acl/resource/TOPIC/LITERAL/t/{rule_id}",
        f"cat /acl/principal/User:a/{rule_id}",
        "cd /acl/resource/TOPIC",
        "ls /",
        "ls /acl",
        "pwd",
    ):
        before = len(acls.looked_up)
        assert not any(line.failed for line in run_command(command, state)), command
        assert len(acls.looked_up) <= before + 3, command


def test_a_listing_of_ids_is_printed_as_it_goes():
    acls = CountingAcls(acl=None)
    state = session(evolve(Image.EMPTY, acls=acls))
    lines = run_command("ls /acl/id", state)
    first, second = next(lines), next(lines)
    assert (first.text[0], second.text[0]) == ("-", "0")
    assert len(acls.looked_up) == 2
