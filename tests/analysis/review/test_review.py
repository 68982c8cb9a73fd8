"""What a review says of a change, and in which order."""

from collections.abc import Mapping, Sequence

import pytest
from attrs import evolve, frozen

from aclog.analysis.comparison import Comparison
from aclog.analysis.policy import Policy
from aclog.analysis.regions import Direction, Request
from aclog.analysis.review.review import (
    ITEM_LIMIT,
    LARGEST_COMMENT,
    Item,
    Kind,
    LintOutcome,
    Move,
    Placement,
    Proof,
    Review,
    Section,
    TestsOutcome,
    document_of,
    flipped,
    markdown_lines,
    moves,
    renames,
    replacements,
    text_lines,
)
from aclog.authorizer.acl import FileOrigin, Origin, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings


def _rule(principal: str, name: str = "t", operation: AclOperation = AclOperation.READ) -> StandardAcl:
    return StandardAcl(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=PatternType.LITERAL,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=AclPermissionType.ALLOW,
    )


def _deny(principal: str, name: str) -> StandardAcl:
    return evolve(_rule(principal, name), permission_type=AclPermissionType.DENY, operation=AclOperation.ALL)


def _prefixed(principal: str, name: str) -> StandardAcl:
    return evolve(_rule(principal, name), pattern_type=PatternType.PREFIXED)


def _policy(*rules: StandardAcl) -> Policy:
    return Policy(AclsImage.from_acls(StandardAclWithId(id=None, acl=rule) for rule in rules))


def _review(old: Sequence[StandardAcl], new: Sequence[StandardAcl]) -> Review:
    comparison = Comparison.of(_policy(*old), _policy(*new))
    return Review(
        comparisons={None: comparison},
        rows=comparison.rows(),
        renames=renames(comparison.changes, comparison.old.acls, comparison.new.acls),
    )


def _request(principal: str, name: str) -> Request:
    return Request(
        principal=principal,
        host="10.0.0.1",
        operation=AclOperation.READ,
        resource_type=ResourceType.TOPIC,
        resource_name=name,
    )


class TestRenames:
    def test_all_rules_of_one_principal_go_to_another(self) -> None:
        (found,) = _review([_rule("User:a"), _rule("User:a", "u")], [_rule("User:b"), _rule("User:b", "u")]).renames
        assert (
            found.text() == "principal renamed: User:a -> User:b: 2 rules; User:a has none left; User:b had none before"
        )

    def test_some_rules_go_to_one_that_has_others(self) -> None:
        old = [_rule("User:a"), _rule("User:a", "u"), _rule("User:b", "v")]
        new = [_rule("User:a"), _rule("User:b", "u"), _rule("User:b", "v")]
        (found,) = _review(old, new).renames
        assert found.text() == "rules reassigned: User:a -> User:b: 1 rule"

    def test_two_that_get_the_same_rules_took_no_place(self) -> None:
        assert not _review([_rule("User:a")], [_rule("User:b"), _rule("User:c")]).renames

    def test_everyone_takes_nobodys_place(self) -> None:
        review = _review([_rule("User:a")], [_rule("User:*")])
        assert not review.renames
        assert document_of(review).points[0].startswith("GAINED  everyone except User:a: READ")

    def test_a_rename_hides_nothing_else(self) -> None:
        review = _review([_rule("User:a"), _rule("User:c")], [_rule("User:b"), _rule("User:c"), _rule("User:c", "u")])
        renamed, gained = document_of(review).points
        assert renamed.startswith("principal renamed: User:a -> User:b: 1 rule")
        assert gained == "GAINED  User:c: READ, DESCRIBE on TOPIC u, from any host"

    def test_other_rules_are_no_rename(self) -> None:
        assert not _review([_rule("User:a")], [_rule("User:b", "u")]).renames


@frozen
class _Places:
    places: Mapping[StandardAcl, tuple[FileOrigin, ...]]

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:
        return self.places.get(acl, ())


def test_a_move_is_told_without_the_commit_and_lines_do_not_count() -> None:
    a, b, c = _rule("User:a"), _rule("User:b"), _rule("User:c")
    before = Placement(
        origins=_Places({rule: (FileOrigin(file="main:k/x", line=n),) for n, rule in enumerate((a, b, c))}),
        path_of=lambda file: file.removeprefix("main:"),
    )
    after = Placement(origins=_Places({a: (FileOrigin(file="k/y", line=9),), b: (FileOrigin(file="k/y", line=8),)}))
    assert moves([a, b, c], before, after) == [Move(old="k/x", new="k/y", rules=2)]


def test_a_rule_that_a_second_file_states_too_moved_nowhere() -> None:
    a, here, there = _rule("User:a"), FileOrigin(file="k/x", line=1), FileOrigin(file="k/y", line=1)
    before, after = Placement(origins=_Places({a: (here,)})), Placement(origins=_Places({a: (here, there)}))
    assert not moves([a], before, after)
    assert not moves([a], after, before)


def test_rules_that_change_their_address_are_replaced_and_others_are_not() -> None:
    a, b, c = (("k", _rule(f"User:{name}")) for name in "abc")
    r0, r1, r2, s = (frozenset({f"kafka_acl.{each}"}) for each in ("r[0]", "r[1]", "r[2]", "s"))
    before = {a: r0, b: r1, c: s}
    (found,) = replacements(before, {a: r1, b: r0, c: s})
    assert found.text().startswith(
        "Terraform replaces 2 rules of kafka_acl.r in k: the address changes, such as kafka_acl.r[0] -> kafka_acl.r[1],"
    )
    (pushed,) = replacements(before, {("k", _rule("User:new")): r0, a: r1, b: r2, c: s})
    assert pushed.rules == 2
    (renamed,) = replacements({c: s}, {c: frozenset({"kafka_acl.t"})})
    assert (renamed.old, renamed.new) == ("kafka_acl.s", "kafka_acl.t")
    assert not replacements(before, before)
    assert not replacements(before, {("k", _rule("User:d")): r0, c: s})
    assert not replacements({c: s}, {("elsewhere", c[1]): s})


def test_accesses_that_flip_are_folded_and_lost_ones_come_first() -> None:
    counts = {_request("User:a", "t"): 3, _request("User:b", "u"): 7, _request("User:c", "t"): 1}
    old, new = _policy(_rule("User:a"), _rule("User:c")), _policy(_rule("User:b", "u"), _rule("User:c"))
    found = flipped(counts, old, new)
    assert [(each.direction, each.text()) for each in found] == [
        (Direction.LOST, "User:a READ TOPIC t: 3 accesses"),
        (Direction.GAINED, "User:b READ TOPIC u: 7 accesses"),
    ]


class TestReview:
    def test_nothing_changed(self) -> None:
        document = document_of(_review([_rule("User:a")], [_rule("User:a")]))
        assert next(iter(text_lines(document))) == "aclog review: no condition of --fail-on is met; no effective change"

    def test_what_fails_comes_first(self) -> None:
        review = _review([_rule("User:a")], [_rule("User:b", "u")])
        review.proofs = (Proof(text="TOPIC pii.* stays as it is", negation="TOPIC pii.* changes", holds=False),)
        review.tests = TestsOutcome(failures=(Item(text="rules.yaml:3: billing"),))
        review.lint = LintOutcome(new_errors=(Item(text="01 x: a"),), new_warnings=(Item(text="13 y: b"),))
        review.flipped = flipped({_request("User:a", "t"): 2}, review.comparison.old, review.comparison.new)
        lines = list(text_lines(document_of(review)))[:5]
        assert lines == [
            (
                "aclog review: FAILS: access gained: 1 row, lost: 1 row, 1 proof refuted, 1 test fails, 2 recent "
                "accesses break, 1 new lint error, 1 new lint warning"
            ),
            "- refuted: TOPIC pii.* changes (and 1 more)",
            "- GAINED  User:b: READ, DESCRIBE on TOPIC u, from any host",
            "- LOST  User:a: READ, DESCRIBE on TOPIC t, from any host; breaks User:a READ TOPIC t: 2 accesses",
            "- new lint finding [01 x]: a (and 1 more)",
        ]

    def test_the_riskiest_rows_come_first_and_fill_the_room(self) -> None:
        old = [_prefixed("User:c", "team07."), _rule("User:d", "pii"), _deny("User:*", "pii")]
        new = [_rule("User:a"), _prefixed("User:b", "b.x."), _prefixed("User:c", "t"), _rule("User:d", "pii")]
        points = document_of(_review(old, new)).points
        assert [point.split(":")[1] for point in points] == ["d", "c", "b", "a"]
        assert points[0].endswith("; removed: DENY User:* ALL on TOPIC LITERAL 'pii' from *")

    def test_accesses_that_break_are_told_once(self) -> None:
        review = _review([_rule("User:a"), _rule("User:b", "u")], [])
        review.flipped = flipped({_request("User:a", "t"): 2}, review.comparison.old, review.comparison.new)
        assert sum("breaks User:a READ TOPIC t: 2 accesses" in point for point in document_of(review).points) == 1

    def test_each_kind_gets_a_point_before_one_gets_two(self) -> None:
        review = _review([_rule("User:z", "z")], [_rule(f"User:{name}", name) for name in "abc"])
        review.lint = LintOutcome(new_warnings=(Item(text="13 x: a"), Item(text="13 y: b")))
        review.own_checks = ("aclog.toml",)
        assert [point[:9] for point in document_of(review).points] == [
            "GAINED  U",
            "LOST  Use",
            "the chang",
            "new lint ",
        ]
        assert "(and 2 more)" in document_of(review).points[0]

    def test_findings_of_one_lint_and_moves_fill_no_room(self) -> None:
        review = _review([], [])
        review.lint = LintOutcome(new_warnings=tuple(Item(text=text) for text in ("13 x: a", "13 x: b", "11 y: c")))
        review.moves = [Move(old="a", new="b", rules=count) for count in (3, 2)]
        assert document_of(review).points == (
            "new lint finding [13 x]: a",
            "new lint finding [11 y]: c (and 1 more)",
            "3 rules moved from a to b (and 1 more)",
        )

    @pytest.mark.parametrize(("fail_on", "fails"), [((), False), ((Kind.LOST,), True), ((Kind.TESTS,), False)])
    def test_what_a_repository_does_not_accept_fails(self, fail_on: tuple[Kind, ...], *, fails: bool) -> None:
        review = _review([_rule("User:a")], [])
        review.fail_on = fail_on
        assert review.fails is fails

    @pytest.mark.parametrize("who", ["User:*", "User:ANONYMOUS"])
    def test_that_everyone_gains_access_fails_unless_it_is_accepted(self, who: str) -> None:
        review = _review([_rule("User:a")], [_rule("User:a"), _rule(who, "u"), _prefixed("User:b", "t")])
        assert Kind.EVERYONE in review.kinds
        head, first, *_ = text_lines(document_of(review))
        assert head == "aclog review: FAILS: access gained: 2 rows, lost: 0 rows, everyone gains access"
        assert first.startswith(f"- GAINED  {'everyone' if who == 'User:*' else who}: READ, DESCRIBE on TOPIC u, ")
        review.fail_on = frozenset(Kind) - {Kind.EVERYONE, Kind.GAINED}
        head = next(iter(text_lines(document_of(review))))
        shown = "access gained: 2 rows, lost: 0 rows, everyone gains access"
        assert head == f"aclog review: no condition of --fail-on is met; {shown}"

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ([], [_rule("User:a"), _prefixed("User:b", "")]),
            ([_rule("User:*")], []),
            ([_rule("User:*")], [_rule("User:*"), _rule("User:*", operation=AclOperation.DESCRIBE)]),
            # no topic can have such a name
            ([], [_rule("User:*", "a b")]),
            # the DENY is gone for everyone, and it kept one principal from something
            ([_rule("User:a"), _deny("User:*", "t")], [_rule("User:a")]),
        ],
    )
    def test_that_some_gain_access_is_for_people_to_judge(
        self, old: Sequence[StandardAcl], new: Sequence[StandardAcl]
    ) -> None:
        review = _review(old, new)
        assert Kind.EVERYONE not in review.kinds
        assert "everyone gains access" not in document_of(review).head
        assert not review.fails

    def test_that_the_last_rule_goes_opens_a_topic_to_everyone(self) -> None:
        old, new = (Policy(_policy(*rules).acls, Settings(allow_everyone=True)) for rules in ([_rule("User:a")], []))
        comparison = Comparison.of(old, new)
        assert Review(comparisons={None: comparison}, rows=comparison.rows()).fails

    def test_a_comment_is_cut_to_what_a_comment_may_hold_and_says_so(self) -> None:
        review = _review([], [_rule(f"User:{n}", f"t{n}") for n in range(3)])
        document = document_of(review)
        item = Item(text="x" * 2_000)
        sections = tuple(Section(title="s", items=(item,) * ITEM_LIMIT) for _ in range(2))
        long = type(document)(head=document.head, points=document.points, sections=sections, foot=())
        text = "\n".join(markdown_lines(long))
        assert len(text) < LARGEST_COMMENT + 200
        assert text.endswith("The rest does not fit into a comment: `aclog review` shows it.\n<!-- aclog review -->")

    def test_a_cut_comment_ends_what_it_folds(self) -> None:
        section = Section(title="s", items=(Item(text="x " * 900),) * ITEM_LIMIT, folded=True)
        document = type(document_of(_review([], [])))(head="h", points=(), sections=(section,), foot=())
        lines = list(markdown_lines(document))
        assert "</details>" in lines
        assert lines.index("</details>") < len(lines) - 2

    def test_no_name_is_so_long_that_a_comment_cannot_hold_it(self) -> None:
        document = document_of(_review([], [_rule("User:" + "\x1b" * 30_000)]))
        text = "\n".join(markdown_lines(document))
        assert len(text) < 10_000
        assert "characters)" in text
        assert text.endswith("<!-- aclog review -->")

    def test_what_another_command_shows_is_only_counted_in_text(self) -> None:
        title = "Lint findings older than this change"
        section = Section(title=title, items=(Item(text="x"),), folded=True, command="aclog lint")
        document = type(document_of(_review([], [])))(head="h", points=(), sections=(section,), foot=())
        assert "Lint findings older than this change: 1 (see aclog lint)" in list(text_lines(document))

    @pytest.mark.parametrize(
        ("name", "shown"),
        [
            ("User:@all", "User:@&#8203;all"),
            ("User:kafka/h@REALM", "User:kafka/h@REALM"),
            ("User:https://x.y", "User:https:&#8203;//x.y"),
            ("User:www.x.y", "User:www&#8203;.x.y"),
            ("User:#12 ~~x~~", r"User:#&#8203;12 \~\~x\~\~"),
            ("User:&lt;b", "User:&amp;lt;b"),
            ("User:$ad{}min$", "User:&#36;ad{}min&#36;"),
        ],
    )
    def test_markdown_mentions_nobody_and_links_nowhere(self, name: str, shown: str) -> None:
        assert f"  {shown}: READ" in "\n".join(markdown_lines(document_of(_review([], [_rule(name)]))))

    def test_long_sections_tell_the_command_that_shows_all(self) -> None:
        section = Section(
            title="s", items=tuple(Item(text=str(n)) for n in range(ITEM_LIMIT + 2)), command="aclog diff"
        )
        document = type(document_of(_review([], [])))(head="h", points=(), sections=(section,), foot=())
        assert "  and 2 more: aclog diff shows all" in list(text_lines(document))

    def test_markdown_shows_names_as_they_are(self) -> None:
        lines = list(markdown_lines(document_of(_review([], [_rule("User:*", "a_b*|<x>")]))))
        assert r"- GAINED  everyone: READ, DESCRIBE on TOPIC " in lines[1]
        assert r"a\_b\*\|\<x\>" in lines[1]
