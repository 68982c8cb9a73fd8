"""Resources of ns4kafka: the ACLs that it makes of entries, of groups with transactions, and of Kafka Streams."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sources.files_of_rules import read_rules, refused, write_files


def _namespace(name: str, user: str, more: str = "") -> str:
    return (
        f"---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n  cluster: local\n"
        f"spec:\n  kafkaUser: {user}\n{more}"
    )


def _entry(
    kind: str, permission: str, to: str, *, resource: str = "abc.", pattern: str = "PREFIXED", of: str = ""
) -> str:
    namespace = f"  namespace: {of}\n" if of else ""
    return (
        f"---\napiVersion: v1\nkind: AccessControlEntry\nmetadata:\n  name: e\n{namespace}"
        f"spec:\n  resourceType: {kind}\n  resource: {resource}\n  resourcePatternType: {pattern}\n"
        f"  permission: {permission}\n  grantedTo: '{to}'\n"
    )


_STREAM = "---\napiVersion: v1\nkind: KafkaStream\nmetadata:\n  name: abc.app\n"


def _rules(directory: Path, *documents: str) -> set[str]:
    return set(read_rules(write_files(directory, {"all.yml": "".join(documents)}) / "all.yml").rules)


def test_what_an_owner_gets(tmp_path: Path) -> None:
    kinds = ("TOPIC", "GROUP", "CONNECT", "CONNECT_CLUSTER", "SCHEMA", "TRANSACTIONAL_ID")
    text = _namespace("team", "user1") + "".join(_entry(kind, "OWNER", "team", of="team") for kind in kinds)
    found = read_rules(write_files(tmp_path, {"all.yml": text}))
    assert found.rules == {
        "ALLOW WRITE TOPIC abc.* to User:user1": [15],
        "ALLOW READ TOPIC abc.* to User:user1": [15],
        "ALLOW DESCRIBE_CONFIGS TOPIC abc.* to User:user1": [15],
        "ALLOW READ GROUP abc.* to User:user1": [27],
        "ALLOW READ GROUP connect-abc.* to User:user1": [39],
    }
    assert found.ignored == {f"AccessControlEntry of {kind}": 1 for kind in kinds[3:]}


def test_grants_to_others_and_to_everybody(tmp_path: Path) -> None:
    found = _rules(
        tmp_path,
        _namespace("team", "user1"),
        _namespace("other", "user2"),
        _entry("TOPIC", "READ", "other", resource="abc.t", pattern="LITERAL", of="team"),
        _entry("TOPIC", "WRITE", "*", of="team"),
        _entry("CONNECT_CLUSTER", "WRITE", "*", of="team"),
        _entry("CONNECT", "READ", "team"),
    )
    assert found == {"ALLOW READ TOPIC abc.t to User:user2", "ALLOW WRITE TOPIC abc.* to User:*"}


def test_groups_come_with_transactional_ids_if_their_namespace_has_transactions_or_streams(tmp_path: Path) -> None:
    group = _entry("GROUP", "OWNER", "team", pattern="LITERAL")
    with_ids = {f"ALLOW {each} TRANSACTIONAL_ID abc.* to User:u" for each in ("WRITE", "DESCRIBE")}
    assert _rules(tmp_path, _namespace("team", "u"), group) == {"ALLOW READ GROUP abc. to User:u"}
    transactions = _namespace("team", "u", "  transactionsEnabled: true\n")
    connectors = {rule.replace("abc.", "connect-cluster-abc.") for rule in with_ids}
    assert _rules(tmp_path, transactions, group) == {"ALLOW READ GROUP abc. to User:u"} | with_ids | connectors
    stream = _STREAM + "  namespace: team\n"
    topics = {f"ALLOW {each} TOPIC abc.app* to User:u" for each in ("CREATE", "DELETE")}
    assert _rules(tmp_path, _namespace("team", "u"), group, stream) == (
        {"ALLOW READ GROUP abc. to User:u"} | with_ids | topics
    )


def test_a_stream_without_namespace_belongs_to_the_one_that_owns_its_name(tmp_path: Path) -> None:
    owners = _namespace("team", "u") + _entry("TOPIC", "OWNER", "team") + _entry("GROUP", "OWNER", "team")
    other = _namespace("other", "v") + _entry("TOPIC", "OWNER", "other", resource="abc.app")
    assert "ALLOW CREATE TOPIC abc.app* to User:u" in _rules(tmp_path, _STREAM, owners, other)
    write_files(tmp_path, {"all.yml": _STREAM + other})
    assert refused(tmp_path) == (
        f"{tmp_path}/all.yml:2: KafkaStream abc.app names no namespace, and 0 namespaces in the files own prefixes "
        "of its name as TOPIC and as GROUP: expected metadata.namespace"
    )


def test_kubernetes_own_namespaces_and_other_kinds_are_left_out(tmp_path: Path) -> None:
    files = {
        "all.yaml": _namespace("team", "u")
        + "---\napiVersion: v1\nkind: Topic\n---\napiVersion: v1\nkind: Namespace\n",
        "kubernetes.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: kafkaUser}\n",
        "topic.yaml": "apiVersion: v1\nkind: Topic\n",
    }
    found = read_rules(write_files(tmp_path, files))
    assert (found.rules, found.ignored) == ({}, {"Namespace": 2, "Topic": 2})


_ENTRY = _entry("TOPIC", "READ", "team")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (_entry("TOPIC", "READ", "other"), "14: it is granted to the namespace 'other', which is not in the files"),
        (_entry("TOPIC", "READ", "team", of="other"), "15: its namespace 'other' is not in the files"),
        (_STREAM + "  namespace: other\n", "14: its namespace 'other' is not in the files"),
        (_STREAM.replace("name:", "nam:"), "12: metadata has no name"),
        (_entry("TOPIC", "OWNER", "*"), "14: OWNER of a TOPIC is granted to another: only READ and WRITE"),
        (_entry("GROUP", "READ", "*"), "14: READ of a GROUP is granted to another"),
        (_entry("CONNECT", "OWNER", "*"), "14: OWNER of a CONNECT is granted to another"),
        (_entry("GROUP", "READ", "team", of="x"), "15: READ of a GROUP is granted to another"),
        (_entry("Topic", "READ", "team"), "15: resourceType 'Topic' is not one of TOPIC, GROUP, CONNECT"),
        (_entry("TOPIC", "DENY", "team"), "18: permission 'DENY' is not one of OWNER, READ, WRITE"),
        (_entry("TOPIC", "READ", "team", pattern="MATCH"), "17: resourcePatternType 'MATCH' is not one of"),
        (_entry("TOPIC", "READ", "team", resource="' '"), "16: resource is empty"),
        (_ENTRY.replace("  resource: abc.\n", ""), "14: the spec of an AccessControlEntry has no resource"),
        (_ENTRY + "  host: h\n", "20: the spec of an AccessControlEntry has an unknown key 'host'"),
        (_namespace("team", "v"), "10: Namespace team is in "),
        (_namespace("x", "''"), "16: kafkaUser is empty"),
        (_namespace("x", "").replace("kafkaUser: ", "kafkaUsers: u"), "15: the spec of a Namespace has no kafkaUser"),
        (_namespace("x", "u", "  transactionsEnabled: maybe\n"), "17: transactionsEnabled is 'maybe': expected true"),
        ("---\nkind: KafkaPrincipalRole\n", "10: a KafkaPrincipalRole beside ns4kafka's resources"),
    ],
)
def test_what_is_not_understood_is_named_with_its_line(tmp_path: Path, text: str, where: str) -> None:
    path = write_files(tmp_path, {"all.yml": _namespace("team", "u") + text}) / "all.yml"
    assert refused(path).startswith(f"{path}:{where}")


def _independent(entry: tuple[str, str, str, str, str], users: dict[str, str], transactions: set[str]) -> set[str]:
    """What the rules of an entry are, written down once more."""
    kind, permission, resource, pattern, to = entry
    user = "*" if to == "*" else users[to]
    star = "*" if pattern == "PREFIXED" else ""
    given = {"OWNER": ("READ", "WRITE", "DESCRIBE_CONFIGS") if kind == "TOPIC" else ("READ",)}
    rules = {f"ALLOW {each} {kind} {resource}{star} to User:{user}" for each in given.get(permission, (permission,))}
    if kind == "GROUP" and to in transactions:
        for prefix in ("", "connect-cluster-"):
            rules |= {
                f"ALLOW {each} TRANSACTIONAL_ID {prefix}{resource}* to User:{user}" for each in ("WRITE", "DESCRIBE")
            }
    return rules


_ENTRIES = st.tuples(
    st.sampled_from(["TOPIC", "GROUP"]),
    st.sampled_from(["OWNER", "READ", "WRITE"]),
    st.sampled_from(["a", "abc.", "x-y_z"]),
    st.sampled_from(["LITERAL", "PREFIXED"]),
    st.sampled_from(["n1", "n2", "*"]),
).filter(lambda entry: entry[4] != "*" or (entry[0] == "TOPIC" and entry[1] != "OWNER"))


@given(st.lists(_ENTRIES, min_size=1, max_size=6), st.sets(st.sampled_from(["n1", "n2"])))
def test_whatever_entries_say_is_read_exactly(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, str, str, str, str]], transactions: set[str]
) -> None:
    users = {"n1": "u1", "n2": "u2"}
    text = "".join(
        _namespace(name, user, "  transactionsEnabled: true\n" if name in transactions else "")
        for name, user in users.items()
    )
    for kind, permission, resource, pattern, to in entries:
        text += _entry(kind, permission, to, resource=resource, pattern=pattern)
    expected = set().union(*(_independent(entry, users, transactions) for entry in entries))
    assert _rules(tmp_path_factory.getbasetemp(), text) == expected
