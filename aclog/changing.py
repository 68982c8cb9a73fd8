"""`acls add` and `acls remove`: rules of a log, changed by its one writer, as kafka-acls.sh would."""

import secrets
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from aclog.acl_flags import EntryFlags, ResourceFlags
from aclog.acl_plan import Plan, filters_of, plan_to_add, plan_to_remove, rule_of
from aclog.kafka_text import adding, already_there, question
from aclog.notices import note
from aclog.writing import LogWriter, open_writer
from authorizer.control import create_acls, delete_acls
from authorizer.interface import AclCreateResult, AclDeleteResult
from metalog.codec import encode_record
from metalog.errors import ConfigError
from metalog.records import MetadataRecord
from metalog.uuids import random_uuid


def add_rules(directory: Path, resources: ResourceFlags, entries: EntryFlags, *, force: bool) -> None:
    """Add the rules that the flags name, all in one batch, and print what kafka-acls.sh prints.

    Raises:
        ConfigError: flags that do not go together.
        AclRequestError: a rule that Kafka's controller refuses; then none is added.
        LockedError, LogError, DecodeError: the log cannot be written, or is damaged.

    """
    plan = plan_to_add(resources, entries)
    with open_writer(directory, force=force) as writer:
        rules = [rule_of(pattern, entry) for pattern, listed in plan.items() for entry in listed]
        creation = create_acls(writer.image.acls, rules, lambda: random_uuid(secrets.token_bytes))
        _raise_first(creation.results)
        _tell_what_is_added(writer, plan)
        _append(writer, creation.records)


def _tell_what_is_added(writer: LogWriter, plan: Plan) -> None:
    for pattern, entries in plan.items():
        new = []
        for entry in entries:
            if writer.image.acls.find(rule_of(pattern, entry)) is None:
                new.append(entry)
            else:
                print(already_there(pattern, entry))
        if new:
            print(adding(pattern, new))


def remove_rules(directory: Path, resources: ResourceFlags, entries: EntryFlags, *, force: bool) -> None:
    """Remove the rules that the flags name, all in one batch; without `force`, after a `y` on stdin for each resource.

    Raises as add_rules; and ConfigError, if there is no answer.
    """
    plan = plan_to_remove(resources, entries)
    agreed = {pattern: listed for pattern, listed in plan.items() if force or _agrees(question(pattern, listed))}
    if not agreed:
        return
    with open_writer(directory, force=force) as writer:
        filters = [each for pattern, listed in agreed.items() for each in filters_of(pattern, listed)]
        deletion = delete_acls(writer.image.acls, filters)
        _raise_first(deletion.results)
        _append(writer, deletion.records)
    note(f"{len(deletion.records)} rule(s) removed")


def _agrees(text: str) -> bool:
    print(text, flush=True)
    answer = sys.stdin.readline()
    if not answer:
        raise ConfigError("no answer on stdin: nothing is removed; --force removes without asking")
    return answer.strip().lower() == "y"


def _append(writer: LogWriter, records: Sequence[MetadataRecord]) -> None:
    if records:
        writer.append([encode_record(record) for record in records])


def _raise_first(results: Iterable[AclCreateResult | AclDeleteResult]) -> None:
    for result in results:
        if result.error is not None:
            raise result.error
