"""Usage by Spark, checked against the engine on every access without each ACL."""

from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from random import Random

import pyarrow as pa
import pytest

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from aclog.pipeline import usage as usage_report
from aclog.pipeline.access_rows import AccessRows
from aclog.pipeline.usage import usage
from aclog.usage.accesses.parquet import plain_parts
from aclog.usage.decisions.intervals import Rules
from aclog.usage.unused import Answer
from aclog.usage.window import UnreadCounter, UnreadSpan
from tests.support.builders import acls
from tests.support.builders.images import with_ids
from tests.support.models.engine_answers import decided, engine
from tests.support.models.estates import Request
from tests.usage.decisions.test_bulk_authorizer import Interval, table_of
from tests.usage.decisions.test_necessary_acls import matches

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
USERS = ["User:a", "User:b", "User:c", "User:root"]
NAMES = ["orders", "orders.eu", "pay", "*"]
OPERATIONS = [AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE]


def ms(time) -> int:
    return int(time.timestamp() * 1000)


def acl(principal, name, operation=AclOperation.READ, *, prefixed=False, denies=False) -> StandardAcl:
    return acls.acl(
        name,
        principal,
        operation=operation,
        pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        permission_type=AclPermissionType.DENY if denies else AclPermissionType.ALLOW,
    )


def rules_of(intervals, known_from=None) -> Rules:
    return Rules.of_table(table_of(intervals), known_from=known_from)


def frame_of(spark, rows):
    """Rows of (principal, operation, name, time); operations may be invalid texts."""
    columns = [
        [principal for principal, *_ in rows],
        ["10.0.0.1"] * len(rows),
        [getattr(operation, "name", operation) for _, operation, *_ in rows],
        ["TOPIC"] * len(rows),
        [name for _, _, name, _ in rows],
    ]
    times = pa.array([time for *_, time in rows], pa.timestamp("us", tz="UTC"))
    names = ["principal", "host", "operation", "resourceType", "resourceName", "timestamp"]
    texts = [pa.array(column, pa.string()) for column in columns]
    return spark.createDataFrame(pa.table([*texts, times], names=names)).repartition(3)


def by_hand(intervals, rows, settings, window, *, own_time):
    """(matched, needed, last needed at and by) of each ACL, and the engine's decision on each row."""
    matched, needed, last = Counter(), Counter(), {}
    for principal, operation, name, time in rows:
        if time is None or not window.start <= time <= window.until or principal in settings.super_users:
            continue
        request = Request(
            principal=principal, host="10.0.0.1", operation=operation, resource_type=ResourceType.TOPIC,
            resource_name=name,
        )  # fmt: skip
        at = ms(time) if own_time else 1 << 60
        standing = [n for n, interval in enumerate(intervals) if interval.holds(at)]
        before = letter(intervals, standing, request, settings)
        for n in standing:
            matched[n] += matches(intervals[n].rule, request, settings)
            if letter(intervals, [each for each in standing if each != n], request, settings) != before:
                needed[n] += 1
                last[n] = max(last.get(n, (time, "")), (time, principal))
    return matched, needed, last


ANSWERS = {}


def letter(intervals, standing, request, settings) -> str:
    key = tuple(intervals[n].rule for n in standing), request, settings
    if key not in ANSWERS:
        authorizer = engine(AclsImage.from_acls(key[0]), settings)
        asked = request.principal, request.host, AclOperation(request.operation).name, "TOPIC", request.resource_name
        ANSWERS[key] = decided(authorizer, *asked)[0]
    return ANSWERS[key]


def random_rules(random) -> list[Interval]:
    found = {}
    for _ in range(14):
        operation = random.choice([AclOperation.READ, AclOperation.WRITE, AclOperation.ALL])
        denies = random.random() < 0.25
        told = acl(
            random.choice([*USERS[:3], "User:*"]),
            random.choice(NAMES),
            AclOperation.WRITE if denies else operation,
            prefixed=random.random() < 0.3,
            denies=denies,
        )
        found[told] = None
    intervals = []
    for rule in with_ids(list(found)):
        times = sorted(random.sample(range(ms(START - 12 * DAY), ms(START + DAY)), random.choice([0, 0, 1, 2, 3, 4])))
        if random.random() < 0.8 or not times:
            times.insert(0, None)
        times.append(None)
        intervals += [Interval(rule, *pair) for pair in zip(times[::2], times[1::2], strict=False)]
    return intervals


def random_rows(random, count):
    rows = []
    for _ in range(count):
        day = random.choice([0, 0, 1, 2, 3, 5, 8, 9, 11, 13])
        time = None if random.random() < 0.05 else START - day * DAY - timedelta(microseconds=random.randrange(10**10))
        who = random.choice(USERS)
        # one without a time may be in the window, and leave no rule that it may need unused; a super user needs none
        who = who if time else "User:root"
        rows.append((who, random.choice(OPERATIONS), random.choice([*NAMES, "orders.eu.x"]), time))
    rows.append(("User:a", AclOperation.READ, "orders", START))
    return rows


SETTINGS = Settings(super_users=frozenset({"User:root"}))


@pytest.mark.parametrize(
    ("seed", "own_time", "on_driver"), [(1, True, 0), (2, True, 1 << 20), (2, False, 0), (5, False, 1 << 20)]
)
def test_usage_agrees_with_the_engine_without_each_acl(spark, monkeypatch, seed, own_time, on_driver):
    monkeypatch.setattr(usage_report, "_MOST_ON_DRIVER", on_driver)
    random = Random(seed)
    intervals, rows = random_rules(random), random_rows(random, 300)
    settings = Settings(super_users=SETTINGS.super_users, allow_everyone=seed == 2)
    found = usage(frame_of(spark, rows), rules_of(intervals), settings, own_time=own_time, window_days=10)
    matched, needed, last = by_hand(intervals, rows, settings, found.window, own_time=own_time)
    told = found.rules.to_pylist()
    assert [row["id"] for row in told] == rules_of(intervals).table.column("id").to_pylist()
    for n, (row, interval) in enumerate(zip(told, intervals, strict=True)):
        assert (row["matched"], row["needed"]) == (matched[n], needed[n]), row
        at, by = last.get(n, (None, None))
        assert (row["last_needed_at"], row["last_needed_by"]) == (at, by)
        stood = interval.start is None or interval.start <= ms(found.window.start)
        stood &= interval.end is None or (own_time and interval.end > ms(found.window.until))
        expected = Answer.NEEDED if needed[n] else Answer.NEVER_NEEDED if matched[n] else Answer.NEVER_MATCHED
        assert row["answer"] == (expected if stood else Answer.NOT_JUDGED)
    check_removable(intervals, rows, settings, found.window, told, own_time=own_time)
    if on_driver and not own_time:
        assert sum(row["removable"] for row in told) >= greedily_removable(intervals, rows, settings, found.window)
    timed = [time for *_, time in rows if time]
    inside = [row for row in rows if row[3] and row[3] >= found.window.start]
    assert found.counts.total == len(rows)
    assert found.counts.without_time == len(rows) - len(timed)
    assert found.counts.outside == len(timed) - len(inside)
    assert found.counts.super_users == sum(row[0] == "User:root" for row in inside)
    assert found.counts.decided == sum(row[0] != "User:root" for row in inside)
    check_denied(intervals, inside, settings, found, own_time=own_time)


def check_removable(intervals, rows, settings, window, told, *, own_time):
    """With all of these removed, every access is decided as before, also by the newest ACLs."""
    gone = {n for n, row in enumerate(told) if row["removable"]}
    assert all(told[n]["answer"] in {Answer.NEVER_MATCHED, Answer.NEVER_NEEDED} for n in gone)
    assert gone
    for principal, operation, name, time in rows:
        if time is None or time < window.start:
            continue
        request = Request(
            principal=principal, host="10.0.0.1", operation=operation, resource_type=ResourceType.TOPIC,
            resource_name=name,
        )  # fmt: skip
        # the last version may be later than the window
        for at in {ms(time), 1 << 60} if own_time else {1 << 60}:
            standing = [n for n, interval in enumerate(intervals) if interval.holds(at)]
            left = [n for n in standing if n not in gone]
            assert letter(intervals, left, request, settings) == letter(intervals, standing, request, settings)


def greedily_removable(intervals, rows, settings, window) -> int:
    """How many ACLs go one after another, those that match least first, as long as no decision flips."""
    inside = [row for row in rows if row[3] is not None and row[3] >= window.start]
    requests = {
        Request(
            principal=principal, host="10.0.0.1", operation=operation, resource_type=ResourceType.TOPIC,
            resource_name=name,
        )
        for principal, operation, name, _ in inside
    }  # fmt: skip
    left = [n for n, interval in enumerate(intervals) if interval.holds(1 << 60)]
    before = {request: letter(intervals, left, request, settings) for request in requests}
    matched, needed, _ = by_hand(intervals, rows, settings, window, own_time=False)
    everything = len(left)
    for n in sorted(left, key=lambda n: (matched[n], n)):
        without = [other for other in left if other != n]
        stands = intervals[n].start is None or intervals[n].start <= ms(window.start)
        if stands and not needed[n] and all(letter(intervals, without, r, settings) == before[r] for r in requests):
            left = without
    return everything - len(left)


def check_denied(intervals, inside, settings, found, *, own_time):
    counts, first, last = Counter(), {}, defaultdict(lambda: START - 100 * DAY)
    for principal, operation, name, time in inside:
        request = Request(
            principal=principal, host="10.0.0.1", operation=operation, resource_type=ResourceType.TOPIC,
            resource_name=name,
        )  # fmt: skip
        at = ms(time) if own_time else 1 << 60
        standing = [n for n, interval in enumerate(intervals) if interval.holds(at)]
        if letter(intervals, standing, request, settings) == "D":
            key = principal, operation.name, name
            counts[key] += 1
            first[key] = min(first.get(key, time), time)
            last[key] = max(last[key], time)
    rows = found.denied.to_pylist()
    assert [(row["principal"], row["operation"], row["resourceName"], row["count"]) for row in rows] == [
        (*key, count) for key, count in sorted(counts.items(), key=lambda item: (-item[1], *item[0]))
    ]
    for row in rows:
        key = row["principal"], row["operation"], row["resourceName"]
        assert (row["first_at"], row["last_at"]) == (first[key], last[key])
        assert row["rule"] == "DefaultDeny" or "permissionType=DENY" in row["rule"]


def answers_of(found) -> dict:
    rows = found.rules.to_pylist()
    return {row["principal"] + row["resourceName"]: (row["answer"], row["removable"]) for row in rows}


def of_rule(found, principal, name="orders") -> dict:
    (row,) = (row for row in found.rules.to_pylist() if (row["principal"], row["resourceName"]) == (principal, name))
    return row


def standing(*acls):
    return [Interval(rule, None, None) for rule in with_ids(list(acls))]


def test_two_acls_that_cover_for_one_another_are_not_both_removable(spark):
    rules = rules_of(standing(acl("User:a", "orders"), acl("User:*", "orders"), acl("User:a", "nowhere")))
    rows = [("User:a", "READ", "orders", START)] * 3
    found = usage(frame_of(spark, rows), rules, SETTINGS, own_time=False, window_days=1)
    told = {
        row["principal"] + row["resourceName"]: (row["answer"], row["removable"]) for row in found.rules.to_pylist()
    }
    assert told == {
        "User:aorders": (Answer.NEVER_NEEDED, False),
        "User:*orders": (Answer.NEVER_NEEDED, True),
        "User:anowhere": (Answer.NEVER_MATCHED, True),
    }
    assert not found.has_times
    rows += [("User:c", "READ", "orders", START - HOUR)]  # now the broader one is needed
    found = usage(frame_of(spark, rows), rules, SETTINGS, own_time=False, window_days=1)
    told = {
        row["principal"] + row["resourceName"]: (row["answer"], row["removable"]) for row in found.rules.to_pylist()
    }
    assert told["User:aorders"] == (Answer.NEVER_NEEDED, True)
    assert told["User:*orders"] == (Answer.NEEDED, False)


def test_an_acl_whose_cover_was_removed(spark):
    """It was never needed in the window, but it is the last ACL that allows the access."""
    one, other = with_ids([acl("User:a", "orders"), acl("User:*", "orders")])
    intervals = [Interval(one, None, None), Interval(other, None, ms(START - HOUR))]
    rows = [("User:a", "READ", "orders", START - 2 * HOUR), ("User:b", "READ", "pay", START)]
    found = usage(frame_of(spark, rows), rules_of(intervals), SETTINGS, own_time=True, window_days=1)
    row = of_rule(found, "User:a")
    assert (row["answer"], row["removable"], row["matched"]) == (Answer.NEVER_NEEDED, False, 1)
    assert of_rule(found, "User:*")["answer"] == Answer.NOT_JUDGED
    assert found.has_times


def test_edges_of_the_window(spark):
    """Both ends are inclusive; an ACL must have been in force from one to the other."""
    start = START - 2 * DAY
    tick = timedelta(milliseconds=1)
    rules = with_ids([acl(f"User:{name}", "orders") for name in "abcdefgh"])
    spans = [
        (None, None), (start, None), (start + tick, None), (None, START), (None, START + tick), (START, None),
        (start - DAY, START - DAY), (START + DAY, None),
    ]  # fmt: skip
    intervals = [
        Interval(rule, *(None if each is None else ms(each) for each in span))
        for rule, span in zip(rules, spans, strict=True)
    ]
    micro = timedelta(microseconds=1)
    times = [start - micro, start, START, START + micro]
    rows = [("User:a", "READ", "orders", time) for time in times] + [("User:c", "READ", "orders", start)]
    found = usage(frame_of(spark, rows), rules_of(intervals), SETTINGS, own_time=True, window_days=2, until=START)
    told = found.rules.to_pylist()
    judged = [row["answer"] != Answer.NOT_JUDGED for row in told]
    assert judged == [True, True, False, False, True, False, False, False]
    assert (told[0]["matched"], told[0]["last_needed_at"]) == (2, START)
    assert told[2]["matched"] == 0  # added one millisecond after the access
    assert (told[2]["in_force_from"], told[2]["in_force_to"]) == (start + tick, None)
    assert (found.counts.outside, found.counts.decided) == (2, 3)


def test_acls_known_since_a_checkpoint(spark):
    intervals = standing(acl("User:a", "orders"))
    rows = [("User:a", "READ", "orders", START - each * HOUR) for each in range(30)]
    known_from = ms(START - 10 * HOUR)
    found = usage(frame_of(spark, rows), rules_of(intervals, known_from), SETTINGS, own_time=True, window_days=1)
    assert (found.counts.before_log, found.counts.decided, found.counts.outside) == (14, 11, 5)
    row = of_rule(found, "User:a")
    assert (row["answer"], row["matched"]) == (Answer.NOT_JUDGED, 11)
    later = usage(frame_of(spark, rows), rules_of(intervals, ms(START - DAY)), SETTINGS, own_time=True, window_days=1)
    assert of_rule(later, "User:a")["answer"] == Answer.NEEDED


def test_holes_and_undecided_accesses(spark):
    rows = [("User:a", "READ", "orders", START - day * DAY) for day in (0, 1, 4, 9)]
    rows += [("User:a", "REED", "orders", START), ("nobody", "READ", "orders", START), (None, "READ", "orders", START)]
    found = usage(
        frame_of(spark, rows), rules_of(standing(acl("User:b", "orders"))), SETTINGS, own_time=False, window_days=6
    )
    assert found.holes.column("day").to_pylist() == [date(2026, 2, day) for day in (23, 24, 26, 27)]
    assert sorted(found.counts.errors.values()) == [1, 1, 1]
    assert found.counts.decided == 3
    assert of_rule(found, "User:b")["answer"] == Answer.NOT_JUDGED
    assert found.denied.column("count").to_pylist() == [3]


@pytest.mark.parametrize("on_driver", [0, 1 << 20])
def test_what_is_not_known_leaves_no_rule_that_it_may_need_unused(spark, monkeypatch, on_driver):
    monkeypatch.setattr(usage_report, "_MOST_ON_DRIVER", on_driver)
    users = ("User:a", "User:b", "User:c", "User:d", "User:e", "User:root")
    rules = rules_of(standing(*(acl(user, "orders") for user in users)))
    rows = [
        ("User:a", "READ", "orders", START),
        ("User:b", "REED", "orders", START),
        ("User:b", "Read", "other", START),
        ("User:c", "READ", "orders", None),
        ("User:root", "REED", "orders", START),
    ]
    counter = UnreadCounter()
    counter.add("User:d", "ALLOWED", "NO_HEAD", UnreadSpan(2, None, None))
    found = usage(
        frame_of(spark, rows), rules, SETTINGS, own_time=False, window_days=6, until=START, unread=counter.total
    )
    assert {row["principal"]: (row["answer"], row["unread"]) for row in found.rules.to_pylist()} == {
        "User:a": ("NEEDED", 0), "User:b": ("NOT_JUDGED", 1), "User:c": ("NOT_JUDGED", 1), "User:d": ("NOT_JUDGED", 2),
        "User:e": ("NEVER_MATCHED", 0), "User:root": ("NEVER_MATCHED", 0),
    }  # fmt: skip
    assert found.unread.total == 4
    assert found.unread.by_reason() == {"NO_OPERATION": 1, "NO_TIME": 1, "NO_HEAD": 2}


def test_refusals(spark):
    rules = rules_of([])
    rows = [("User:a", "READ", "orders", None)]
    frame = frame_of(spark, rows)
    for bad, message in ((frame, "no access has a timestamp"), (frame.drop("timestamp"), "no column 'timestamp'")):
        with pytest.raises(ConfigError, match=message):
            usage(bad, rules, SETTINGS, own_time=False, window_days=1)
    for days in (0, 40_000):
        with pytest.raises(ConfigError, match="window"):
            usage(frame, rules, SETTINGS, own_time=False, window_days=days, until=START)
    found = usage(frame, rules, SETTINGS, own_time=True, window_days=1, until=START)
    assert (found.counts.decided, found.counts.without_time, len(found.holes)) == (0, 1, 2)
    assert (len(found.rules), len(found.denied)) == (0, 0)


def test_files_that_workers_read_say_the_same_as_a_table(spark, tmp_path):
    random = Random(3)
    frame = frame_of(spark, random_rows(random, 400))
    frame.write.parquet(str(tmp_path / "log"))
    files = sorted(map(str, (tmp_path / "log").glob("*.parquet")))
    rules = rules_of(random_rules(random))
    for own_time in (False, True):
        of_table = usage(frame, rules, SETTINGS, own_time=own_time, window_days=10)
        for most in (1, 2, 9):
            parts = plain_parts(files, most)
            assert len(parts) <= most
            rows = AccessRows.of_parts(spark, parts)
            found = usage(rows, rules, SETTINGS, own_time=own_time, window_days=10)
            assert (found.counts, found.window) == (of_table.counts, of_table.window)
            for name in ("rules", "denied", "holes"):
                assert getattr(found, name) == getattr(of_table, name)
