"""Checkouts of repositories that keep rules as code: lists, lints and reviews of commits beside a plain expander.

Each directory in a directory is a checkout. The expander reads two formats anew: KafkaUsers of Strimzi as plain YAML,
and `kafka_acl` blocks of Terraform whose values are literals, also those of local modules whose arguments are literals
or names of topics. It checks, and exits with 1 if one fails:

- exit code 2 only for a file that can hold rules, or where no file is of a known format;
- each rule of the expander is a rule, and each of a KafkaUser is one of the expander's; or the file is unread;
- a review of a commit that changes the rules of the expander has a difference, or states what was not read.
"""

import argparse
import json
import os
import posixpath
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

import yaml
from attrs import define, field, frozen

from tests.support.cli.command import Result, aclog

Rule = tuple[str, ...]
"""Resource type, name, pattern type, principal, host, operation, permission type."""

# The expander.


class _Loader(yaml.SafeLoader):
    """Reads scalars of unknown tags as they are."""


def _plain(loader: _Loader, _: str, node: yaml.Node) -> object:
    return loader.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else None


_Loader.add_multi_constructor("", _plain)  # type: ignore[no-untyped-call]


def strimzi_rules(text: str) -> set[Rule]:
    """Return the rules of the KafkaUsers of a file; none of a document that is not YAML."""
    rules = set[Rule]()
    for part in re.split(r"(?m)^---(?:[ \t].*)?$", text):
        if "KafkaUser" not in part:
            continue
        try:
            document = yaml.load(part, _Loader)
        except yaml.YAMLError:
            continue
        items = document.get("items", [document]) if isinstance(document, Mapping) else []
        for user in items if isinstance(items, list) else ():
            if isinstance(user, Mapping) and user.get("kind") == "KafkaUser":
                with suppress(KeyError, TypeError, AttributeError):  # not as Strimzi has it: not judged
                    rules |= set(_of_user(user))
    return rules


def _of_user(user: Mapping[str, object]) -> Iterator[Rule]:
    metadata, spec = user.get("metadata"), user.get("spec")
    if user.get("apiVersion") not in ("kafka.strimzi.io/v1", "kafka.strimzi.io/v1beta2"):
        return
    if not isinstance(metadata, Mapping) or not isinstance(spec, Mapping):
        return
    authentication, authorization = spec.get("authentication") or {}, spec.get("authorization") or {}
    is_tls = isinstance(authentication, Mapping) and str(authentication.get("type")).startswith("tls")
    principal = f"User:CN={metadata['name']}" if is_tls else f"User:{metadata['name']}"
    for acl in authorization.get("acls") or () if isinstance(authorization, Mapping) else ():
        resource = acl["resource"]
        kind = {"topic": "TOPIC", "group": "GROUP", "cluster": "CLUSTER", "transactionalId": "TRANSACTIONAL_ID"}
        pattern = "PREFIXED" if resource.get("patternType") == "prefix" else "LITERAL"
        name = "kafka-cluster" if resource["type"] == "cluster" else resource["name"]
        pattern = "LITERAL" if resource["type"] == "cluster" else pattern
        for operation in acl.get("operations") or [acl["operation"]]:
            yield (
                *(kind[resource["type"]], name, pattern, principal, acl.get("host", "*")),
                *(re.sub(r"(?<!^)(?=[A-Z])", "_", operation).upper(), acl.get("type", "allow").upper()),
            )


_BLOCK = re.compile(r'(?ms)^resource\s+"kafka_acl"\s+"[^"]+"\s*\{\n(.*?)^\}')
_ATTRIBUTE = re.compile(r"^\s*(\w+)\s*=\s*(.+?)\s*$")
_LITERAL = re.compile(r'"((?:[^"\\$%]|\$(?!\{)|%(?!\{))*)"(?:\s*(?:#|//).*)?')
_EACH = re.compile(r"\$\{each\.(?:key|value)\}|\$\{count\.index\}")


def terraform_rules(text: str) -> set[Rule]:
    """Return the rules of the blocks whose values are literals, with `count` or `for_each` of literals."""
    return {rule for body in _BLOCK.findall(text) for rule in _of_block(body)}


def _of_block(body: str) -> Iterator[Rule]:
    values = {found[1]: found[2] for line in body.splitlines() if (found := _ATTRIBUTE.match(line))}
    count, each = values.pop("count", None), values.pop("for_each", None)
    keys = [""]
    if count is not None:
        keys = [str(number) for number in range(int(count))] if count.isdigit() else []
    if each is not None:
        listed = re.fullmatch(r"toset\(\[([^\[\]]*)\]\)", each)
        keys = re.findall(r'"([^"\\$%]+)"', listed[1]) if listed is not None else []
    names = ("resource_type", "resource_name", "acl_principal", "acl_host", "acl_operation", "acl_permission_type")
    pattern = "resource_pattern_type_filter"
    for key in dict.fromkeys(keys):
        texts = {}
        for name in (*names, pattern):
            own = values.get(name, '"Literal"' if name == pattern else "")
            own = own.replace("each.key", f'"{key}"') if own in ("each.key", "each.value") else own
            own = re.sub(r"^each\.value$", f'"{key}"', own)
            found = _LITERAL.fullmatch(_EACH.sub(lambda _, key=key: key, own))
            if found is None:
                return
            texts[name] = found[1]
        kind, name, principal, host, operation, permission = (texts[each] for each in names)
        words = (re.sub(r"(?<=[a-z])(?=[A-Z])", "_", each).upper() for each in (texts[pattern], operation, permission))
        own_pattern, own_operation, own_permission = words
        kind = re.sub(r"(?<=[a-z])(?=[A-Z])|_", "_", kind).upper().replace("__", "_")
        yield kind, name, own_pattern, principal, host, own_operation, own_permission


# Calls of local modules: literals, lists of them, and names of topics of the caller.


_Value = str | list[str]

_CALL = re.compile(r'(?ms)^module\s+"[^"]+"\s*\{\n(.*?)^\}')
_TOPIC = re.compile(r'(?ms)^resource\s+"kafka_topic"\s+"([^"]+)"\s*\{\n\s*name\s*=\s*"([^"$%]+)"')
_VARIABLE = re.compile(r'(?ms)^variable\s+"([^"]+)"\s*\{\n(.*?)^\}')
_LOCALS = re.compile(r"(?ms)^locals\s*\{\n(.*?)^\}")
_ASSIGNED = re.compile(r"(?m)^\s*(\w+)\s*=\s*(\[[^\]]*\]|.+?)\s*$")
_COMMENT = re.compile(r"(?m)(?:^|(?<=[\s,\[]))(?:#|//).*$")
_ITEM = re.compile(r'"([^"\\$%]*)"|\(*([\w.-]+)\)*')
_REFERENCE = re.compile(r"\$\{([\w.-]+)\}")


def _value(text: str, names: Mapping[str, _Value]) -> _Value | None:
    """Return the value of an expression; None: it is more than a literal, a list, or a reference to a known name."""
    text = text.strip()
    if text.startswith("["):
        items = [each.strip() for each in text[1:-1].split(",") if each.strip()]
        found = [_ITEM.fullmatch(each) for each in items]
        values = [None if each is None else each[1] if each[2] is None else names.get(each[2]) for each in found]
        return [each for each in values if isinstance(each, str)] if all(isinstance(v, str) for v in values) else None
    if text.startswith('"'):
        whole = _REFERENCE.sub(lambda found: str(names.get(found[1], found[0])), text[1:-1])
        return None if '"' in whole or "${" in whole or "%{" in whole or "\\" in whole else whole
    return names.get(text.strip("()"))


def _assigned(body: str) -> dict[str, str]:
    return {found[1]: found[2] for found in _ASSIGNED.finditer(_COMMENT.sub("", body))}


def module_rules(files: Mapping[str, str]) -> dict[str, set[Rule]]:
    """Return the rules of the calls in each file, by its path; none of a call that has other values."""
    result, modules = {}, dict[str, str]()
    topics, directories = dict[str, dict[str, _Value]](), {posixpath.dirname(path) for path in files}
    for directory in directories:
        own = [text for path, text in files.items() if posixpath.dirname(path) == directory]
        modules[directory] = "\n".join(own)
        topics[directory] = {f"kafka_topic.{name}.name": topic for text in own for name, topic in _TOPIC.findall(text)}
    for path, text in files.items():
        directory, rules = posixpath.dirname(path), set[Rule]()
        for body in _CALL.findall(text):
            arguments = _assigned(body)
            source = arguments.pop("source", "").strip('"')
            module = posixpath.normpath(posixpath.join(directory, source))
            if source.startswith(".") and module in modules and not {"for_each", "count"} & set(arguments):
                rules |= _of_call(modules[module], arguments, topics[directory])
        if rules:
            result[path] = rules
    return result


def _of_call(module: str, arguments: Mapping[str, str], around: Mapping[str, _Value]) -> set[Rule]:
    names = dict[str, _Value]()
    own: _Value | None
    for name, body in _VARIABLE.findall(module):
        own = _value(arguments[name], around) if name in arguments else _value(_assigned(body).get("default", ""), {})
        if own is not None:
            names[f"var.{name}"] = own
    for body in _LOCALS.findall(module):
        for name, text in _assigned(body).items():
            own = _value(text, names)
            if own is not None:
                names[f"local.{name}"] = own
    rules = set[Rule]()
    for body in _BLOCK.findall(module):
        values = _assigned(body)
        each = values.pop("for_each", '["one"]')
        keys = _value(re.sub(r"^toset\((.*)\)$", r"\1", each), names)
        if "count" in values or not isinstance(keys, list):
            continue
        for key in keys:
            local = {**names, "each.key": key, "each.value": key}
            texts = {name: _value(text, local) for name, text in values.items()}
            if all(isinstance(text, str) for text in texts.values()):
                rules |= set(_of_block("\n".join(f'{name} = "{text}"' for name, text in texts.items())))
    return rules


@frozen(kw_only=True)
class _Expanded:
    """What the expander makes of a tree, by file."""

    strimzi: Mapping[str, set[Rule]]
    terraform: Mapping[str, set[Rule]]
    calls: Mapping[str, set[Rule]]
    """The rules of calls of local modules; of a whole tree only."""

    @staticmethod
    def of(files: Mapping[str, str]) -> "_Expanded":
        return _Expanded(
            strimzi={path: strimzi_rules(text) for path, text in files.items() if path.endswith((".yaml", ".yml"))},
            terraform={path: terraform_rules(text) for path, text in files.items() if path.endswith(".tf")},
            calls=module_rules({path: text for path, text in files.items() if path.endswith(".tf")}),
        )

    def every(self) -> set[tuple[str, Rule]]:
        return {
            (path, rule) for each in (self.strimzi, self.terraform) for path, rules in each.items() for rule in rules
        }


# The checkouts.


_MARKS = re.compile(r"(?i)kafka\W*user|acls?\b|_acl|principal|roles|services:|users:|AccessControlEntry|module ")


@define
class _Checkout:
    """One repository, and what was seen of it."""

    path: Path
    """Its root, or the directory in it that is read."""
    name: str = ""
    rules: int = 0
    judged: int = 0
    unread: int = 0
    code: int = 0
    findings: int = 0
    clusters: int = 0
    seconds: float = 0.0
    reviews: Counter[str] = field(factory=Counter)
    faults: list[str] = field(factory=list)

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.path), *arguments]
        return subprocess.run(command, check=True, capture_output=True).stdout.decode(errors="replace")

    def visible(self) -> dict[str, str]:
        """Return the text of each file that is not hidden."""
        return {
            path.relative_to(self.path).as_posix(): path.read_text(encoding="utf-8", errors="replace")
            for path in self.path.rglob("*")
            if path.suffix in (".yaml", ".yml", ".tf")
            and path.is_file()
            and not any(part.startswith(".") for part in path.relative_to(self.path).parts)
        }

    def survey(self) -> None:
        """List and lint the rules at the root, and compare them with the expander's."""
        expanded = _Expanded.of(self.visible())
        begin = time.process_time()
        listed = aclog("acls", "list", "--acls", ".", "--format", "jsonl")
        linted = aclog("lint", "--acls", ".", "--format", "jsonl", "--fail-on", "never")
        self.seconds, self.code = time.process_time() - begin, listed.code
        if listed.code == 2:
            self._judge_refusal(listed, expanded)
            return
        rows = [json.loads(line) for line in listed.lines if line]
        findings = [json.loads(line) for line in linted.lines if line]
        unread = {each["file"] for each in findings if "unread" in each}
        self.rules, self.findings = len(rows), sum("lint" in each for each in findings)
        self.unread = len(findings) - self.findings
        self.clusters = len({each.get("cluster") for each in findings})
        rules = {_rule(each) for each in rows}
        for path, own in (*expanded.strimzi.items(), *expanded.terraform.items(), *expanded.calls.items()):
            self.judged += len(own)
            missing = own - rules
            if missing and not any(path == each or path.startswith(f"{each}/") for each in unread):
                self.faults.append(f"{path}: {len(missing)} rules are missing: {min(missing)}")
        every = {rule for own in expanded.strimzi.values() for rule in own}
        for each in rows:
            if each["file"] in expanded.strimzi and _rule(each) not in every and expanded.strimzi[each["file"]]:
                self.faults.append(f"{each['file']}:{each['line']}: not a rule of the expander: {_rule(each)}")

    def _judge_refusal(self, listed: Result, expanded: _Expanded) -> None:
        message = listed.complaint
        if "no file of rules is read" in message:
            return
        if "of a known format" in message:
            if any(rules for each in (expanded.strimzi, expanded.terraform) for rules in each.values()):
                self.faults.append(f"no format, but the expander has rules: {message[:200]}")
            return
        file = self.path / message.split(":")[0]
        if not file.is_file() or not _MARKS.search(file.read_text(encoding="utf-8", errors="replace")):
            self.faults.append(f"exit code 2: {message[:200]}")

    def commits(self, most: int) -> list[str]:
        """Return the newest commits that change a line with a mark of a rule."""
        marks = "KafkaUser|kafka_acl|confluent_kafka_acl|acl_principal|principal|operations:|patternType"
        try:
            text = self.git("log", "--no-merges", "--format=%H", "-E", f"-G{marks}", f"-n{most * 3}", "--", *_PATHS)
        except subprocess.CalledProcessError:  # a snapshot without some of its blobs
            self.reviews["history not whole"] += 1
            return []
        return [each for each in text.split() if self.git("rev-list", "--parents", "-n1", each).count(" ") == 1][:most]

    def review(self, commit: str) -> None:
        """Review a commit, and compare the verdict with the expander's."""
        found = aclog(
            "review", ".", "--base", f"{commit}~1", "--head", commit, "--format", "jsonl", "--fail-on", "never"
        )
        changed = self.git("diff", "--name-only", f"{commit}~1", commit).splitlines()
        expanded = [_Expanded.of(self._contents(f"{commit}{end}", changed)).every() for end in ("~1", "")]
        before, after = ({rule for _, rule in side} for side in expanded)
        if found.code == 2:
            self.reviews["refused"] += 1
            self._judge_refused_review(commit, found.complaint)
            return
        rows = [json.loads(line) for line in found.lines if line]
        kinds = Counter(each["kind"] for each in rows)
        outcome = "differences" if kinds["difference"] else "unread" if kinds["unread"] else "no effective change"
        self.reviews[outcome] += 1
        gone = sorted(each for each in before ^ after if not _is_covered(each, before & after))[:1]
        if gone and outcome == "no effective change":
            self.faults.append(f"{commit[:10]}: the expander's rules change, and the review has no change: {gone}")

    def _judge_refused_review(self, commit: str, message: str) -> None:
        """Check that a file that can hold rules, on the side that is named, is why a review was refused."""
        side, _, rest = message.partition(":") if message.startswith(commit) else (commit, "", message)
        text = self._contents(side, [rest.split(":")[0].removeprefix("./")])
        is_of_rules = any(map(_MARKS.search, (message, *text.values())))
        if "of a known format" not in message and not is_of_rules:
            self.faults.append(f"{commit[:10]}: exit code 2: {message[:240]}")

    def _contents(self, commit: str, paths: list[str]) -> dict[str, str]:
        texts = {}
        for path in paths:
            if path.endswith((".yaml", ".yml", ".tf")) and not any(each.startswith(".") for each in path.split("/")):
                try:
                    texts[path] = self.git("show", f"{commit}:{path}")
                except subprocess.CalledProcessError:
                    continue
        return texts


_PATHS = ("*.yaml", "*.yml", "*.tf", "*.tfvars", "*.csv", "*.json", "*.sh")


def _is_covered(rule: Rule, others: Iterable[Rule]) -> bool:
    """Return whether another rule of the principal allows or denies as much: a change of the rule has no effect."""
    kind, name, pattern, principal, host, operation, permission = rule
    for other_kind, other_name, other_pattern, *rest, other_operation, other_permission in others:
        is_same = (other_kind, rest[0], other_permission) == (kind, principal, permission)
        is_any = other_pattern == "LITERAL" and other_name == "*"
        is_prefix = other_pattern == "PREFIXED" and name.startswith(other_name)
        reaches = is_any or is_prefix or (other_name, other_pattern) == (name, pattern)
        if is_same and reaches and rest[1] in ("*", host) and other_operation in ("ALL", operation):
            return True
    return False


def _rule(row: Mapping[str, str]) -> Rule:
    keys = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")
    return tuple(row[key] for key in keys)


def main() -> int:
    """Run it, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--commits", type=int, default=10, help="reviewed commits of each checkout")
    parser.add_argument("--only", default="")
    parser.add_argument("--below", default=".", help="a directory of each checkout, instead of its root")
    options = parser.parse_args()
    checkouts = []
    tops = sorted(
        each for each in options.directory.iterdir() if (each / ".git").exists() and options.only in each.name
    )
    for path in (each.resolve() / options.below for each in tops if (each / options.below).is_dir()):
        checkout = _Checkout(path, name=path.relative_to(path.parents[len(Path(options.below).parts)]).as_posix())
        checkouts.append(checkout)
        os.chdir(path)
        try:
            checkout.survey()
            for commit in islice(checkout.commits(options.commits), options.commits):
                checkout.review(commit)
                print(f"\r{checkout.name}: {dict(checkout.reviews)}", end="", file=sys.stderr, flush=True)
        except Exception as error:  # noqa: BLE001 - one checkout must not end the others
            checkout.faults.append(f"{type(error).__name__}: {error}")
        print(_row(checkout), flush=True)
        for fault in checkout.faults:
            print(f"    FAULT {fault}", flush=True)
    reviews = Counter[str]()
    for each in checkouts:
        reviews.update(each.reviews)
    print(
        f"{len(checkouts)} repositories, {sum(each.rules for each in checkouts):,} rules, "
        f"{sum(each.judged for each in checkouts):,} by the expander, {sum(each.unread for each in checkouts)} unread "
        f"objects; reviews: {dict(reviews)}; faults: {sum(len(each.faults) for each in checkouts)}"
    )
    return 1 if any(each.faults for each in checkouts) else 0


def _row(each: _Checkout) -> str:
    reviews = ", ".join(f"{number} {what}" for what, number in sorted(each.reviews.items()))
    name = each.name.replace("+", "/")
    return (
        f"{name:60} exit {each.code} rules {each.rules:5} judged {each.judged:5} unread {each.unread:4} "
        f"findings {each.findings:4} clusters {each.clusters:3} {each.seconds:5.1f} s  {reviews}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
