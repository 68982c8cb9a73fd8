"""Random overlays, read as files beside what `kustomize build` makes of them: equal or unread, never different."""

import argparse
import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import yaml
from attrs import define, field

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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kustomize", type=Path, required=True)
    parser.add_argument("--overlays", type=int, default=100)
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
    print("\n".join(lines))
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
