"""Reads files of tests: `*.jsonl`, gzipped or not, and `-` are requests with their decisions, anything else is YAML."""

from pathlib import Path

from aclog.metalog.errors import ConfigError
from aclog.sources.rule_tests.request_cases import read_request_cases
from aclog.sources.rule_tests.rule_test_file import RuleTestFile
from aclog.sources.rule_tests.yaml_cases import read_yaml_cases
from aclog.sources.text_lines import STDIN


def read_test_file(path: str) -> RuleTestFile:
    """Return the tests of a file.

    Raises:
        ConfigError: the file is malformed, has no test, or says something that is not understood; with file and line.
        OSError: it cannot be read.

    """
    if path == STDIN or path.endswith((".jsonl", ".jsonl.gz")):
        cases = tuple(read_request_cases(path))
        if not cases:
            raise ConfigError(f"{path}: no test: expected a request in each line")
        return RuleTestFile(path=path, cases=cases)
    if Path(path).is_dir():
        raise ConfigError(f"{path}: a directory: expected a file of tests")
    return read_yaml_cases(path)
