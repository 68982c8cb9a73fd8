"""Wrong inputs of every kind on all commands: one line names the problem and the next step, and the exit code is 2."""

import re
import shlex
from pathlib import Path

import pytest

from aclog.cli.app import app
from tests.support.cli.command import aclog

WEEK = Path(__file__).parents[1] / "data" / "week"

LINES = """
why
why alice
why alice orders absent
why alice orders LOG --operation REED
why alice orders LOG --host 1.2.3
why alice orders LOG --as-of tomorrow
why alice orders LOG --as-of 2030-01-01
why alice orders LOG --as-of -1
why alice '' LOG
why : orders LOG
why alice orders LOG EXTRA
why alice orders LOG --consume --produce
explain LOG
explain LOG --principal User:bob --operation READ
explain LOG --principal User:bob --operation READ --topic t --group g
explain LOG --principal User:bob --operation READ --topic t --format yaml
explain LOG --principal User:bob --operation READ --topic t --columns nope --format table
authorize LOG --principal User:bob --operation REED --topic t
authorize LOG --requests absent.jsonl
authorize LOG --requests bad.jsonl
authorize LOG --principal User:bob --operation READ --topic t --requests bad.jsonl
authorize LOG --principal User:bob --operation READ --topic t --host example.com
authorize --snapshot bad.checkpoint --principal User:bob --operation READ --topic t
who-can LOG
who-can LOG --operation READ
who-can LOG --operation READ --topic t --as-of 99999999
who-can LOG --operation READ --topic t --since never
who-can LOG --operation READ --topic t --resource-pattern-type match
who-can LOG --intent eat --topic t
what-can LOG
what-can LOG --principal User:a --principal
when RULES --principal User:a --operation READ --topic t
when LOG --operation READ --topic t --principal User:a --except-principal User:b
when LOG --topic t
acls lst LOG
acls list absent
acls list LOG --log LOG
acls list LOG RULES
acls list LOG --topic
acls list LOG --resource-pattern-type wild
acls list bad.jsonl
acls list empty.dir
acls list LOG --as-of 03/04/2026
acls list LOG --as-of monday
acls list LOG --timezone Mars/Base
acls list LOG --format kafak
acls history RULES
acls history LOG --since 'three moons'
acls add --log LOG
acls add --log LOG --allow-principal bob --operation READ --topic t
acls add --log LOG --allow-principal User:bob --operation FLY --topic t
acls add --log absent --allow-principal User:bob --operation READ --topic t
acls add --allow-principal User:bob --operation READ --topic t
acls add --log LOG --bootstrap-server h:1 --allow-principal User:b --operation READ --topic t
acls add --bootstrap-server h --allow-principal User:b --operation READ --topic t
acls remove --log LOG --topic t --allow-principal b
acls copy --log LOG
query
query 'SELECT' LOG
query 'SELECT * FROM nope' LOG
query 'DROP TABLE acls' LOG
query 'SELECT * FROM accesses' LOG
query 'SELECT 1; SELECT 2' LOG
report LOG
report LOG -o a.pdf
report LOG -o a.md --sections nope
report LOG -o /no/such/dir/a.md
report LOG -o a.md --want RULES
report LOG -o a.md --index absent
report LOG -o a.md --tests absent.yaml
report LOG -o a.md --sign bad.jsonl
report LOG -o a.md --days 0
lint absent
lint LOG --select 99
lint LOG --fail-on maybe
lint LOG --topics absent.txt
lint LOG --fix
lint LOG --config absent.toml
lint bad.jsonl
lint --acls RULES --acls-format nope
lint LOG --accesses absent.log
diff LOG
diff LOG absent
diff LOG --to-as-of yesteryear
diff LOG --change bad.jsonl
diff LOG --add absent.jsonl
diff LOG RULES --to-acls RULES
diff LOG --to-context nope
diff LOG LOG LOG
check nothing LOG
check only LOG
check only LOG --operation READ --topic t
check not-granted LOG --principal User:a
check equal LOG
check no-public LOG --operation NOPE
test
test absent.yaml LOG
review --render-timeout 0
review --fial-on gained
test bad.jsonl LOG
test LOG
grant --log LOG
grant --log LOG --principal User:a --intent eat
grant --log LOG --principal a --intent produce --topic t
revoke --log LOG --principal User:a
plan
plan --log LOG
plan --log LOG --want absent --journal j
plan --log LOG --want RULES
plan --log LOG --want RULES --change bad.jsonl --journal j
apply
apply absent.plan
apply bad.jsonl --journal j
drift --log LOG --want absent --journal j
drift --log LOG --want RULES --journal bad.jsonl
rollback --log LOG
rollback --log LOG --journal absent
accesses usag
accesses usage LOG
accesses usage LOG --accesses absent
accesses usage LOG --accesses empty.dir
accesses usage LOG --accesses ACCESSES --days zero
accesses usage LOG --accesses ACCESSES --until later
accesses usage LOG --accesses ACCESSES --accesses-format nope
accesses index LOG --accesses ACCESSES
accesses index LOG --accesses absent --index i
accesses unused LOG --index absent
accesses unused LOG --index empty.dir
accesses unused LOG --index i --gap 1x
accesses denied LOG
accesses denied LOG --accesses bad.jsonl
accesses suggest LOG --accesses ACCESSES --fold many
accesses simulate LOG --accesses ACCESSES
accesses coverage
accesses coverage --index absent
serve
serve absent.properties
serve bad.jsonl
format absent.properties
status
status --bootstrap-server nohost
console LOG --listen nowhere
console LOG --listen 127.0.0.1:99999
console absent
pdp LOG --listen x
pdp LOG --mapping absent
mcp absent
shell absent
shell LOG nope
shell LOG why User:a REED t
log dump
log dump absent
log dump LOG --from x
log verify bad.jsonl
log copy LOG
log copy LOG LOG
log adopt absent
snapshot create LOG
snapshot verify absent
snapshot list absent
export LOG
export LOG --out /no/dir/x
export LOG --format nope
import
import absent --log x
import bad.jsonl --log new
migrate
sync
sync --bootstrap-server x
mirror
tokens create
tokens list absent
context use nope
context add x
context show nope
schema nope
completion tcsh
help nope
help acls nope
spark history
-c nope lint
--color pink lint
frobnicate
lint --bogus
lint LOG --dir LOG
lint LOG --port 1
lint LOG --log=
lint LOG -o xml
doctor absent
why alice orders LOG --group g
why alice orders LOG --timezone Nowhere
why 'alice' topic: LOG
authorize LOG
acls list LOG --snapshot bad.checkpoint
acls list bad.checkpoint
acls history LOG --columns nope
accesses index LOG --accesses ACCESSES --index rules.jsonl
accesses usage --accesses ACCESSES
report LOG -o a.md --passphrase-file bad.jsonl
report RULES -o a.md --want RULES --journal j
lint --hepl
who-can LOG --operaton READ --topic t
what-can LOG --user alice
grant --log LOG --principal User:a --consume --topic t
revoke --log LOG --principal User:a --producer --topic t
query "SELECT nope FROM acls" LOG
diff LOG RULES LOG2
lint LOG --severity high
tokens list LOG --owner
""".strip().splitlines()
"""Command lines; a word in capitals is a file of the fixture."""

FILES = {"LOG": "log", "RULES": "rules.jsonl", "ACCESSES": "accesses.log"}
NEXT_STEP = re.compile(
    r"expected|see `aclog [a-z -]*--help`|did you mean|is not one of|is no \w+:|no such file|not a directory"
    r"|requires an argument|must be given|must provide|is not an? |or \w|each has a line|is missing|is given: --|use --"
    r"|makes it|only together with|excludes|choose from",
    re.IGNORECASE,
)
"""What a message has besides the problem."""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The working directory, with files and without contexts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ACLOG_CONFIG", str(tmp_path / "contexts.toml"))
    (tmp_path / "log").symlink_to(WEEK / "log")
    (tmp_path / "rules.jsonl").symlink_to(WEEK / "rules.jsonl")
    (tmp_path / "accesses.log").symlink_to(WEEK / "kafka-authorizer.log")
    (tmp_path / "bad.jsonl").write_text('{"nope": 1}\nnot json\n')
    (tmp_path / "bad.checkpoint").write_text("x")
    (tmp_path / "empty.dir").mkdir()
    return tmp_path


def test_there_are_150_for_all_commands():
    assert len(set(LINES)) >= 150
    named = {next((word for word in shlex.split(line) if not word.startswith("-")), "") for line in LINES}
    assert set(app.commands) - {"acls", "version"} <= named


@pytest.mark.parametrize("line", LINES)
def test_a_wrong_input_is_one_line_with_the_next_step(line, place):
    words = [FILES.get(word, word) for word in shlex.split(line)]
    result = aclog(*words)
    errors = [each for each in result.err.splitlines() if not each.startswith(("aclog: note: ", "aclog: warning: "))]
    assert result.code == 2, result
    assert len(errors) == 1, result.err
    [error] = errors
    assert error.startswith("aclog: ")
    assert "Traceback" not in result.err
    assert len(error) < 1500
    assert NEXT_STEP.search(error), error
    if found := re.search(r"\((?:did you mean|Possible options:) ([^)]*)\)", error):
        known = set(re.findall(r"--[\w-]+", aclog(words[0], "--help-all").out)) if words[0] != "acls" else set()
        assert not known or set(re.findall(r"--[\w-]+", found[1])) <= known | {"--context"}
