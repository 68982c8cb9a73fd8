"""Writes rules in a format."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from attrs import frozen

from aclog.authorizer.acl import StandardAcl
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.writers import (
    jikkou_yaml,
    kafka_acls_text,
    kafka_gitops_yaml,
    ksm_csv,
    strimzi_yaml,
    terraform_hcl,
)
from aclog.sources.formats.writers.holding import check_holds


@frozen
class Writer:
    """How one format is written."""

    unfit: Callable[[StandardAcl], str | None]
    """Returns why the format cannot hold a rule; None if it can."""
    lines: Callable[[Sequence[StandardAcl]], Iterable[str]]
    """The lines for rules that it can hold, in an order that depends on nothing but the rules."""


WRITERS: Mapping[AclsFormat, Writer] = MappingProxyType(
    {
        AclsFormat.KAFKA_ACLS: Writer(kafka_acls_text.unfit, kafka_acls_text.lines),
        AclsFormat.KSM: Writer(ksm_csv.unfit, ksm_csv.lines),
        AclsFormat.STRIMZI: Writer(strimzi_yaml.unfit, strimzi_yaml.lines),
        AclsFormat.TERRAFORM: Writer(terraform_hcl.unfit, terraform_hcl.lines),
        AclsFormat.KAFKA_GITOPS: Writer(kafka_gitops_yaml.unfit, kafka_gitops_yaml.lines),
        AclsFormat.JIKKOU: Writer(jikkou_yaml.unfit, jikkou_yaml.lines),
    }
)


def write_rules(form: AclsFormat, rules: Sequence[StandardAcl]) -> str:
    """Return a file of a format that states these rules and no others.

    Raises:
        UnfitError: the format cannot hold some of them.

    """
    writer = WRITERS[form]
    check_holds(form, rules, writer.unfit)
    return "".join(f"{line}\n" for line in writer.lines(rules))
