"""Principals of rules that probably mean another one: what `explain` reports as near misses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.spellings import canonical_name, misspelling, name_key
from tests.support.cli.command import aclog


@pytest.mark.parametrize(
    ("stated", "principal", "part"),
    [
        ("User:app_1", "User:app-1", "only in its spelling"),
        ("User:App-1", "User:app-1", "only in its spelling"),
        ("User:app1", "User:app-1", "only in its spelling"),
        ("User:app-*", "User:app-1", "not a pattern"),
        ("User:*-1", "User:app-1", "not a pattern"),
        ("User:app-?", "User:app-1", "not a pattern"),
        ("User:app-${n}", "User:app-1", "a template"),
        ("User:{{ app }}", "User:app-1", "a template"),
        ("User:<app>-1", "User:app-1", "a template"),
        ("User:User:app-1", "User:app-1", "its type twice"),
        ("User:x,User:app-1", "User:app-1", "not a list"),
        ("User:x,app-1", "User:app-1", "not a list"),
        ("User:O=b, CN=a", "User:CN=a,O=b", "the same distinguished name"),
        ("User:cn=a,o=b", "User:CN=a,O=b", "the same distinguished name"),
        ("User:CN=a, O=b", "User:CN=a,O=b", "the same distinguished name"),
    ],
)
def test_a_principal_that_probably_means_another_one(stated: str, principal: str, part: str) -> None:
    assert part in str(misspelling(stated, principal))


@pytest.mark.parametrize(
    ("stated", "principal"),
    [
        ("User:app-2", "User:app-1"),
        ("User:*", "User:app-1"),
        ("User:web-*", "User:app-1"),
        ("User:${app}-2", "User:app-1"),
        ("Group:app-1", "User:app-1"),
        ("User:", "User:app-1"),
        ("User:CN=a", "User:CN=a,O=b"),
        ("User:CN=A", "User:CN=a"),
        ("User:CN=a", "User:cn"),
    ],
)
def test_others_mean_what_they_state(stated: str, principal: str) -> None:
    assert misspelling(stated, principal) is None


_parts = st.lists(st.tuples(st.sampled_from(["CN", "O", "OU", "DC"]), st.from_regex(r"[a-z0-9]{1,4}", fullmatch=True)))


@given(_parts.filter(bool), st.randoms(use_true_random=False))
def test_every_order_blank_and_case_of_keys_is_one_name(parts: list[tuple[str, str]], random) -> None:  # type: ignore[no-untyped-def]
    plain = "User:" + ",".join(f"{key}={value}" for key, value in parts)
    others = [*parts]
    random.shuffle(others)
    texts = [f"{random.choice([key, key.lower()])}{random.choice(['=', ' = '])}{value}" for key, value in others]
    stated = "User:" + random.choice([",", ", ", ";"]).join(texts)
    assert name_key(stated) == name_key(plain)
    assert canonical_name(plain) == plain
    assert canonical_name(str(canonical_name(stated))) == canonical_name(stated)
    assert stated == plain or misspelling(stated, plain) is not None


@pytest.mark.parametrize(
    ("who", "host", "part"),
    [
        ("User:app_1", "*", "User:app_1 differs only in its spelling"),
        ("User:app-*", "*", "'User:app-*' is one client of that name, not a pattern"),
        ("User:app-1", "0.0.0.0", "no client connects from 0.0.0.0: * is every host"),
        ("User:app-1", "host:80/24", "the host 'host:80/24' is neither * nor an address"),
    ],
)
def test_explain_reports_them(tmp_path, who: str, host: str, part: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "acls.jsonl"
    path.write_text(
        f'{{"resourceType":"TOPIC","resourceName":"t","patternType":"LITERAL","principal":"{who}","host":"{host}",'
        '"operation":"READ","permissionType":"ALLOW"}\n'
    )
    shown = aclog("explain", "--acls", path, "--principal", "User:app-1", "--operation", "READ", "--topic", "t").out
    assert f"1 ACL on this resource does not match this request: {part}" in shown
