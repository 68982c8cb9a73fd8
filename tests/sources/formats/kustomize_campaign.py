"""Random overlays, read as files beside what `kustomize build` makes of them: equal or unread, never different.

With `--overlays-of DIR`, the kustomizations in the checkouts of a directory are compared as well, those that Kustomize
builds offline: as they are, if they have a KafkaUser, and with a user of ours in each kustomization below them.
"""

import argparse
import json
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from random import Random

import yaml
from attrs import define, field

from aclog.metalog.errors import ConfigError
from aclog.sources.formats.verdicts import KUSTOMIZATIONS
from tests.support.sources.files_of_rules import ONE_RULE, read_rules, write_files

_GROUP = "kafka.strimzi.io"
_NAMES = ("app", "orders", "billing")
_OPERATIONS = ("Read", "Write", "Describe", "Alter", "All")


@define
class _Overlays:
    """The files of one case, by their paths, and the directories to build."""

    seed: int
    files: dict[str, object] = field(factory=dict)
    roots: list[str] = field(factory=list)
    features: Counter[str] = field(factory=Counter)
    draw: Random = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.draw = Random(self.seed)
        self._base("base", _NAMES[: self.draw.randint(1, 3)])
        below = "base"
        if self.draw.random() < 0.4:
            self._overlay("middle", below)
            below = "middle"
        for name in ("dev", "prod")[: self.draw.randint(1, 2)]:
            self._overlay(f"overlays/{name}", below)
            self.roots.append(f"overlays/{name}")

    def _user(self, name: str) -> dict[str, object]:
        acls = [
            {
                "resource": {"type": self.draw.choice(("topic", "group")), "name": self.draw.choice("tuv")},
                "operations": self.draw.sample(_OPERATIONS, self.draw.randint(1, 2)),
            }
            for _ in range(self.draw.randint(1, 2))
        ]
        return {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "KafkaUser",
            "metadata": {"name": name, "labels": {"strimzi.io/cluster": "c", "team": name}},
            "spec": {
                "authentication": {"type": self.draw.choice(("tls", "scram-sha-512"))},
                "authorization": {"type": "simple", "acls": acls},
            },
        }

    def _base(self, directory: str, names: tuple[str, ...]) -> None:
        users = [self._user(name) for name in names]
        match self.draw.randrange(3):
            case 0:
                each = {f"{user}.yaml": [value] for user, value in zip(names, users, strict=True)}
            case 1:
                each = {"users.yaml": users}
            case _:
                each = {"users.yaml": [{"apiVersion": "v1", "kind": "List", "items": users}]}
        others = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 1}}
        data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "names"}, "data": {"topic": "x"}}
        each["others.yaml"] = [others, data]
        for name, documents in each.items():
            self.files[f"{directory}/{name}"] = documents
        self.files[f"{directory}/kustomization.yaml"] = [{"resources": sorted(each)}]

    def _overlay(self, directory: str, below: str) -> None:
        up = "/".join([".."] * (directory.count("/") + 1))
        kustomization: dict[str, object] = {"resources": [f"{up}/{below}"]}
        names = _HARMLESS if self.draw.random() < 0.6 else list(_FEATURES)
        chosen = self.draw.sample(names, self.draw.choice((0, 1, 1, 1, 2, 3)))
        for name in chosen:
            _FEATURES[name](self, directory, kustomization)
            self.features[name] += 1
        self.files[f"{directory}/kustomization.yaml"] = [kustomization]


_Feature = Callable[[_Overlays, str, dict[str, object]], None]


def _fixed(key: str, value: object) -> _Feature:
    def add(_: _Overlays, __: str, kustomization: dict[str, object]) -> None:
        kustomization[key] = value

    return add


def _patch(target: Mapping[str, str]) -> _Feature:
    def add(case: _Overlays, directory: str, kustomization: dict[str, object]) -> None:
        operation = {"op": "replace", "path": "/spec/authorization/acls/0/operations", "value": ["All"]}
        text = json.dumps([operation])
        if case.draw.random() < 0.5:
            case.files[f"{directory}/patch.json"] = text
            patch = {"target": target, "path": "patch.json"}
        else:
            patch = {"target": target, "patch": text}
        kustomization.setdefault("patches", []).append(patch)  # type: ignore[attr-defined]

    return add


def _strategic(key: str) -> _Feature:
    def add(case: _Overlays, directory: str, kustomization: dict[str, object]) -> None:
        user = {"apiVersion": f"{_GROUP}/v1", "kind": "KafkaUser", "metadata": {"name": "app"}}
        case.files[f"{directory}/merge.yaml"] = [{**user, "spec": {"authentication": {"type": "tls-external"}}}]
        entry = "merge.yaml" if key == "patchesStrategicMerge" else {"path": "merge.yaml"}
        kustomization.setdefault(key, []).append(entry)  # type: ignore[attr-defined]

    return add


def _deployment_patch(_: _Overlays, __: str, kustomization: dict[str, object]) -> None:
    text = json.dumps([{"op": "replace", "path": "/spec/replicas", "value": 3}])
    kustomization.setdefault("patches", []).append(  # type: ignore[attr-defined]
        {"target": {"kind": "Deployment"}, "patch": text}
    )


def _component(case: _Overlays, directory: str, kustomization: dict[str, object]) -> None:
    text = json.dumps([{"op": "replace", "path": "/metadata/name", "value": "renamed"}])
    inner = case.draw.choice(
        (
            {"namePrefix": "c-"},
            {"patches": [{"target": {"kind": "KafkaUser", "name": "app"}, "patch": text}]},
            {"commonAnnotations": {"a": "b"}},
        )
    )
    head = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}
    case.files[f"{directory}/component/kustomization.yaml"] = [{**head, **inner}]
    kustomization["components"] = [*kustomization.get("components", ()), "component"]  # type: ignore[misc]


def _nested_component(case: _Overlays, directory: str, kustomization: dict[str, object]) -> None:
    head = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}
    inner = case.draw.choice(({"nameSuffix": "-inner"}, {"commonLabels": {"c": "d"}}))
    case.files[f"{directory}/outer/kustomization.yaml"] = [{**head, "components": ["../inner"]}]
    case.files[f"{directory}/inner/kustomization.yaml"] = [{**head, **inner}]
    kustomization["components"] = [*kustomization.get("components", ()), "outer"]  # type: ignore[misc]


def _json6902(_: _Overlays, __: str, kustomization: dict[str, object]) -> None:
    text = json.dumps([{"op": "remove", "path": "/spec/authorization"}])
    target = {"group": _GROUP, "version": "v1", "kind": "KafkaUser", "name": "app"}
    kustomization["patchesJson6902"] = [{"target": target, "patch": text}]


def _delete(case: _Overlays, directory: str, kustomization: dict[str, object]) -> None:
    user = {"$patch": "delete", "apiVersion": f"{_GROUP}/v1", "kind": "KafkaUser", "metadata": {"name": "app"}}
    case.files[f"{directory}/delete.yaml"] = [user]
    kustomization.setdefault("patches", []).append({"path": "delete.yaml"})  # type: ignore[attr-defined]


def _rename(_: _Overlays, __: str, kustomization: dict[str, object]) -> None:
    user = {"apiVersion": f"{_GROUP}/v1", "kind": "KafkaUser", "metadata": {"name": "renamed"}}
    patch = {"target": {"name": "app"}, "patch": json.dumps(user), "options": {"allowNameChange": True}}
    kustomization.setdefault("patches", []).append(patch)  # type: ignore[attr-defined]


def _replacement(_: _Overlays, __: str, kustomization: dict[str, object]) -> None:
    target = {
        "select": {"kind": "KafkaUser", "name": "app"},
        "fieldPaths": ["spec.authorization.acls.0.resource.name"],
    }
    source = {"kind": "ConfigMap", "name": "names", "fieldPath": "data.topic"}
    kustomization["replacements"] = [{"source": source, "targets": [target]}]


def _own_user(case: _Overlays, directory: str, kustomization: dict[str, object]) -> None:
    case.files[f"{directory}/own.yaml"] = [case._user(f"own-{directory.rpartition('/')[2]}")]
    kustomization["resources"] = [*kustomization["resources"], "own.yaml"]  # type: ignore[misc]


def _transformer(case: _Overlays, directory: str, kustomization: dict[str, object]) -> None:
    case.files[f"{directory}/prefix.yaml"] = [
        {
            "apiVersion": "builtin",
            "kind": "PrefixTransformer",
            "metadata": {"name": "p"},
            "prefix": "t-",
            "fieldSpecs": [{"path": "metadata/name"}],
        }
    ]
    kustomization["transformers"] = ["prefix.yaml"]


_FEATURES: dict[str, _Feature] = {
    "namePrefix": _fixed("namePrefix", "prod-"),
    "empty namePrefix": _fixed("namePrefix", ""),
    "nameSuffix": _fixed("nameSuffix", "-x"),
    "namespace": _fixed("namespace", "kafka"),
    "commonLabels": _fixed("commonLabels", {"a": "b"}),
    "labels": _fixed("labels", [{"pairs": {"a": "b"}, "includeSelectors": True}]),
    "commonAnnotations": _fixed("commonAnnotations", {"a": "b"}),
    "images": _fixed("images", [{"name": "web", "newTag": "2"}]),
    "replicas": _fixed("replicas", [{"name": "web", "count": 2}]),
    "configMapGenerator": _fixed("configMapGenerator", [{"name": "g", "literals": ["a=b"]}]),
    "buildMetadata": _fixed("buildMetadata", ["originAnnotations"]),
    "patch by kind": _patch({"kind": "KafkaUser"}),
    "patch by group": _patch({"group": _GROUP}),
    "patch by name": _patch({"name": "app"}),
    "patch by label": _patch({"labelSelector": "team=app"}),
    "patch by pattern": _patch({"kind": "Kafka.*"}),
    "patch without a target": _strategic("patches"),
    "patchesStrategicMerge": _strategic("patchesStrategicMerge"),
    "patch of a Deployment": _deployment_patch,
    "patch by version": _patch({"version": "v1"}),
    "patch by annotation": _patch({"annotationSelector": "a=b"}),
    "patch of a Deployment by a pattern": _patch({"kind": "Deploy(ment)?", "name": "none"}),
    "patchesJson6902": _json6902,
    "patch that deletes": _delete,
    "patch that changes names": _rename,
    "sortOptions": _fixed("sortOptions", {"order": "fifo"}),
    "generatorOptions": _fixed("generatorOptions", {"disableNameSuffixHash": True}),
    "component": _component,
    "component of a component": _nested_component,
    "replacement": _replacement,
    "user of its own": _own_user,
    "transformer": _transformer,
}


_HARMLESS = [
    *("empty namePrefix", "namespace", "commonLabels", "labels", "commonAnnotations", "images", "replicas"),
    *("configMapGenerator", "buildMetadata", "patch of a Deployment", "user of its own", "sortOptions"),
]
"""What changes no rule of a user in the base."""


def _write(directory: Path, files: Mapping[str, object]) -> None:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump_all(content, sort_keys=False))


def _built(kustomize: Path, directory: Path, root: str) -> set[str]:
    """Return the rules in what `kustomize build` writes. Raises CalledProcessError: it refuses the overlay."""
    done = subprocess.run([kustomize, "build", directory / root], capture_output=True, check=True)
    output = directory.parent / f"built-{root.replace('/', '-')}.yaml"
    output.write_bytes(done.stdout)
    return set(read_rules(output).rules) if b"KafkaUser" in done.stdout else set()


# Overlays of checkouts.


def _closure(top: Path, directory: Path) -> set[Path]:
    """Return the directories of a kustomization and those below it. Raises ValueError: one is not in the checkout."""
    seen, pending = set[Path](), [directory]
    while pending:
        each = pending.pop().resolve()
        if each in seen:
            continue
        if not each.is_relative_to(top):
            raise ValueError(each)
        seen.add(each)
        for name in KUSTOMIZATIONS:
            text = (each / name).read_text(errors="replace") if (each / name).is_file() else ""
            for entry in re.findall(r"(?m)^\s*-\s+[\"']?(\.{0,2}[\w./@-]+)[\"']?\s*$", text):
                pending.extend([each / entry] if (each / entry).is_dir() else ())
    return seen


def _copied(top: Path, directories: set[Path], copy: Path) -> None:
    for each in sorted(directories):
        (copy / each.relative_to(top)).mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-r", "--", f"{each}/.", copy / each.relative_to(top)], check=True)


_OWN = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: added-NUMBER, labels: {strimzi.io/cluster: c}}
spec:
  authentication: {type: tls}
  authorization: {type: simple, acls: [{resource: {type: topic, name: added}, operations: [Read]}]}
"""


def _with_users(copy: Path, directories: Iterable[Path]) -> bool:
    """Add a user to each of the kustomizations whose resources are files only; return whether there is one."""
    added = 0
    for file in sorted(copy / each / name for each in directories for name in KUSTOMIZATIONS):
        try:
            kustomization = yaml.safe_load(file.read_text())
            resources = kustomization.get("resources") or []
        except (OSError, yaml.YAMLError, AttributeError, UnicodeDecodeError):
            continue
        if kustomization.get("kind") == "Component" or any((file.parent / each).is_dir() for each in resources):
            continue
        (file.parent / "added-user.yaml").write_text(_OWN.replace("NUMBER", str(added)))
        kustomization["resources"] = [*resources, "added-user.yaml"]
        file.write_text(yaml.safe_dump(kustomization, sort_keys=False))
        added += 1
    return added > 0


def _public(kustomize: Path, checkouts: Path, most: int) -> Iterator[str]:
    """Compare overlays of checkouts, at most so many of each one. Raises AssertionError: one differs."""
    results, repositories, keys = Counter[str](), set[str](), Counter[str]()
    for checkout in sorted(each.resolve() for each in checkouts.iterdir() if (each / ".git").exists()):
        files = sorted(each for name in KUSTOMIZATIONS for each in checkout.rglob(name))
        Random(checkout.name).shuffle(files)
        compared = 0
        for file in files:
            try:
                directories = _closure(checkout, file.parent)
            except ValueError:
                continue
            if compared == most or sum(1 for each in directories for _ in each.rglob("*")) > 300:
                continue
            for is_added in (False, True):
                outcome = _compared_overlay(kustomize, checkout, file, directories, is_added=is_added)
                if outcome is None:
                    continue
                results[f"{outcome}{' with a user of ours' if is_added else ''}"] += 1
                compared += outcome != "refused"
                repositories.add(checkout.name)
                if outcome != "refused":
                    keys.update(list(yaml.safe_load(file.read_text()) or ()))
    figures = ", ".join(f"{number} {what}" for what, number in sorted(results.items()))
    yield f"overlays of {len(repositories)} checkouts beside `kustomize build`: {figures}; 0 different"
    yield f"keys of these overlays: {', '.join(f'{key} {number}' for key, number in sorted(keys.items()))}"


def _compared_overlay(
    kustomize: Path, checkout: Path, file: Path, directories: set[Path], *, is_added: bool
) -> str | None:
    with tempfile.TemporaryDirectory() as name:
        copy, root = Path(name).resolve() / "repository", file.parent.relative_to(checkout)
        _copied(checkout, directories, copy)
        if is_added and not _with_users(copy, (each.relative_to(checkout) for each in directories)):
            return None
        if not any("KafkaUser" in each.read_text(errors="replace") for each in copy.rglob("*.y*ml") if each.is_file()):
            return None
        (copy / "one.jsonl").write_text(ONE_RULE)
        try:
            built, read = _built(kustomize, copy, str(root)), read_rules(copy)
        except subprocess.CalledProcessError:
            return "refused"
        except ConfigError as error:
            return None if str(error).partition(":")[0].endswith(".tf") else f"refused by aclog ({error})"
        extra, missing = set(read.rules) - built - {"ALLOW READ TOPIC one to User:one"}, built - set(read.rules)
        assert not any(" TOPIC added " in each for each in extra), (file, extra)
        assert not missing or read.unread, (file, missing)
        outcome = "unread" if read.unread else "equal"
        return f"{outcome} beside users that no kustomization takes" if extra else outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kustomize", type=Path, required=True)
    parser.add_argument("--overlays", type=int, default=100)
    parser.add_argument("--overlays-of", type=Path, help="a directory of checkouts")
    parser.add_argument("--most", type=int, default=10, help="overlays of each checkout")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results, features, seed = Counter[str](), Counter[str](), 0
    with tempfile.TemporaryDirectory() as name:
        one = set(read_rules(write_files(Path(name), {"one.jsonl": ONE_RULE})).rules)
    while results["equal"] + results["unread"] < options.overlays:
        case, seed = _Overlays(seed), seed + 1
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name) / "repository"
            _write(directory, {**case.files, "one.jsonl": ONE_RULE})  # a directory without a rule is refused
            try:
                built = set[str]().union(*(_built(options.kustomize, directory, root) for root in case.roots))
            except subprocess.CalledProcessError:
                results["refused"] += 1
                continue
            read = read_rules(directory)
        extra, missing = set(read.rules) - built - one, built - set(read.rules)
        assert not extra, (case.seed, case.files, extra)
        assert not missing or read.unread, (case.seed, case.files, missing)
        results["unread" if read.unread else "equal"] += 1
        results["with all rules"] += bool(read.unread and not missing)
        features += case.features
    figures = (
        f"{results['equal']} equal, {results['unread']} unread (of these, {results['with all rules']} with all rules), "
        f"0 different; {results['refused']} more that Kustomize refuses"
    )
    lines = [
        f"{options.overlays} random overlays beside `kustomize build`: {figures}",
        f"features: {', '.join(f'{name} {number}' for name, number in sorted(features.items()))}",
    ]
    if options.overlays_of is not None:
        lines += _public(options.kustomize.resolve(), options.overlays_of, options.most)
    print("\n".join(lines))
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
