"""YAML as nodes with lines: what is read, and what is refused, with its line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.metalog.errors import ConfigError
from aclog.sources.formats import yaml_nodes
from aclog.sources.formats.nodes import Node
from aclog.sources.formats.yaml_nodes import parse_documents
from tests.support.runs.profiles import examples


def _one(text: str) -> Node:
    (found,) = parse_documents(text.encode(), "f.yaml")
    return found


def test_every_value_knows_the_line_of_its_key_or_its_own() -> None:
    found = _one("# head\nusers:\n  alice:\n    - Read\n    - {op: Write,\n       host: h}\n")
    alice = found.required("users").required("alice")
    read, write = alice.items()
    assert (found.required("users").line, alice.line, read.line, write.line, write.required("host").line) == (
        2,
        3,
        4,
        5,
        6,
    )


def test_names_that_look_like_other_values_keep_their_text() -> None:
    found = _one("a: 007\nb: 1e3\nc: yes\nd: '~'\ne: 2001-01-01\nf: 0x_\n")
    texts = {key: node.text() for key, node in found.mapping().items()}
    assert texts == {"a": "007", "b": "1e3", "c": "yes", "d": "~", "e": "2001-01-01", "f": "0x_"}


def test_empty_documents_are_left_out_and_later_ones_keep_their_lines() -> None:
    found = parse_documents(b"---\n---\na: !Ref b\n---\n# nothing\n---\n- 1\n", "f.yaml")
    assert [node.line for node in found] == [3, 7]
    with pytest.raises(ConfigError, match=r"f.yaml:3: a is a value with the tag !Ref: expected text"):
        found[0].required("a").text("a")


def test_merge_keys_add_what_is_not_there() -> None:
    found = _one("base: &base {b: 1, c: 2}\na:\n  <<: *base\n  b: 3\n").required("a")
    assert {key: node.text() for key, node in found.mapping().items()} == {"b": "3", "c": "2"}


_BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60))


def test_aliases_are_shared_not_copied() -> None:
    found = _one("a: &a [x, y]\nb: [*a, *a]\n").mapping()
    assert [each.value for each in found["b"].items()] == [found["a"].value] * 2


def test_aliases_that_multiply_are_refused_where_they_get_too_many() -> None:
    with pytest.raises(ConfigError, match=r"f.yaml:17: aliases expand to more than 1,000,000 values"):
        _one(_BOMB)
    rows = "".join(f"  t{i}: [Read, Write]\n" for i in range(1_000))
    with pytest.raises(ConfigError, match=r"f.yaml:\d+: aliases expand to more than 1,000,000 values"):
        _one(f"u: &u\n{rows}" + "".join(f"u{i}: *u\n" for i in range(1_000)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3: duplicate key 'a': first on line 1"),
        ("a: &x [*x]\n", "f.yaml:1: an alias of the value that it is in"),
        ("a: [1\nb: 2\n", "f.yaml:2: not YAML: did not find expected ',' or ']'"),
        ("\n" + "[" * 100_000, "f.yaml:2: nested more than 100 levels deep"),
        ("- " * 5_000 + "1", "f.yaml:1: nested more than 100 levels deep"),
        ("{a: " * 300 + "}" * 300, "f.yaml:1: nested more than 100 levels deep"),
        ("? [a]\n: b\n", "f.yaml:1: a key that is a mapping or a list"),
        ("\n\na: \x00\n", "f.yaml:3: not YAML: byte 5: control characters are not allowed"),
        ("a: {<<: [1]}\n", "f.yaml:1: `<<` merges mappings only"),
    ],
)
def test_what_is_refused_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_documents(text.encode(), "f.yaml")
    assert str(caught.value) == message


_PARTS = (
    *("a: 1\n", "b: [x, {c: d}]\n", "  - e: 'f'\n", "- g\n", "a: &x\n  h: ~\n", "<<: *x\n", "*x", "i: *x\n"),
    *("---\n", "...\n", "m: !Ref n\n", "o: !!int '5'\n", "p: ! 6\n", "q: 0b\n", "r: 1_0\n", "s: 12:30\n", "'<<': t\n"),
    *("u: |\n  v\n  w\n", "x: yes\n", "'y", "[", "]", "{z: 1, z: 2}\n", "\t", "# c\n", "%YAML 1.2\n---\n", "é: €\n"),
    *(
        "=: =\n",
        "a: 2001-01-01\n",
        "1: 2\n",
        "null: x\n",
        "[" * 120,
        "'': ''\n",
        "? [k]\n: l\n",
        "- \n",
        "k:\n",
        "\r\n",
        "\0",
    ),
)


@given(texts=st.lists(st.sampled_from(_PARTS), max_size=8), duplicates=st.booleans())
@settings(max_examples=examples(400))
def test_documents_by_events_are_those_of_the_library(texts: list[str], duplicates: bool) -> None:
    content = "".join(texts).encode()
    by_events = _described(content, duplicates=duplicates)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_nodes, "_plain_documents", lambda *_: None)
        assert by_events == _described(content, duplicates=duplicates)


def _described(content: bytes, *, duplicates: bool) -> object:
    try:
        found = parse_documents(content, "f.yaml", first_line=3, duplicates=duplicates)
    except ConfigError as error:
        return str(error)
    return [_plain(each) for each in found]


def _plain(node: Node) -> object:
    value = node.value
    if isinstance(value, dict):
        value = [(key, _plain(member)) for key, member in value.items()]
    elif isinstance(value, tuple):
        value = [_plain(item) for item in value]
    else:
        value = (type(value), repr(value))
    return node.file, node.line, value, node.raw, node.is_plain, node.tag
