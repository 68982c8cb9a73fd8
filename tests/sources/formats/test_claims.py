"""Which format claims a file: for each sample of a format that one only, and files of other programs none."""

from pathlib import Path

import pytest

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.reading import READERS
from aclog.sources.formats.rule import DirectoryTree, SourceFile
from tests.support.sources.files_of_rules import read_rules
from tests.support.sources.samples import OTHERS, SAMPLES


def _claimed_by(directory: Path, name: str, text: str) -> set[AclsFormat]:
    (directory / name).write_text(text)
    file = SourceFile(DirectoryTree(str(directory)), name)
    return {form for form, reader in READERS.items() if reader.claims(file)}


def test_there_is_a_sample_of_each_format() -> None:
    assert {sample.form for sample in SAMPLES} == set(READERS)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.form} {sample.name}")
def test_a_file_is_claimed_by_its_own_format_only(tmp_path: Path, sample) -> None:
    assert _claimed_by(tmp_path, sample.name, sample.text) == {sample.form}


@pytest.mark.parametrize("form", [AclsFormat.KSM, AclsFormat.STRIMZI, AclsFormat.NS4KAFKA])
@pytest.mark.parametrize("text", ["", "kind: Topic\napiVersion: v1\n"])
def test_a_file_without_anything_of_the_given_format_is_no_empty_state(
    tmp_path: Path, form: AclsFormat, text: str
) -> None:
    (tmp_path / "given.yaml").write_text(text)
    with pytest.raises(ConfigError, match=rf"{tmp_path}/given.yaml.*: .*expected|unknown key"):
        read_rules(tmp_path / "given.yaml", form)


@pytest.mark.parametrize(("name", "text"), OTHERS)
def test_files_of_other_programs_are_claimed_by_none(tmp_path: Path, name: str, text: str) -> None:
    assert _claimed_by(tmp_path, name, text) == set()


@pytest.mark.parametrize(
    "text",
    [
        '{"attributes":{"title":"t"},"id":"e68f3f60-7762"}\n{"id":2}\n',
        '{"a":1}\n',
        "{}\n",
        '\n{"type":"index-pattern"}',
    ],
)
def test_json_lines_of_other_programs_stop_nothing(tmp_path: Path, text: str) -> None:
    assert _claimed_by(tmp_path, "export.ndjson", text) == set()


@pytest.mark.parametrize(
    "text",
    [
        '{"resourceType":"TOPIC"}\n',
        '{"principal":"User:a"}\n',
        '{"id":1}\n{"resourceType":"TOPIC","permissionType":"ALLOW"}\n',
        "no json\n",
        "[1]\n",
        "",
    ],
)
def test_json_lines_that_may_be_meant_as_rules_are_never_left_out(tmp_path: Path, text: str) -> None:
    assert _claimed_by(tmp_path, "rules.jsonl", text) == {AclsFormat.JSONL}


def test_values_of_helm_with_lists_of_operations_are_not_those_of_ksm(tmp_path: Path) -> None:
    values = "nameOverride: ''\nimage: {tag: a}\nauth: {sasl: {topics: []}}\nrbac: {app: {topics: [read]}}\n"
    assert _claimed_by(tmp_path, "values.yaml", values) == set()
