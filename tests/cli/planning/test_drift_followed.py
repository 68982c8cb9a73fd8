"""`aclog drift --follow` sees whatever changes what is wanted, and is not kept from looking by what is not read."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.planning.estate import line_of, log_with
from tests.support.sources.files_of_rules import write_files

JIKKOU = """\
apiVersion: kafka.jikkou.io/v1
kind: KafkaPrincipalAuthorization
metadata: {name: "User:shop"}
spec:
  acls:
    - {resource: {type: topic, pattern: "in-.*", patternType: MATCH}, type: ALLOW, operations: [READ]}
"""
TERRAFORM = """\
resource "kafka_acl" "topics" {
  for_each                     = toset(%s)
  resource_name                = each.key
  resource_type                = "Topic"
  resource_pattern_type_filter = "Literal"
  acl_principal                = "User:shop"
  acl_host                     = "*"
  acl_operation                = "Read"
  acl_permission_type          = "Allow"
}
"""


def linked(home: Path) -> tuple[object, ...]:
    """Want a directory with a link to another, beside what an editor leaves while somebody types."""
    write_files(home, {"want/base.jsonl": line_of(acl("in-1", "User:shop")), "names/more.jsonl": "\n"})
    (home / "want/team").symlink_to("../names")
    (home / "want/.#base.jsonl").symlink_to("me@host.1234:1700000000")
    return ("--want", home / "want")


def matched(home: Path) -> tuple[object, ...]:
    """Want rules on the topics that exist."""
    write_files(home, {"acls.yaml": JIKKOU, "names/topics": "in-1\n"})
    return ("--want", home / "acls.yaml", "--topics", home / "names/topics")


def beside(home: Path) -> tuple[object, ...]:
    """Want one file, which reads another."""
    names = 'split("\\n", trimspace(file("${path.module}/names/list")))'
    write_files(home, {"main.tf": TERRAFORM % names, "names/list": "in-1\n"})
    return ("--want", home / "main.tf")


def called(home: Path) -> tuple[object, ...]:
    """Want what a module that is elsewhere makes."""
    call = 'module "acls" {\n  source = "acme/acls/kafka"\n}\n'
    write_files(home, {"want/main.tf": call, "names/main.tf": TERRAFORM % '["in-1"]'})
    return ("--want", home / "want", "--module", f"acme/acls/kafka={home / 'names'}")


CHANGES = {
    linked: ("names/more.jsonl", line_of(acl("in-2", "User:shop"))),
    matched: ("names/topics", "in-1\nin-2\n"),
    beside: ("names/list", "in-1\nin-2\n"),
    called: ("names/main.tf", TERRAFORM % '["in-1", "in-2"]'),
}
"""The file that makes a second rule wanted, and what it says then."""


@contextmanager
def followed(*flags: object) -> Iterator[Iterator[str]]:
    """Follow what drifts, as JSON lines."""
    command = [sys.executable, "-m", "aclog", "drift", *map(str, flags), "--follow", "--interval", "0.1"]
    with subprocess.Popen([*command, "--format", "jsonl"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield iter(process.stdout)
        finally:
            process.terminate()
    assert process.returncode == 0


@pytest.mark.slow(2)
@pytest.mark.parametrize("prepare", CHANGES, ids=lambda prepare: prepare.__name__)
def test_a_change_of_what_is_wanted_is_seen(tmp_path, prepare: Callable[[Path], tuple[object, ...]]):
    (tmp_path / ".git").mkdir()
    place = log_with(tmp_path / "log", [acl("other", "User:b")])
    with followed(*place, *prepare(tmp_path), "--journal", tmp_path / "journal") as events:
        assert told(next(events)) == ("DRIFTED", "MISSING", "in-1")
        name, text = CHANGES[prepare]
        (tmp_path / name).write_text(text)
        assert told(next(events)) == ("DRIFTED", "MISSING", "in-2")


def told(line: str) -> tuple[str, str, str]:
    event = json.loads(line)
    return event["event"], event["kind"], event["resourceName"]


def test_what_can_be_read_once_only_is_not_followed(tmp_path):
    place = log_with(tmp_path / "log", [])
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    write_files(tmp_path, {"want.jsonl": line_of(acl("a", "User:shop"))})
    rest = (*place, "--journal", tmp_path / "journal", "--follow")
    for flag, path, more in (
        ("--want", pipe, ()),
        ("--want", "-", ()),
        ("--topics", pipe, ("--want", tmp_path / "want.jsonl")),
        ("--topics", "-", ("--want", tmp_path / "want.jsonl")),
    ):
        refused = aclog("drift", flag, path, *more, *rest)
        why = "expected files with --follow, which reads them again and again"
        assert (refused.code, refused.complaint) == (2, f"{flag} {path}: {why}")
