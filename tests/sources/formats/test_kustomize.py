"""KafkaUsers that kustomizations change are unread; others are read as the file states them."""

from pathlib import Path

import pytest

from tests.support.sources.files_of_rules import ONE_RULE, read_rules, write_files

USER = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata: {name: app, namespace: k, labels: {strimzi.io/cluster: c}}
spec:
  authentication: {type: tls}
  authorization: {type: simple, acls: [{resource: {type: topic, name: orders}, operations: [Read]}]}
"""
READ = "ALLOW READ TOPIC orders to User:CN=app"
_OPERATIONS = "[{op: replace, path: /spec/authorization/acls/0/operations, value: [All]}]"
_MERGE = "apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaUser\nmetadata: {name: app}\nspec: {quotas: {}}\n"


def _read(directory: Path, files: dict[str, str]) -> tuple[bool, list[str]]:
    """Return whether the user's rule is read, and what is not."""
    found = read_rules(write_files(directory, {"zz.jsonl": ONE_RULE, **files}))
    assert {each for each in found.rules if "one" not in each} <= {READ}
    return READ in found.rules, [
        f"{Path(each.file).relative_to(directory)}:{each.line} {each.name}" for each in found.unread
    ]


_CHANGES = {
    "patches by group": "patches:\n- target: {group: kafka.strimzi.io}\n  patch: |\n    - {op: remove, path: /spec}\n",
    "patches by kind": f"patches:\n- target: {{kind: KafkaUser}}\n  patch: '{_OPERATIONS}'\n",
    "patches by a pattern of kinds": "patches:\n- target: {kind: Kafka.*}\n  path: p.yaml\n",
    "patches by name": "patches:\n- target: {name: app}\n  path: p.yaml\n",
    "patches by label": "patches:\n- target: {labelSelector: a=b}\n  path: p.yaml\n",
    "patches without a target": "patches:\n- path: p.yaml\n",
    "patches that are missing": "patches:\n- path: nowhere.yaml\n",
    "patchesStrategicMerge": "patchesStrategicMerge: [p.yaml]\n",
    "patchesJson6902": "patchesJson6902:\n- target: {version: v1beta2, kind: KafkaUser, name: app}\n  path: p.yaml\n",
    "namePrefix": "namePrefix: prod-\n",
    "nameSuffix": "nameSuffix: -prod\n",
    "replacements": "replacements:\n- source: {kind: ConfigMap, name: a}\n  targets: [{select: {kind: KafkaUser}}]\n",
    "vars": "vars:\n- name: X\n",
    "transformers": "transformers: [t.yaml]\n",
}


_PATCHED = "patches: [{target: {kind: KafkaUser}, patch: '[]'}]"
_DEPLOYERS = {
    f"Kustomization of Flux with {text}": f"kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nspec: {{{text}}}\n"
    for text in (
        *("namePrefix: a", "nameSuffix: a", _PATCHED, "patches: [{patch: '[]'}]", "components: [c]"),
        "postBuild: {substitute: {a: b}}",
    )
}
_DEPLOYERS |= {
    "Application": f"argoproj.io/v1alpha1\nkind: Application\nspec: {{source: {{kustomize: {{{_PATCHED}}}}}}}\n",
    "Application of several": "argoproj.io/v1alpha1\nkind: Application\n"
    "spec: {sources: [{kustomize: {namePrefix: a-}}]}\n",
    "ApplicationSet": "argoproj.io/v1alpha1\nkind: ApplicationSet\n"
    "spec: {template: {spec: {source: {kustomize: {nameSuffix: -a}}}}}\n",
    "HelmRelease": "helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\n"
    f"spec: {{postRenderers: [{{kustomize: {{{_PATCHED}}}}}]}}\n",
}


@pytest.mark.parametrize("name", _DEPLOYERS)
def test_what_changes_kafka_users_when_they_are_deployed_is_unread(tmp_path: Path, name: str) -> None:
    files = {"user.yaml": USER, "deploy.yaml": f"apiVersion: {_DEPLOYERS[name]}"}
    assert _read(tmp_path, files) == (True, [f"deploy.yaml:3 {name.partition(' ')[0]}"])


@pytest.mark.parametrize("text", ["namePrefix: ''", "patches: [{target: {kind: Deployment}, patch: '[]'}]", "path: a"])
def test_what_changes_nothing_of_kafka_users_when_they_are_deployed_is_counted(tmp_path: Path, text: str) -> None:
    text = f"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nspec: {{{text}}}\n"
    assert _read(tmp_path, {"user.yaml": USER, "deploy.yaml": text}) == (True, [])


@pytest.mark.parametrize("name", _CHANGES)
def test_a_kafka_user_that_a_kustomization_changes_is_unread(tmp_path: Path, name: str) -> None:
    text = "resources: [user.yaml]\n" + _CHANGES[name]
    is_read, unread = _read(tmp_path, {"kustomization.yaml": text, "user.yaml": USER, "p.yaml": _MERGE})
    line = 3 if name.startswith("patches") and "\n- " in text else 2
    assert (is_read, unread) == (False, [f"kustomization.yaml:{line} {name.split(maxsplit=1)[0]}"])


@pytest.mark.parametrize(
    "text",
    [
        "namespace: kafka\n",
        "namePrefix: ''\nreplacements: []\n",
        "labels:\n- pairs: {a: b}\n",
        "commonAnnotations: {a: b}\n",
        "images: [{name: a, newTag: b}]\n",
        "patches:\n- target: {kind: Deployment}\n  path: p.yaml\n",
        "patches:\n- target: {group: apps}\n  path: p.yaml\n",
        "patches:\n- patch: |\n    apiVersion: v1\n    kind: Service\n    metadata: {name: app}\n",
        "configMapGenerator: [{name: a, literals: [a=b]}]\n",
        "patchesJson6902:\n- target: {version: v1, kind: Service, name: app}\n  path: p.yaml\n",
    ],
)
@pytest.mark.parametrize("file", ["kustomization.yaml", "kustomization.yml", "Kustomization"])
def test_a_kafka_user_that_no_kustomization_changes_is_read(tmp_path: Path, text: str, file: str) -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: app}\n"
    files = {f"k/{file}": "resources:\n- user.yaml\n" + text, "k/user.yaml": USER, "k/p.yaml": service}
    assert _read(tmp_path, files) == (True, [])


@pytest.mark.parametrize("text", ["namePrefix: x-\npatches: [\n", "{{ if .Values.x }}\nnamePrefix: x-\n"])
def test_a_kustomization_that_is_not_yaml_is_unread(tmp_path: Path, text: str) -> None:
    files = {"kustomization.yaml": "resources: [user.yaml]\n" + text, "user.yaml": USER}
    _, unread = _read(tmp_path, files)
    assert [each.partition(":")[0] for each in unread] == ["kustomization.yaml"]


_BASE = {"base/kustomization.yaml": "resources: [user.yaml]\n", "base/user.yaml": USER}


def test_a_base_is_read_if_one_overlay_takes_it_as_it_is(tmp_path: Path) -> None:
    files = {
        **_BASE,
        "overlays/test/kustomization.yaml": "resources: [../../base]\n",
        "overlays/prod/kustomization.yaml": "resources:\n- ../../base\nnamePrefix: prod-\n",
    }
    assert _read(tmp_path, files) == (True, ["overlays/prod/kustomization.yaml:3 namePrefix"])
    (tmp_path / "overlays" / "test" / "kustomization.yaml").unlink()
    assert _read(tmp_path, {}) == (False, ["overlays/prod/kustomization.yaml:3 namePrefix"])


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_a_change_counts_at_any_depth(tmp_path: Path, depth: int) -> None:
    files = dict(_BASE)
    for level in range(depth):
        below = "../base" if level == 0 else f"../l{level - 1}"
        files[f"l{level}/kustomization.yaml"] = f"resources:\n- {below}\n" + "nameSuffix: -x\n" * (level == depth // 2)
    assert _read(tmp_path, files) == (False, [f"l{depth // 2}/kustomization.yaml:3 nameSuffix"])


_COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"


@pytest.mark.parametrize(
    ("component", "changes"),
    [
        ("namePrefix: c-\n", True),
        ("patches: [{target: {kind: KafkaUser}, patch: '[]'}]\n", True),
        ("commonAnnotations: {a: b}\n", False),
        ("patches: [{target: {kind: Service}, patch: '[]'}]\n", False),
        ("components: [../inner]\n", True),
        ("components: [../plain]\n", False),
        ("components: [../c]\n", True),
        ("components: [../nowhere]\n", True),
    ],
)
def test_a_component_changes_what_names_it(tmp_path: Path, component: str, changes: bool) -> None:
    files = {
        **_BASE,
        "prod/kustomization.yaml": "resources:\n- ../base\ncomponents:\n- ../c\n",
        "c/kustomization.yaml": _COMPONENT + component,
        "inner/kustomization.yaml": _COMPONENT + "nameSuffix: -x\n",
        "plain/kustomization.yaml": _COMPONENT + "labels: []\n",
    }
    is_read, unread = _read(tmp_path, files)
    assert is_read is not changes
    assert ("prod/kustomization.yaml:4 components" in unread) == changes


def test_components_are_unread(tmp_path: Path) -> None:
    files = {
        "kustomization.yaml": "components:\n- c\n",
        "c/kustomization.yaml": "kind: Component\nresources: [user.yaml]\n",
        "c/user.yaml": USER,
    }
    assert _read(tmp_path, files) == (False, ["kustomization.yaml:2 components"])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("resources:\n- https://example.com/base?ref=v1\n", "remote"),
        ("resources:\n- github.com/example/base\n", "remote"),
        ("resources:\n- git@example.com:base.git\n", "remote"),
        ("resources:\n- nowhere.yaml\n", "missing"),
        ("generators:\n- g.yaml\n", "generators"),
        ("helmCharts:\n- {name: a}\n", "helmCharts"),
    ],
)
def test_what_a_kustomization_takes_from_elsewhere_is_unread(tmp_path: Path, text: str, name: str) -> None:
    line = 2 if name in ("remote", "missing") else 1
    files = {"k/kustomization.yaml": text, "user.yaml": USER}
    assert _read(tmp_path, files) == (True, [f"k/kustomization.yaml:{line} {name}"])


def test_kafka_users_outside_of_the_directory_are_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = {**_BASE, "prod/kustomization.yaml": "resources:\n- ../base/user.yaml\n", "prod/z.jsonl": ONE_RULE}
    write_files(tmp_path, files)
    found = read_rules(Path("prod"))
    assert [(each.name, each.file, each.line) for each in found.unread] == [("outside", "prod/kustomization.yaml", 2)]
    assert READ not in found.rules


def test_kustomizations_that_multiply_end(tmp_path: Path) -> None:
    files = {"l0/kustomization.yaml": "resources: [user.yaml]\n", "l0/user.yaml": USER}
    for level in range(1, 30):
        files[f"l{level}/kustomization.yaml"] = f"resources: [../l{level - 1}, ../l{level - 1}/.]\n"
    assert _read(tmp_path, files) == (True, [])


def test_kustomizations_in_a_circle_end(tmp_path: Path) -> None:
    files = {
        "a/kustomization.yaml": "resources: [../b, user.yaml]\n",
        "b/kustomization.yaml": "resources: [../a]\n",
        "a/user.yaml": USER,
    }
    assert _read(tmp_path, files) == (True, [])
