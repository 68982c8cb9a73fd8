"""What a command imports that reads no files of rules, or one checkpoint: the start is most of a short command."""

import subprocess
import sys
from pathlib import Path

import pytest

from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.image import Image

_NOT_FOR_ONE_NAME = (
    "aclog.analysis.comparison",
    "aclog.analysis.who_can",
    "aclog.metalog.filelog.file_log",
    "aclog.sources.formats.rule",
    "aclog.sources.git",
    "aclog.sources.logs",
    "concurrent.futures",
    "importlib.metadata",
    "logging",
    "shutil",
    "socket",
    "subprocess",
    "tempfile",
    "zoneinfo",
)
_REQUEST = ("--principal", "User:a", "--operation", "READ", "--topic", "orders")


@pytest.mark.process
def test_sources_import_the_parsers_of_rule_files_only_to_read_some():
    program = "import sys, aclog.sources.choice; print(*sorted({'yaml', 'tree_sitter'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


@pytest.mark.process
@pytest.mark.parametrize(
    "words", [("authorize", *_REQUEST), ("explain", *_REQUEST), ("acls", "list", "--topic", "orders")], ids=" ".join
)
def test_a_question_about_one_name_in_a_checkpoint_imports_no_logs_and_no_analysis(tmp_path: Path, words):
    checkpoint = write_checkpoint(Image(), tmp_path)
    program = (
        "import sys\nfrom aclog.__main__ import run\n"
        f"run(sys.argv[1:])\nprint('imported:', *sorted(set({_NOT_FOR_ONE_NAME!r}) & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program, *words, "--snapshot", str(checkpoint)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "imported:"
