"""What a person sees who types at Python's prompt."""

import sys
from pathlib import Path

import pexpect
import pytest

ROOT = Path(__file__).parents[2]
TYPED = (
    ("import aclog", None),
    ('log = aclog.open_log("tests/data/kafka-4.3.1-small/__cluster_metadata-0")', None),
    ("log", "Log('tests/data/kafka-4.3.1-small/__cluster_metadata-0')"),
    ("log.image(as_of='2026-11-21 02:24:30')", "Image(end_offset=83, acls=31, as_of='2026-11-21T02:24:30Z')"),
    ("log.image().authorizer().check('User:alice', 'READ', 'after-checkpoint')",
     ("Answer(ALLOWED: User:alice READ TOPIC 'after-checkpoint' from 127.0.0.1 by ALLOW User:alice READ on TOPIC "
     "LITERAL 'after-checkpoint' from *)")),
    ("print(next(log.image().acls(name='after-checkpoint')).operation)", "READ"),
    ("log.image(as_of='03/04/2026')",
     ("aclog.metalog.errors.ConfigError: invalid offset or time '03/04/2026': which is the month? expected 2026-03-04 "
     "or 2026-04-03")),
)  # fmt: skip


@pytest.mark.process
def test_a_session():
    prompt = pexpect.spawn(sys.executable, ["-q", "-i"], cwd=ROOT, encoding="utf-8", timeout=300, dimensions=(40, 300))
    for line, shown in TYPED:
        prompt.expect_exact(">>> ")
        prompt.sendline(line)
        if shown is not None:
            prompt.expect_exact(shown + "\r\n")
    prompt.sendeof()
    prompt.close()
