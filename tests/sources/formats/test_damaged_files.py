"""Damaged files of each format: either one line that names the file, or rules, each with its place; nothing else."""

import re
from pathlib import Path
from random import Random

import pytest

from aclog.authorizer.codes import CLUSTER_NAME, WILDCARD, ResourceType
from aclog.authorizer.control import refusal
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.reading import read_tree
from aclog.sources.formats.rule import DirectoryTree, ReadContext, StatedRules
from tests.support.sources.damage import damaged
from tests.support.sources.samples import SAMPLES, Sample

_TIMES = 100
_AS_IN_A_LOG = (AclsFormat.JSONL, AclsFormat.KAFKA_ACLS, AclsFormat.RPK, AclsFormat.CONFLUENT, AclsFormat.TABLE)
"""Formats of states, which may hold rules that no Kafka creates."""


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.form} {sample.name}")
def test_a_damaged_file_is_refused_or_read(tmp_path: Path, sample: Sample) -> None:
    random = Random(f"{sample.form} {sample.name}")
    path = tmp_path / sample.name
    for _ in range(_TIMES):
        path.write_bytes(damaged(sample.text.encode(), random))
        found = _read(path, random.choice([AclsFormat.AUTO, sample.form]))
        if isinstance(found, str):
            assert re.match(re.escape(str(path)) + r":(( line )?\d+:)? \S[^\n]*\Z", found), path.read_bytes()
        else:
            _check(found, created=sample.form not in _AS_IN_A_LOG)


def _read(path: Path, form: AclsFormat) -> StatedRules | str:
    """Return the rules, or the message of the error."""
    try:
        return read_tree(ReadContext(tree=DirectoryTree(str(path)), topics=lambda: ["t"]), form).stated
    except ConfigError as error:
        return str(error)


def _check(stated: StatedRules, *, created: bool) -> None:
    for rule in stated.rules():
        assert stated.of(rule.acl)
        every_cluster = (rule.acl.resource_type, rule.acl.resource_name) == (ResourceType.CLUSTER, WILDCARD)
        if created and not every_cluster:  # which KSM makes, and older Kafkas take for the name of the cluster
            assert refusal(rule.acl) is None, rule.acl
        assert rule.acl.resource_type != ResourceType.CLUSTER or every_cluster or rule.acl.resource_name == CLUSTER_NAME
