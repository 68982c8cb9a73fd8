"""Charts of Helm: a file without a template whose resources may be in no cluster is unread, not rules."""

from pathlib import Path

import pytest

from tests.support.sources.files_of_rules import read_rules, refused, unread, write_files

_CHART = "apiVersion: v2\nname: %s\nversion: 1.0.0\n"
_DEPENDENCY = "dependencies:\n  - name: inner\n    version: 1.0.0\n    %s\n"
_USER = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: app}
spec:
  authorization: {type: simple, acls: [{resource: {type: topic, name: orders}, operations: [Read]}]}
"""
_OUTER, _INNER = {"c/Chart.yaml": _CHART % "outer"}, {"c/charts/inner/Chart.yaml": _CHART % "inner"}
_OF_INNER = {**_INNER, "c/charts/inner/templates/u.yaml": _USER}


def _with(dependency: str) -> dict[str, str]:
    return {"c/Chart.yaml": _CHART % "outer" + _DEPENDENCY % dependency, **_OF_INNER}


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({**_OUTER, "c/templates/_u.yaml": _USER}, "a partial of Helm"),
        ({"c/Chart.yaml": _CHART % "outer" + "type: library\n", "c/templates/u.yaml": _USER}, "a library chart"),
        (
            {**_OUTER, "c/templates/u.yaml": _USER, "c/.helmignore": "u.yaml\n"},
            "/.helmignore leaves the file out",
        ),
        (
            {**_OUTER, "c/templates/u.yaml": _USER, "c/.helmignore": "# docs\n!README.md\n"},
            "/.helmignore has a pattern with `!`",
        ),
        (
            {**_OUTER, **_OF_INNER, "c/.helmignore": " !templates/u.yaml\nu.yaml\n"},
            "/.helmignore has a pattern with `!`",
        ),
        ({**_OUTER, "c/files/u.yaml": _USER}, "only if a template reads it"),
        ({**_OUTER, "c/u.yaml": _USER}, "only if a template reads it"),
        ({**_OUTER, "c/charts/u.yaml": _USER}, "only if a template reads it"),
        ({**_OUTER, **_OF_INNER, "c/.helmignore": "charts/inner\n"}, "/.helmignore leaves the file out"),
        (
            _with("condition: inner.enabled"),
            "c/Chart.yaml:7: condition decides whether Helm renders",
        ),
        (_with("tags: [extra]"), "c/Chart.yaml:7: tags decides whether Helm renders the subchart inner"),
        (
            {**_OUTER, "c/requirements.yaml": _DEPENDENCY % "condition: inner.enabled", **_OF_INNER},
            "c/requirements.yaml:4: condition decides whether Helm renders the subchart inner",
        ),
    ],
)
def test_what_helm_may_not_render_is_unread(tmp_path: Path, files: dict[str, str], reason: str) -> None:
    (user,) = (path for path, text in files.items() if text == _USER)
    assert unread(tmp_path, files) == [f"{user}:1 template:helm"]
    found = read_rules(tmp_path)
    assert reason in found.unread[0].reason
    assert "orders" not in str(found.rules)


@pytest.mark.parametrize(
    "files",
    [
        {**_OUTER, "c/templates/u.yaml": _USER},
        {**_OUTER, "c/templates/deep/u.yaml": _USER, "c/.helmignore": "*.bak\n"},
        {**_OUTER, **_OF_INNER},
        _with("alias: other"),
        {**_OUTER, "c/crds/u.yaml": _USER},
        {**_OUTER, "c/crds/_examples/u.yaml": _USER},
        {**_OUTER, "u.yaml": _USER},
        {"c/templates/_u.yaml": _USER},
        {"Chart.yaml": "- no chart\n", "templates/u.yaml": _USER},
    ],
)
def test_what_helm_writes_as_it_is_is_read(tmp_path: Path, files: dict[str, str]) -> None:
    found = read_rules(write_files(tmp_path, files))
    assert (list(found.rules), found.unread) == (["ALLOW READ TOPIC orders to User:app"], [])


def test_a_file_of_a_chart_that_is_given_alone_is_read(tmp_path: Path) -> None:
    write_files(tmp_path, {**_OUTER, "c/templates/_u.yaml": _USER})
    assert list(read_rules(tmp_path / "c/templates/_u.yaml").rules) == ["ALLOW READ TOPIC orders to User:app"]


def test_a_directory_of_which_no_file_is_read_is_refused_with_the_reason(tmp_path: Path) -> None:
    message = refused(write_files(tmp_path, {**_OUTER, "c/templates/_u.yaml": _USER}))
    assert "no file of rules is read: " in message
    assert "c/templates/_u.yaml:1: template:helm not read: a partial of Helm" in message
