"""Copies of untrusted files: no symbolic link in one leads out of it, whichever others are on the way."""

import os
import posixpath
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.sources.rendering import _stays_inside
from tests.support.runs.profiles import examples

_NAMES = ("a", "b", "c")
_DIRECTORIES = ("", "a", "a/b", "a/b/c", "b", "b/c")
_PARTS = st.sampled_from((*_NAMES, "..", "..", ".", "l0", "l1", "l2"))
_TARGETS = st.builds(
    lambda start, parts: start + "/".join(parts), st.sampled_from(("", "", "", "/")), st.lists(_PARTS, max_size=7)
).filter(bool)
_LINKS = st.lists(st.tuples(st.sampled_from(_DIRECTORIES), _TARGETS), min_size=1, max_size=3)


@settings(max_examples=examples(300))
@given(_LINKS)
def test_links_that_are_made_lead_to_the_copy_alone(links: list[tuple[str, str]]) -> None:
    with TemporaryDirectory() as outer:
        top = Path(os.path.realpath(outer)) / "1/2/3/4/5/6/7/top"
        top.mkdir(parents=True)
        for each in _DIRECTORIES:
            (top / each).mkdir(exist_ok=True)
        made = []
        for number, (directory, target) in enumerate(links):
            path = posixpath.join(directory, f"l{number}")
            if _stays_inside(path, target):
                (top / path).symlink_to(target)
                made.append(top / path)
        for each in made:
            assert Path(os.path.realpath(each)).is_relative_to(top), (links, each)


def test_plain_links_are_made() -> None:
    for path, target in (("a", "b"), ("a/b", "../c"), ("a/b/c", "../../d/e"), ("a/b", "./c"), ("a/b", "..")):
        assert _stays_inside(path, target)
    for path, target in (
        ("a", ""),
        ("a", "b\0c"),
        ("a", "b/" * 1_000),
        ("a", "/etc"),
        ("a", ".."),
        ("a/b", "../../c"),
        ("a/b", "c/../../../d"),
        ("a", "b/.."),
    ):
        assert not _stays_inside(path, target)
