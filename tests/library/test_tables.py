"""ACLs, changes and differences as Python objects, Arrow, pandas and HTML, and what prints."""

import sys
from pathlib import Path

import pytest

import aclog
from aclog.analysis.rows.report import html_text
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl

LOG = Path(__file__).parents[1] / "data/kafka-4.3.1-small/__cluster_metadata-0"


@pytest.fixture(scope="module")
def log():
    with aclog.open_log(LOG) as opened:
        yield opened


def test_acls_as_rows(log):
    image = log.image()
    rows = sorted(image.to_dict()["acls"], key=str)
    assert sorted((rule.to_dict() for rule in image.acls()), key=str) == rows
    assert sorted(image.to_arrow().to_pylist(), key=str) == rows
    assert sorted(image.to_pandas().to_dict("records"), key=str) == rows
    frame = image.acls(principal="User:bob", operation="WRITE").to_pandas()
    assert set(frame.operation) == {"WRITE"}
    assert list(frame.columns)[:3] == ["resourceType", "resourceName", "patternType"]


def test_a_table_has_all_rows_however_many_were_taken(log):
    rules = log.image().acls(resource_type="GROUP")
    first = next(rules)
    assert len(rules.to_dicts()) == 1 + len(list(rules))
    assert first.to_dict() in rules.to_dicts()
    assert repr(rules) == "<ACLs of 68 ACLs at end offset 231, 2026-11-21T02:25:30.840Z>"


def test_changes_as_rows(log):
    history = log.history()
    frame, table, dicts = history.to_pandas(), history.to_arrow(), history.to_dicts()
    assert len(frame) == len(table) == len(dicts) == len(list(history))
    assert str(frame.timestamp.dtype) in ("datetime64[ns, UTC]", "datetime64[ms, UTC]")
    assert str(table.schema.field("timestamp").type) == "timestamp[ms, tz=UTC]"
    assert (dicts[0]["change"], dicts[0]["acl"]["principal"]) == ("ADDED", "User:alice")
    assert [time.timestamp() * 1000 for time in frame.timestamp] == [each["timestamp"] for each in dicts]
    assert frame.iloc[0].principal == "User:alice"
    assert str(log.history().__next__()) == (
        "offset 34, 2026-11-21T02:24:01.018Z: added ALLOW User:alice READ on TOPIC LITERAL 'orders' from *"
    )


def test_a_difference(log):
    difference = log.image(as_of=200).diff(log.image())
    assert str(difference).startswith("GAINED  User:alice: READ on TOPIC after-checkpoint, from any host\n")
    assert repr(difference) == "Comparison(gained=1, lost=0)"
    assert [str(each) for each in difference.differences] == [
        "GAINED  User:alice: READ on TOPIC after-checkpoint, from any host"
    ]
    assert str(difference) == "\n".join(map(str, difference.rows()))
    assert difference.to_dict() == {"differences": list(difference.json_lines())}
    assert difference.to_pandas().to_dict("records") == difference.to_arrow().to_pylist()
    assert list(difference.to_pandas().change) == ["GAINED"]
    assert "<td>READ on TOPIC after-checkpoint</td>" in difference._repr_html_()
    assert "no difference" in log.image().diff(log.image())._repr_html_()


def test_an_empty_image(log):
    empty = log.image(as_of=0)
    assert empty.to_arrow().num_rows == len(empty.to_pandas()) == 0
    assert str(empty).startswith("0 ACLs at end offset 0, 20")
    assert list(empty.to_pandas().columns)[-1] == "id"


def test_the_representations_are_one_line(log):
    image = log.image()
    authorizer = image.authorizer(super_users=["User:b", "User:a"], cidr=True)
    answer = authorizer.check("User:bob", "WRITE", "payments.eu")
    past = log.image(as_of="2026-11-21 02:24:30")
    assert repr(past) == "Image(end_offset=83, acls=31, as_of='2026-11-21T02:24:30Z')"
    assert repr(log) == f"Log({str(LOG)!r})"
    assert repr(authorizer) == "Authorizer(acls=68, super_users=['User:a', 'User:b'], cidr=True)"
    assert str(answer) == (
        "DENIED: User:bob WRITE TOPIC 'payments.eu' from 127.0.0.1 by "
        "DENY User:bob WRITE on TOPIC PREFIXED 'payments.' from 127.0.0.1"
    )
    assert str(authorizer.check("User:a", "ALTER", aclog.cluster())).endswith("by SuperUser")
    others = (image.state, image.state.acls, image.state.scram, image.state.tokens, answer, answer.explanation())
    for value in (*others, authorizer.standard, image.diff(past), next(log.history()), log.watch()):
        assert "\n" not in repr(value)
        assert len(repr(value)) < 20_000
    assert answer.to_dict() == answer.explanation().to_dict()


def test_html_is_capped_and_escaped(tmp_path, log):
    name = "<script>alert('x')</script>\x1b[2J" + "n" * 200
    rules = [acl(number, name=f"{name}{number}", principal="User:<b>") for number in range(30)]
    with aclog.open_log(write_log(tmp_path / "log", rules)) as odd:
        image = odd.image()
        answer = image.authorizer().check("User:<b>", "READ", f"{name}3")
        (grant,) = image.authorizer().who_can("READ", f"{name}3")
        assert "\x1b" not in str(grant)
        assert str(grant.rules[0]).startswith("ALLOW User:<b> READ on TOPIC LITERAL")
        for html in (image._repr_html_(), odd.history()._repr_html_(), answer._repr_html_(), grant._repr_html_(),
                     odd.image(as_of=0).diff(image)._repr_html_()):  # fmt: skip
            assert "<script" not in html
            assert "<b>" not in html
            assert "\x1b" not in html
            assert len(html) < 20_000
        assert image._repr_html_().count("<tr>") == 22
        assert "... and 10 more" in image._repr_html_()
    assert "<" not in log._repr_html_().removeprefix("<code>").removesuffix("</code>")
    assert "... and 60 more lines" in html_text("line\n" * 100)


def test_without_the_extras_one_line_says_what_to_install(log, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(aclog.ConfigError, match=r"to_arrow needs pyarrow, .* install .*\[parquet\]'"):
        log.image().to_arrow()
    with pytest.raises(aclog.ConfigError, match="to_pandas needs pandas"):
        log.history().to_pandas()
