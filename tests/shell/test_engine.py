"""Every transcript of Kafka's shell is reproduced, or listed with the reason for the difference."""

import re
from functools import cache
from io import StringIO

import pytest

from aclog.metalog.errors import ConfigError
from aclog.shell.engine import COMMANDS, run_command
from aclog.shell.session import run_once
from aclog.shell.tree import zoned_time
from aclog.snapshots.checkpoints import read_checkpoint
from tests.support.cli.shell_sources import CHURN, SMALL, fixture_image, printed, session, transcripts

EQUAL = "byte for byte"
OURS_AS_WELL = "the same names, and ours beside them (or Kafka's of what aclog does not interpret left out)"
CHOICES = "the same text with our list of commands in it"
USAGE = "the same usage line and layout, in our own words"
OFFSET = "the same epoch; offset and time are the log's, not those of the checkpoint file's own batches"
EXIT_CODE = "the same text, on stderr, with exit code 1 or 2 where Kafka's has 0"
ONE_SHOT_TOO = "a command that Kafka refuses as a single command, and we do not"
LOCAL = "/local tells of aclog and its source, not of Kafka's build"
NOT_INTERPRETED = "topics, configs, quotas and producer ids stay opaque"
BROKERS = "brokers as in Kafka's shell; controllers stay opaque"
DIES = "Kafka's shell dies or hangs there, ours does not"
RACE = "Kafka's shell races with its own loading; ours has loaded before the first command"
COMMAND_LINE = "about kafka-metadata-shell's own flags and files: aclog's command line answers that"


def numbers(text):
    """Return the names of transcript files for a list such as `0-2 5`."""
    found = []
    for part in text.split():
        first, _, last = part.partition("-")
        found += [f"{number:02d}.txt" for number in range(int(first), int(last or first) + 1)]
    return found


COVERAGE = {
    SMALL: {
        EQUAL: "3-31 33-35 38 44 47-50 57-58 60-61 66 68-70 72-74 76-77 79-80",
        OURS_AS_WELL: "0-2 32 78 90",
        CHOICES: "36",
        USAGE: "37 39-43",
        OFFSET: "45-46 67 71 75 97-99",
        EXIT_CODE: "83-89 91-92",
        ONE_SHOT_TOO: "81-82",
        LOCAL: "56",
        NOT_INTERPRETED: "51-54 62-64",
        BROKERS: "55 59",
        DIES: "65 95",
        RACE: "96",
        COMMAND_LINE: "93-94",
    },
    CHURN: {
        EQUAL: "3-31 33-35 38 44 47-50 57-58 60",
        OURS_AS_WELL: "0-2 32",
        CHOICES: "36",
        USAGE: "37 39-43",
        OFFSET: "45-46 61",
        LOCAL: "56",
        NOT_INTERPRETED: "51-54",
        BROKERS: "55 59",
    },
}
CLASSES = {
    fixture: {name: kind for kind, text in table.items() for name in numbers(text)}
    for fixture, table in COVERAGE.items()
}


@cache
def image_of(fixture, snapshot):
    """Return the state of the file that Kafka's shell loaded; its .log has the offsets 0 to 182."""
    if snapshot.endswith(".log"):
        return fixture_image(fixture, 183)
    return read_checkpoint(fixture / "__cluster_metadata-0" / snapshot)


@cache
def replayed(fixture):
    """Return our output for each interactive transcript: the same lines, typed in the same order."""
    found = {}
    state, snapshot = None, None
    for row in transcripts(fixture):
        if row["mode"] != "interactive":
            continue
        if row["snapshot"] != snapshot:
            snapshot = row["snapshot"]
            state = session(image_of(fixture, snapshot), show_secrets=True)
        found[row["file"]] = printed(run_command(" ".join(row["argv"]), state))
        # the recording was split at these marker lines, which are in the history
        list(run_command(f"cat /__M{int(row['file'][:2])}__", state))
    return found


def rows_of(*kinds, mode=None):
    return [
        pytest.param(fixture, row, id=f"{fixture.name[-5:]}-{row['file'][:2]}-{'_'.join(row['argv'])[:40]}")
        for fixture in (SMALL, CHURN)
        for row in transcripts(fixture)
        if CLASSES[fixture].get(row["file"]) in kinds and (mode is None or row["mode"] == mode)
    ]


def test_every_transcript_is_accounted_for():
    for fixture, table in CLASSES.items():
        assert sorted(table) == sorted(row["file"] for row in transcripts(fixture))
        assert len(table) == sum(len(numbers(text)) for text in COVERAGE[fixture].values())


@pytest.mark.parametrize(("fixture", "row"), rows_of(EQUAL))
def test_equal_byte_for_byte(fixture, row):
    assert replayed(fixture)[row["file"]] == row["text"]


NOT_OURS = {"clientQuotas", "configs", "producerIds", "topics"}


@pytest.mark.parametrize(("fixture", "row"), rows_of(OURS_AS_WELL, mode="interactive"))
def test_the_same_names_beside_ours(fixture, row):
    ours, theirs = replayed(fixture)[row["file"]], row["text"]
    if row["argv"] == ["ls", "/image/*"]:
        blocks = [block for block in theirs.split("\n\n") if block.partition(":")[0] not in NOT_OURS]
        theirs = "\n\n".join(blocks).replace("brokers\ncontrollers\n", "brokers\n")
        assert ours.rstrip("\n") == theirs.rstrip("\n")
    elif row["argv"] == ["ls", "/image"]:
        assert ours.split() == [name for name in theirs.split() if name not in NOT_OURS]
    else:
        assert ours.split() == ["acl", "delegationToken", "features", "image", "local", "scram"]
        assert set(theirs.split()) < set(ours.split())


@pytest.mark.parametrize(("fixture", "row"), rows_of(CHOICES))
def test_an_unknown_command_names_those_there_are(fixture, row):
    def without_choices(text):
        return re.sub(r"choose from .*\)", "choose from ...)", text)

    ours, theirs = replayed(fixture)[row["file"]], row["text"]
    assert without_choices(ours) == without_choices(theirs)
    kafkas = set(re.findall(r"'(\w+)'", theirs))
    assert kafkas <= set(COMMANDS) | {"bogus"}
    assert ours == f"invalid choice: 'bogus' (choose from {', '.join(map(repr, COMMANDS))})\n"


@pytest.mark.parametrize(("fixture", "row"), rows_of(USAGE))
def test_help_in_our_words_with_kafkas_usage(fixture, row):
    ours, theirs = replayed(fixture)[row["file"]].splitlines(), row["text"].splitlines()
    if row["argv"] == ["help"]:
        names = [re.match(r"    (\w+)  ", line) for line in theirs]
        assert {match[1] for match in names if match} < {line.split()[0] for line in ours if line.startswith("    ")}
        return
    assert ours[0].partition(":")[0] == theirs[0].partition(":")[0]
    assert ours[1:5] == theirs[1:5]
    columns = [[line[:25] for line in lines[5:] if line[:25].strip()] for lines in (ours, theirs)]
    assert columns[0] == columns[1]


@pytest.mark.parametrize(("fixture", "row"), rows_of(OFFSET, mode="interactive"))
def test_provenance_is_the_logs(fixture, row):
    end = int(row["snapshot"][:20])
    offset, epoch, time = replayed(fixture)[row["file"]].split(", ")
    assert offset == f"offset {end - 1}"
    assert epoch == row["text"].split(", ")[1]
    assert time == f"time {zoned_time(fixture_image(fixture, end).timestamp)}\n"
    assert time < row["text"].split(", ")[2]  # a checkpoint is written after the record that it ends with


ARGV_COMPLAINTS = {
    "bogus": (2, "invalid choice: 'bogus' (choose from"),
    "cd /image": (2, "invalid choice: 'cd' (choose from"),
    "pwd": (2, "invalid choice: 'pwd' (choose from"),
    "cat": (2, "too few arguments"),
    "cat /image/acls": (1, "cat: /image/acls: Is a directory"),
    "cat /nonexistent": (1, "cat: /nonexistent: No such file or directory."),
    "ls /nonexistent": (1, "ls: /nonexistent: no such file or directory."),
    "find /image/acls -name x": (2, "unrecognized arguments: '-name'"),
    "ls -1 /image": (1, "ls: -1: no such file or directory."),
}


@pytest.mark.parametrize(("fixture", "row"), rows_of(EXIT_CODE))
def test_a_single_command_complains_on_stderr_and_has_an_exit_code(fixture, row):
    code, complaint = ARGV_COMPLAINTS[" ".join(row["argv"])]
    assert complaint in row["text"] + row.get("stderr", "")
    ours, output, errors = run_single(fixture, row)
    assert (ours, errors[: len(complaint)]) == (code, complaint)
    assert output == (
        "acls\ncluster\ndelegationToken\nfeatures\nprovenance\nscram\n"
        if "/image" in row["argv"] and code == 1 and "ls" in row["argv"]
        else ""
    )


@pytest.mark.parametrize(("fixture", "row"), rows_of(ONE_SHOT_TOO))
def test_help_and_man_are_single_commands_too(fixture, row):
    assert row["text"].startswith("invalid choice")
    code, output, errors = run_single(fixture, row)
    assert (code, errors) == (0, "")
    assert "usage:" in output


@pytest.mark.parametrize(("fixture", "row"), rows_of(BROKERS))
def test_the_same_brokers_without_controllers(fixture, row):
    assert replayed(fixture)[row["file"]] == row["text"].partition("controllers")[0]


@pytest.mark.parametrize(("fixture", "row"), rows_of(OURS_AS_WELL, OFFSET, RACE, DIES))
def test_a_single_command_sees_the_whole_image(fixture, row):
    code, output, errors = run_single(fixture, row)
    assert (code, errors) == (0, "")
    if row["argv"] == ["tree", "/image/provenance"]:
        assert output.startswith(f"offset {int(row['snapshot'][:20]) - 1}, epoch 2, time 2026-11-21T02:2")
    elif row["argv"] == ["find", "/image"]:
        assert "\n/image/acls/byId\n" in output
        assert output.endswith("/image/scram/SCRAM-SHA-512/dave\n")
    elif row["argv"] == ["ls", "/"]:
        assert output == "acl\ndelegationToken\nfeatures\nimage\nlocal\nscram\n"


def run_single(fixture, row):
    """Return exit code, stdout and stderr of one command; aclog prints a ConfigError and exits with 2."""
    output, errors = StringIO(), StringIO()
    try:
        code = run_once(session(image_of(fixture, row["snapshot"])), row["argv"], output, errors)
    except ConfigError as error:
        return 2, output.getvalue(), f"{error}\n"
    return code, output.getvalue(), errors.getvalue()
