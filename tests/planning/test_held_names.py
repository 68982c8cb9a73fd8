"""What resource patterns leave of a region's names, beside a look at every name that the texts can tell apart."""

from hypothesis import given
from hypothesis import strategies as st

from aclog.analysis.regions import EVERYONE, EVERYWHERE, REQUESTED, Literal, NamePart, Region, Root, Subtree, contains
from aclog.authorizer.codes import ResourceType
from aclog.planning.effect import HeldNames

TEXTS = ["a", "ab", "abc", "abd", "b", "*", "*a", "*ab", "!", "€"]
NAMES = [*TEXTS, *(text + "\uf8ff" for text in ["", *TEXTS])]
texts = st.sampled_from(TEXTS)
several = st.lists(texts, max_size=3).map(lambda found: tuple(sorted(set(found))))
parts: st.SearchStrategy[NamePart] = st.one_of(
    st.builds(Literal, name=texts),
    st.builds(Subtree, prefix=texts | st.just(""), except_prefixes=several, except_literals=several),
)
roots = st.builds(
    Root, st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]), texts | st.just(""), literal=st.booleans()
)


def covers(root: Root, name: str, *, documented: bool) -> bool:
    if not root.literal:
        return name.startswith(root.name)
    hidden = name.startswith("*") and not documented
    return name == root.name or (root.name == "*" and not hidden)


@given(st.lists(roots, max_size=5), st.lists(parts, min_size=1, max_size=3).map(tuple), st.booleans())
def test_just_the_other_names_are_left(held: list[Root], names: tuple[NamePart, ...], documented: bool) -> None:
    kind = ResourceType.TOPIC
    region = Region(resource_type=kind, operations=REQUESTED, principals=EVERYONE, hosts=EVERYWHERE, names=names)
    left = HeldNames.of(held, documented=documented).outside(region)
    for name in NAMES:
        is_held = any(root.kind == kind and covers(root, name, documented=documented) for root in held)
        expected = contains(names, name) and not is_held
        assert (left is not None and contains(left.names, name)) is expected, name


@given(st.lists(roots, max_size=5), roots, st.booleans())
def test_a_pattern_is_covered_if_each_of_its_names_is(held: list[Root], root: Root, documented: bool) -> None:
    found = HeldNames.of(held, documented=documented).covers(root)
    same = [each for each in held if each.kind == root.kind]
    names = [name for name in NAMES if covers(root, name, documented=documented)]
    is_covered = all(any(covers(each, name, documented=documented) for each in same) for name in names)
    if found:
        assert is_covered
    elif len(same) == 1:
        assert not is_covered or not names
