"""Which files are Kafka Security Manager's: CSV by its header, YAML by the resources of its users."""

from collections.abc import Iterator, Sequence

from aclog.sources.formats.ksm import csv_rules, yaml_rules
from aclog.sources.formats.located_rule import LocatedRule
from aclog.sources.formats.read_context import ReadContext
from aclog.sources.formats.source_file import SourceFile


def claims(file: SourceFile) -> bool:
    """Return whether a file is one of these.

    Raises:
        ConfigError: it may be and is not YAML; OSError: it cannot be read.

    """
    if _is_yaml(file):
        return file.mentions(*yaml_rules.MARKS) and yaml_rules.is_ksm(file.documents)
    return csv_rules.is_ksm(file)


def read(files: Sequence[SourceFile], context: ReadContext) -> Iterator[LocatedRule]:  # noqa: ARG001
    """Yield the rules of the files. KSM takes any file that is not named as YAML for CSV.

    Raises:
        ConfigError: a row or an entry that KSM refuses, or would leave out; with its file and line.
        OSError: a file cannot be read.

    """
    for file in files:
        nameless = "." not in file.base_name  # such as stdin
        is_yaml = _is_yaml(file) or (nameless and not csv_rules.is_ksm(file))
        yield from yaml_rules.rules(file) if is_yaml else csv_rules.rules(file)


def _is_yaml(file: SourceFile) -> bool:
    return file.has_suffix(".yml", ".yaml")
