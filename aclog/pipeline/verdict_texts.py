"""What every verdict stands for, as columns of Arrow: the decision, the rule as the audit log names it, its id."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from aclog.pipeline.judge.rule_spans import RULE_COLUMNS
from aclog.pipeline.judge.verdicts import ALLOWED, BASES, ERRORS, Verdict

TEXT_COLUMNS = ("decision", "rule", "rule_id")

_FIRST = int(min(Verdict))
_TEXT: Any = pa.large_string()
"""The texts of ten million rules are more than 2 GiB."""


@frozen(eq=False)
class VerdictTexts:
    """The columns TEXT_COLUMNS; row v - min(Verdict) is about verdict v."""

    table: pa.Table

    @classmethod
    def of_rules(cls, rules: pa.Table) -> "VerdictTexts":
        """Of the columns RULE_COLUMNS, in the order of the ordinals."""
        named = pa.table([_decisions(rules), _texts(rules), rules.column("id").cast(_TEXT)], names=list(TEXT_COLUMNS))
        return cls(pa.concat_tables([_without_rule(), named.cast(_without_rule().schema)]).combine_chunks())

    def of_verdicts(self, verdicts: "pa.Array[Any]") -> list[Any]:
        """A row for each of these verdicts, in text of at most 2 GiB a column: some ten thousand rows at a time."""
        rows = pc.subtract(verdicts, pa.scalar(_FIRST, pa.int32()))
        return [column.chunk(0).take(rows).cast(pa.string()) for column in self.table.columns]

    def numbered(self) -> pa.Table:
        """The table with the verdict of each row before the texts."""
        verdicts = pa.array(range(_FIRST, _FIRST + len(self.table)), pa.int32())
        return self.table.add_column(0, "verdict", verdicts)


def _without_rule() -> pa.Table:
    rows = []
    for code in range(_FIRST, 0):
        verdict = Verdict(code)
        decided = "ALLOWED" if verdict in ALLOWED else "DENIED"
        rows.append((decided, BASES[verdict]) if verdict in BASES else ("ERROR", ERRORS[verdict]))
    decisions, texts = zip(*rows, strict=True)
    columns: Any = [pa.array(decisions, _TEXT), pa.array(texts, _TEXT), pa.nulls(len(rows), _TEXT)]
    return pa.table(columns, names=list(TEXT_COLUMNS))


def _decisions(rules: pa.Table) -> Any:
    allows = pc.equal(rules.column("permissionType"), pa.scalar("ALLOW"))
    return pc.if_else(allows, pa.scalar("ALLOWED", _TEXT), pa.scalar("DENIED", _TEXT))


def _texts(rules: pa.Table) -> Any:
    """As the audit log names a rule (StandardAcl.toString)."""
    parts: list[Any] = []
    for name in RULE_COLUMNS[:-1]:
        head = f"{', ' if parts else 'MatchingAcl(acl=StandardAcl['}{name}="
        parts += [pa.scalar(head, _TEXT), rules.column(name).cast(_TEXT)]
    return pc.binary_join_element_wise(*parts, pa.scalar("])", _TEXT), pa.scalar("", _TEXT))
