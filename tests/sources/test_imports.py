"""What a command imports that reads no files of rules."""

import subprocess
import sys

import pytest


@pytest.mark.process
def test_sources_import_the_parsers_of_rule_files_only_to_read_some():
    program = "import sys, aclog.sources.choice; print(*sorted({'yaml', 'tree_sitter'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
