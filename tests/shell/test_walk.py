from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.shell.tree import Directory, File, file, fixed
from aclog.shell.walk import resolve

TREE = fixed(
    {
        "a": fixed({"x": file("1"), "y/z": file("2"), "..": fixed({"": file("3")}), "b": fixed({})}),
        "ab": fixed({"x": file("4")}),
        "c": file("5"),
    }
)


def paths(target, working_directory=()):
    return [location.path for location in resolve(TREE, working_directory, target)]


def test_absolute_and_relative():
    assert paths("/") == ["/"]
    assert paths("") == ["/"]
    assert paths("/a/x") == ["/a/x"]
    assert paths("//a///x/") == ["/a/x"]
    assert paths("x", ("a",)) == ["/a/x"]
    assert paths("../c", ("a",)) == ["/c"]
    assert paths("./b/../x", ("a",)) == ["/a/x"]
    assert paths("/../../c") == ["/c"]
    assert paths("/c/x") == []
    assert paths("/nothing") == []


def test_dots_go_before_anything_is_looked_up():
    assert paths("/nothing/../c") == ["/c"]
    assert paths("/*/../c") == ["/c"]


def test_names_that_look_like_something_else():
    assert paths("/a/y%2Fz") == ["/a/y%2Fz"]
    assert paths("/a/%2E%2E") == ["/a/%2E%2E"]
    assert paths("/a/%2e%2e/%") == ["/a/%2E%2E/%"]
    assert paths("/a/y%2") == []
    assert paths("%", ("a", "..")) == ["/a/%2E%2E/%"]


def test_globs_in_every_component():
    assert paths("/*") == ["/a", "/ab", "/c"]
    assert paths("/a*/x") == ["/a/x", "/ab/x"]
    assert paths("/{ab,c}") == ["/ab", "/c"]
    assert paths("/a/%*") == ["/a/%2E%2E"]
    assert paths("/a/y%2F*") == ["/a/y%2Fz"]
    assert paths("/*/*") == ["/a/%2E%2E", "/a/b", "/a/x", "/a/y%2Fz", "/ab/x"]
    assert paths("/z*") == []


def test_a_look_up_lists_nothing_and_a_glob_lists_by_its_prefix():
    asked = []
    node = Directory(names=lambda prefix: asked.append(prefix) or ["abc"], child=file)
    root = fixed({"d": node})
    assert [location.names for location in resolve(root, (), "/d/abc")] == [("d", "abc")]
    assert asked == []
    assert [location.names for location in resolve(root, (), "/d/ab*")] == [("d", "abc")]
    assert asked == ["ab"]


def test_a_name_whose_node_is_gone_is_passed_over():
    node = Directory(names=lambda _: ["gone"], child=lambda _: None)
    assert list(resolve(fixed({"d": node}), (), "/d/*")) == []


NAMES = st.text("ab./%", max_size=3)
TREES = st.dictionaries(NAMES, st.dictionaries(NAMES, st.just("leaf"), max_size=4), max_size=4)


@given(TREES, st.lists(st.sampled_from(["a", "*", "?", "a*", "{a,b}", "%*", "..", "."]), min_size=1, max_size=3))
@settings(deadline=None)
def test_against_a_naive_walk(tree, components):
    root = fixed({name: fixed(dict.fromkeys(leaves, file("leaf"))) for name, leaves in tree.items()})
    found = [location.names for location in resolve(root, (), "/" + "/".join(components))]
    kept = []
    for component in components:
        if component == "..":
            kept = kept[:-1]
        elif component != ".":
            kept.append(component)
    every = [(), *((a,) for a in tree), *((a, b) for a in tree for b in tree[a])]
    assert sorted(found) == sorted(names for names in every if _means(kept, names))


def _means(components, names):
    from aclog.shell.tree import encode_name
    from aclog.shell.walk import parse_glob

    return len(components) == len(names) and all(
        parse_glob(c).matches(encode_name(n)) for c, n in zip(components, names, strict=True)
    )


def test_product_of_literals_is_found():
    for a, b in product(["a", "ab"], ["x"]):
        (location,) = resolve(TREE, (), f"/{a}/{b}")
        assert isinstance(location.node, File)
