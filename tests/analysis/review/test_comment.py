"""The comment of a review: the risk first, one table, and names that stay names."""

from collections.abc import Iterator, Sequence

import pytest
from attrs import evolve
from hypothesis import example, given
from hypothesis import strategies as st

from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import Policy
from aclog.analysis.regions import ExistingNames, Request
from aclog.analysis.review.comment import LONGEST_NAME, Risk, code, comment_of_clusters, judge
from aclog.analysis.review.review import Item, LinkedPlace, LintOutcome, Proof, Review, TestsOutcome, flipped
from aclog.authorizer.acl import FileOrigin, StandardAcl, StandardAclWithId, TwoOrigins
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.errors import printable
from tests.support.review.comments import render, shown_text

_RED, _ORANGE, _WHITE = (each.mark for each in (Risk.HIGH, Risk.MEDIUM, Risk.LOW))


def _rule(principal: str, name: str, operation: AclOperation = AclOperation.READ, **values: object) -> StandardAcl:
    rule = StandardAcl(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=PatternType.LITERAL,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=AclPermissionType.ALLOW,
    )
    return evolve(rule, **values)  # type: ignore[arg-type]


def _prefix(principal: str, name: str, operation: AclOperation = AclOperation.READ) -> StandardAcl:
    return _rule(principal, name, operation, pattern_type=PatternType.PREFIXED)


def _on(kind: ResourceType, name: str, operation: AclOperation) -> StandardAcl:
    return _rule("User:a", name, operation, resource_type=kind)


class _Lines:
    def of(self, acl: StandardAcl) -> tuple[FileOrigin, ...]:
        return (FileOrigin(file="kafka/a b.tf", line=len(acl.resource_name)),)


def _review(old: Sequence[StandardAcl], new: Sequence[StandardAcl], topics: Sequence[str] | None = None) -> Review:
    was, now = (
        Policy(AclsImage.from_acls(StandardAclWithId(id=None, acl=rule) for rule in rules)) for rules in (old, new)
    )
    names = None if topics is None else ExistingNames.of(topics)
    comparison = Comparison.of(was, now, topics=names, origins=TwoOrigins(old=_Lines(), new=_Lines()))
    return Review(comparisons={None: comparison}, rows=comparison.rows())


def _comment(old: Sequence[StandardAcl], new: Sequence[StandardAcl]) -> list[str]:
    return list(comment_of_clusters({"": _review(old, new)}))


_DENY = _rule("User:*", "pii", AclOperation.ALL, permission_type=AclPermissionType.DENY)
_READER = _rule("User:a", "pii")


@pytest.mark.parametrize(
    ("old", "new", "mark", "head"),
    [
        ([], [_rule("User:*", "*")], _RED, "FAILS: everyone gains READ, DESCRIBE on all topics"),
        ([], [_rule("User:*", "t")], _RED, "FAILS: everyone gains READ, DESCRIBE on topic t"),
        (
            [],
            [_rule("User:ANONYMOUS", "t")],
            _RED,
            "FAILS: User:ANONYMOUS gains READ, DESCRIBE on topic t (clients without a login)",
        ),
        ([], [_rule("User:a", "*")], _RED, "User:a gains READ, DESCRIBE on all topics"),
        ([], [_prefix("User:a", "")], _RED, "User:a gains READ, DESCRIBE on all topics"),
        ([], [_rule("User:a", "*", AclOperation.DESCRIBE)], _ORANGE, "User:a gains DESCRIBE on all topics"),
        ([], [_on(ResourceType.GROUP, "*", AclOperation.DELETE)], _RED, "User:a gains DELETE, DESCRIBE on all groups"),
        (
            [],
            [_on(ResourceType.CLUSTER, "kafka-cluster", AclOperation.ALTER)],
            _RED,
            "User:a gains ALTER, DESCRIBE on the cluster (it can change ACLs)",
        ),
        (
            [],
            [_on(ResourceType.CLUSTER, "kafka-cluster", AclOperation.CLUSTER_ACTION)],
            _RED,
            "User:a gains CLUSTER_ACTION on the cluster (it can act as a broker)",
        ),
        (
            [],
            [_on(ResourceType.CLUSTER, "kafka-cluster", AclOperation.IDEMPOTENT_WRITE)],
            _WHITE,
            "User:a gains IDEMPOTENT_WRITE on the cluster",
        ),
        (
            [],
            [_on(ResourceType.USER, "User:b", AclOperation.CREATE_TOKENS)],
            _RED,
            'User:a gains CREATE_TOKENS on user "User:b" (tokens of other users)',
        ),
        (
            [_READER, _DENY],
            [_READER],
            _RED,
            (
                "User:a gains READ, DESCRIBE on topic pii "
                "(no longer denied by DENY User:* ALL on TOPIC LITERAL 'pii' from *)"
            ),
        ),
        (
            [],
            [_rule("User:a", "__consumer_offsets", AclOperation.WRITE)],
            _RED,
            "User:a gains WRITE, DESCRIBE on topic __consumer_offsets (an internal topic of Kafka)",
        ),
        (
            [],
            [_rule("User:a", "__consumer_offsets")],
            _ORANGE,
            "User:a gains READ, DESCRIBE on topic __consumer_offsets",
        ),
        (
            [],
            [_prefix("User:a", "__", AclOperation.WRITE)],
            _RED,
            (
                "User:a gains WRITE, DESCRIBE on topics __* (the internal topics __consumer_offsets, "
                "__transaction_state, __share_group_state, __cluster_metadata of Kafka)"
            ),
        ),
        ([], [_prefix("User:a", "pa")], _ORANGE, "User:a gains READ, DESCRIBE on topics pa*"),
        (
            [],
            [_prefix("User:a", "orders.", AclOperation.DELETE)],
            _ORANGE,
            "User:a gains DELETE, DESCRIBE on topics orders.*",
        ),
        ([], [_prefix("User:a", "orders.")], _WHITE, "User:a gains READ, DESCRIBE on topics orders.*"),
        ([], [_rule("User:a", "orders")], _WHITE, "User:a gains READ, DESCRIBE on topic orders"),
        ([], [_rule("User:a", "no such")], _WHITE, 'User:a gains READ, DESCRIBE on topic "no such"'),
        ([_rule("User:a", "orders")], [], _ORANGE, "User:a loses READ, DESCRIBE on topic orders"),
        ([_rule("User:*", "orders")], [], _ORANGE, "everyone loses READ, DESCRIBE on topic orders"),
        ([_rule("User:a", "*")], [], _ORANGE, "User:a loses READ, DESCRIBE on all topics"),
        ([_READER], [_READER], _WHITE, "no effective change"),
    ],
)
def test_the_head_has_the_greatest_risk_and_its_colour(
    old: list[StandardAcl], new: list[StandardAcl], mark: str, head: str
) -> None:
    assert shown_text(_comment(old, new)[0]).strip() == f"{mark} aclog review: {head}"


def test_a_gain_of_everyone_is_before_a_loss_that_breaks_and_both_before_a_new_topic() -> None:
    review = _review([_rule("User:b", "u")], [_rule("User:a", "t"), _rule("User:*", "w")])
    lost = Request(
        principal="User:b",
        host="10.0.0.1",
        operation=AclOperation.READ,
        resource_type=ResourceType.TOPIC,
        resource_name="u",
    )
    review.flipped = flipped({lost: 7}, review.comparison.old, review.comparison.new)
    lines = list(comment_of_clusters({"": review}))
    rows = [shown_text(line) for line in lines if line.startswith("| ")][2:]
    assert [row.split(" | ")[0].strip("| ") for row in rows] == [
        f"{_RED}\xa0gained",
        f"{_RED}\xa0lost",
        f"{_WHITE}\xa0gained",
    ]
    assert "breaks 7 recent accesses" in rows[1]
    assert lines[0].endswith(", and 2 more changes")


def test_sixty_rules_take_thirty_lines_and_each_is_in_them() -> None:
    lines = _comment([], [_rule(f"User:app-{n}", f"data-{n}") for n in range(60)])
    assert len(lines) <= 30
    text = "\n".join(lines)
    visible, folded = text.partition("<details>")[::2]
    assert sum(line.startswith("| ") for line in visible.splitlines()) == 12
    assert "50 more changes of access" in folded
    assert all(f"`data-{n}`" in text for n in range(60))


def test_old_findings_are_only_counted_and_nothing_has_two_places() -> None:
    review = _review([], [_rule("User:a", "orders")])
    review.lint = LintOutcome(
        old=tuple(Item(text=f"11 implied: old rule {n}") for n in range(40)),
        resolved=(Item(text="08 shadowed: fixed rule"),),
    )
    text = "\n".join(comment_of_clusters({"": review}))
    assert "old rule" not in text
    assert "fixed rule" not in text
    assert "40 lint findings older than this change (see `aclog lint`); 1 lint finding fixed" in text


def test_what_fails_is_visible_and_what_holds_is_folded() -> None:
    review = _review([], [_rule("User:a", "orders")])
    review.proofs = (
        Proof(text="topic:pii is decided as before", negation="topic:pii changes", holds=False),
        Proof(text="cluster stays", negation="cluster changes", holds=True),
    )
    review.tests = TestsOutcome(failures=(Item(text="billing", origin=FileOrigin(file="t.yaml", line=3)),))
    review.doubts = ("changed, but not read: kafka/x.tf",)
    review.own_checks = ("aclog.toml",)
    review.lint = LintOutcome(new_errors=(Item(text="02 glob-in-name: a"),), new_warnings=(Item(text="13 x: b"),))
    visible, folded = "\n".join(comment_of_clusters({"": review})).partition("<details>")[::2]
    for text in (
        "- REFUTED: `topic:pii changes`",
        "- test fails: `billing` (`t.yaml:3`)",
        "- changed, but not read: kafka/x.tf",
        "- the change modifies the checks themselves: `aclog.toml`",
        "- new lint error **02 glob-in-name**: a",
    ):
        assert text in visible
    assert "`cluster stays`" not in visible
    assert "- PROVED: `cluster stays`" in folded
    assert "- **13 x**: b" in folded


def test_a_row_names_the_lint_and_is_no_low_risk() -> None:
    review = _review([], [_rule("User:a", "orders")])
    (report,) = review.rows
    assert report.places
    review.lint = LintOutcome(new_warnings=(Item(text="13 consumer-without-group: x", places=report.places),))
    row = next(line for line in comment_of_clusters({"": review}) if line.startswith(f"| {_ORANGE}"))
    assert row.endswith("| lint 13 consumer-without-group |")


def test_existing_topics_are_named_and_many_are_a_risk() -> None:
    many = [f"orders.{n}" for n in range(25)]
    review = _review([], [_prefix("User:a", "orders.")], topics=many)
    row = next(line for line in comment_of_clusters({"": review}) if line.startswith(f"| {_ORANGE}"))
    assert row.endswith("| 25 existing topics: `orders.0`, `orders.1`, `orders.10` and 22 more |")


def test_places_are_links_and_those_of_one_file_have_its_name_once() -> None:
    review = _review([], [_rule("User:a", "t"), _rule("User:a", "tt")])
    review.place_of = lambda each: LinkedPlace(
        file="k/a.tf", line=each.line, url=f"https://x.example/a.tf#L{each.line}"
    )
    row = next(line for line in comment_of_clusters({"": review}) if line.startswith(f"| {_WHITE}"))
    assert "[`k/a.tf:1`](https://x.example/a.tf#L1)" in row


# Names that are markup.

_HOSTILE = (
    "`",
    "``a`",
    "a|b",
    "a\\|b",
    "a\\",
    "**b**",
    "__x__",
    "<b>",
    "<!-- aclog review -->",
    "</details>",
    "<img src=x onerror=y>",
    "@all",
    "#12",
    "[a](http://evil.example)",
    "![a](http://evil.example)",
    "http://evil.example",
    "www.evil.example",
    "a@evil.example",
    "$x$",
    "&lt;b&gt;",
    "&#60;",
    "\u202eabc",
    "\u05d0\u05d1\u05d2",
    "\u200b",
    "a\nb",
    "| x |",
    "- x",
    "# x",
    " ",
    "  a  ",
    "\x1b[2J",
    ":warning:",
    "~~x~~",
    "<https://evil.example>",
    "\ud800",
)
_names = st.one_of(
    st.sampled_from(_HOSTILE),
    st.lists(st.sampled_from(_HOSTILE), min_size=1, max_size=4).map("".join),
    st.text(st.sampled_from("`|\\*_<>[]()@#$&!~\n\u202e\u05d0 aw.:/-"), min_size=1, max_size=20),
)


@given(_names)
@example("a\\|b`")
def test_a_name_in_code_font_is_that_name_in_a_cell_and_in_a_list(name: str) -> None:
    shown = printable(name).replace("\xa0", " ")
    for markdown in (
        f"- {code(name)} end",
        f"| a | b |\n| --- | --- |\n| {code(name)} | end |",
        f"### {code(name)} end",
    ):
        page = render(markdown)
        assert not page.unbalanced
        (text,) = page.codes
        assert text.replace("\u200b", "") == shown.replace("\u200b", "")
        assert page.text.strip().endswith("end")
        assert page.count("td") in (0, 2)
        assert not page.comments
        assert {tag for tag, _ in page.tags} <= {"ul", "li", "code", "h3", "table", "thead", "tbody", "tr", "th", "td"}


_written = _names.filter(lambda text: "\ud800" not in text)
"""Of rules: a lone surrogate is not text that a record can have."""


@given(principal=_written, name=_written, other=_written)
def test_no_name_breaks_a_comment(principal: str, name: str, other: str) -> None:
    principal = f"User:{principal}"
    review = _review([], [_rule(principal, name), _prefix("User:b", other), _rule(f"{principal}2", "t", host=other)])
    review.place_of = lambda each: LinkedPlace(file=other, line=each.line, url="https://x.example/a#L1")
    acl = review.comparison.changes[0].acl
    review.lint = LintOutcome(
        new_errors=(Item(text=f"01 x: {name}", markdown=f"{code(acl.resource_name)}: lost"),),
        new_warnings=(Item(text=f"02 y: {principal} on {name}"),),
    )
    review.doubts = (name,)
    review.own_checks = (other,)
    review.tests = TestsOutcome(failures=(Item(text=f"{name}: {principal}"),))
    lines = list(comment_of_clusters({"": review}))
    assert all(line.isprintable() for line in lines)
    page = render("\n".join(lines))
    assert not page.unbalanced
    assert page.comments == [" aclog review "]
    assert {value for tag, values in page.tags if tag == "a" for value in values} <= {
        ("href", "https://x.example/a#L1")
    }
    assert page.count("img") == 0
    assert {len(row) for row in _rows(page.tags)} == {5}
    assert page.count("details") == page.count("summary") > 0
    assert page.count("h3") == 1


def _rows(tags: Sequence[tuple[str, object]]) -> Iterator[list[str]]:
    cells: list[str] | None = None
    for tag, _ in tags:
        if tag == "tr":
            if cells is not None:
                yield cells
            cells = []
        elif tag in {"td", "th"} and cells is not None:
            cells.append(tag)
    if cells is not None:
        yield cells


def test_a_long_name_is_cut_and_its_length_stated() -> None:
    text = code("x" * 30_000)
    assert len(text) < LONGEST_NAME + 40
    assert text.endswith("... (30,000 characters)`")
    assert len("\n".join(_comment([], [_rule("User:" + "\x1b" * 30_000, "t")]))) < 10_000


def test_a_name_from_right_to_left_is_an_element_of_its_own() -> None:
    assert code("User:\u05d0\u05d1").startswith('<code dir="ltr">')


def test_rows_of_no_legal_name_are_no_risk() -> None:
    (report,) = _review([], [_rule("User:*", "no such")]).rows
    assert judge(report).risk is Risk.LOW


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ([], [_rule("User:a", "t")], ""),
        ([_rule("User:a", "t")], [_prefix("User:a", "")], '; "except X": nothing changes for X'),
        ([_rule("User:a", "t")], [_rule("User:a", "t"), _rule("User:*", "t")], '; "except X": nothing changes for X'),
        ([_rule("User:a", "t", AclOperation.WRITE)], [_rule("User:*", "t")], '; "at most X": perhaps less than X'),
    ],
)
def test_the_foot_has_the_words_of_the_table(
    old: Sequence[StandardAcl], new: Sequence[StandardAcl], words: str
) -> None:
    foot = _comment(old, new)[-2]
    assert foot.partition(f"{_WHITE} low")[2].removesuffix("</sub>") == words
