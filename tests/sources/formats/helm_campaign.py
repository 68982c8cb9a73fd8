"""Random charts, read as files beside what `helm template` makes of these files: equal or unread, never different.

With `--charts DIR`, the charts in the checkouts of a directory are compared as well, those that Helm renders offline.
"""

import argparse
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from attrs import define, field

from aclog.metalog.errors import ConfigError
from tests.support.sources.files_of_rules import ONE_RULE, read_rules, write_files

_OPERATIONS = ("Read", "Write", "Describe", "Alter", "All")


@define
class _Chart:
    """The files of one chart and its subcharts, by their paths."""

    seed: int
    files: dict[str, str] = field(factory=dict)
    arguments: list[str] = field(factory=list)
    features: list[str] = field(factory=list)
    draw: Random = field(init=False)
    users: int = 0

    def __attrs_post_init__(self) -> None:
        self.draw = Random(self.seed)
        self.files["Chart.yaml"] = "apiVersion: v2\nname: kafka\nversion: 1.0.0\n"
        self.files["values.yaml"] = "owner: app\nenabled: true\nteams: [red, blue]\ninner: {enabled: true}\n"
        self.files["templates/users.yaml"] = "---\n".join(self.user() for _ in range(self.draw.randint(1, 3)))
        for name in self.draw.sample(list(_FEATURES), self.draw.choice((0, 1, 1, 2, 3))):
            _FEATURES[name](self)
            self.features.append(name)

    def user(self, name: str = "", topic: str = "") -> str:
        """Return a document with a user whose name no other one has."""
        self.users += 1
        kind, operation = self.draw.choice(("tls", "scram-sha-512")), self.draw.choice(_OPERATIONS)
        topic = topic or self.draw.choice("tuv")
        return (
            f"apiVersion: kafka.strimzi.io/v1\nkind: KafkaUser\nmetadata:\n  name: {name or f'user-{self.users}'}\n"
            f"spec:\n  authentication:\n    type: {kind}\n  authorization:\n    type: simple\n    acls:\n"
            f"      - resource: {{type: topic, name: {topic}}}\n        operations: [{operation}]\n"
        )

    def subchart(self, head: str = "", dependency: str = "") -> None:
        """Add a subchart with a user; `dependency`: more keys of it in the chart above."""
        self.files["charts/inner/Chart.yaml"] = f"apiVersion: v2\nname: inner\nversion: 1.0.0\n{head}"
        self.files["charts/inner/templates/inner.yaml"] = self.user()
        if dependency and "dependencies" not in self.files["Chart.yaml"]:
            self.files["Chart.yaml"] += f"dependencies:\n  - {{name: inner, version: 1.0.0, {dependency}}}\n"


def _template(text: str) -> Callable[[_Chart], None]:
    """Return what adds a file of a template; `USER`, `NAMED` and `TOPIC` are users."""

    def add(chart: _Chart) -> None:
        made = text.replace("NAMED", chart.user(name="{{ .Values.owner }}-{{ .Release.Name }}"))
        made = made.replace("TOPIC", chart.user(topic="{{ .Values.owner }}")).replace("USER", chart.user())
        chart.files[f"templates/more-{chart.users}.yaml"] = made

    return add


def _file(path: str, *, ignored: bool = False) -> Callable[[_Chart], None]:
    def add(chart: _Chart) -> None:
        chart.files[path] = chart.user()
        if ignored:
            chart.files[".helmignore"] = f"{path}\n"

    return add


def _disabled(chart: _Chart) -> None:
    chart.subchart(dependency="condition: inner.enabled")
    chart.arguments += ["--set", f"inner.enabled={chart.draw.choice(('true', 'false'))}"]


def _tagged(chart: _Chart) -> None:
    chart.subchart(dependency="tags: [extra]")
    chart.arguments += ["--set", f"tags.extra={chart.draw.choice(('true', 'false'))}"]


def _helper(chart: _Chart) -> None:
    chart.files["templates/_helpers.tpl"] = '{{- define "kafka.name" -}}{{ .Values.owner }}-x{{- end -}}\n'
    chart.files["templates/by-helper.yaml"] = chart.user(name='{{ include "kafka.name" . }}')


def _partial(chart: _Chart) -> None:
    chart.files["templates/_partial.yaml"] = chart.user()


def _from_file(chart: _Chart) -> None:
    chart.files["files/user.yaml"] = chart.user()
    chart.files["templates/from-file.yaml"] = '{{ .Files.Get "files/user.yaml" }}\n'


def _values_file(chart: _Chart) -> None:
    _template("TOPIC")(chart)
    chart.files["values-prod.yaml"] = "owner: prod\n"
    chart.arguments += ["--values", "values-prod.yaml"]


def _ranged(chart: _Chart) -> None:
    user = chart.user(name="{{ . }}")
    chart.files["templates/ranged.yaml"] = f"{{{{- range .Values.teams }}}}\n---\n{user}{{{{- end }}}}\n"


def _of_values(chart: _Chart) -> None:
    chart.files["values.yaml"] += "acls:\n  - resource: {type: topic, name: w}\n    operations: [Read]\n"
    user = chart.user().partition("    acls:\n")[0]
    chart.files["templates/of-values.yaml"] = f"{user}    acls:\n{{{{ toYaml .Values.acls | indent 6 }}}}\n"


_FEATURES: dict[str, Callable[[_Chart], None]] = {
    "a name of values": _template("NAMED"),
    "a topic of values": _template("TOPIC"),
    "an if that holds": _template("{{- if .Values.enabled }}\nUSER{{- end }}\n"),
    "an if that does not": _template("{{- if not .Values.enabled }}\nUSER{{- end }}\n"),
    "an if of one of two documents": _template("USER---\n{{- if not .Values.enabled }}\nTOPIC{{- end }}\n"),
    "a range": _ranged,
    "a comment of a template": _template("{{/* users */}}\nUSER"),
    "an else": _template("{{- if .Values.enabled }}\nUSER{{- else }}\nTOPIC{{- end }}\n"),
    "a helper": _helper,
    "a partial": _partial,
    "acls of values": _of_values,
    "another file of values": _values_file,
    "a file that a template takes": _from_file,
    "an ignored file": _file("templates/ignored.yaml", ignored=True),
    "a nested template": _file("templates/deep/users.yaml"),
    "a hook": _file("templates/tests/user.yaml"),
    "a custom resource": _file("crds/user.yaml"),
    "a subchart": lambda chart: chart.subchart(),
    "a subchart that is a library": lambda chart: chart.subchart(head="type: library\n"),
    "a subchart with a condition": _disabled,
    "a subchart with tags": _tagged,
    "a subchart with an alias": lambda chart: chart.subchart(dependency="alias: other"),
}


def _rendered(helm: Path, chart: Path, arguments: list[str]) -> set[str]:
    """Return the rules that Helm writes. Raises CalledProcessError: it refuses the chart."""
    command = [str(helm), "template", "release", ".", "--include-crds", *arguments]
    done = subprocess.run(command, capture_output=True, check=True, cwd=chart)
    output = chart.parent / "rendered.yaml"
    output.write_bytes(done.stdout)
    return set(read_rules(output).rules) if b"KafkaUser" in done.stdout else set()


def _generated(helm: Path, number: int) -> Iterator[str]:
    """Compare random charts. Raises AssertionError: one differs."""
    results, features, seed = Counter[str](), Counter[str](), 0
    with tempfile.TemporaryDirectory() as name:
        one = set(read_rules(write_files(Path(name), {"one.jsonl": ONE_RULE})).rules)
    while results["equal"] + results["unread"] < number:
        chart, seed = _Chart(seed), seed + 1
        with tempfile.TemporaryDirectory() as name:
            directory = write_files(Path(name) / "chart", {**chart.files, "one.jsonl": ONE_RULE})
            rendered, read = _rendered(helm, directory, chart.arguments), read_rules(directory)
        extra, missing = set(read.rules) - rendered - one, rendered - set(read.rules)
        assert not extra, (chart.seed, chart.features, chart.files, extra)
        assert not missing or read.unread, (chart.seed, chart.features, chart.files, missing)
        results["unread" if read.unread else "equal"] += 1
        features.update(chart.features)
    figures = f"{results['equal']} equal, {results['unread']} unread, 0 different"
    yield f"{number} random charts beside `helm template`: {figures}"
    yield f"features: {', '.join(f'{name} {count}' for name, count in sorted(features.items()))}"


def _public(helm: Path, checkouts: Path) -> Iterator[str]:
    """Compare the charts of checkouts. Raises AssertionError: one differs."""
    results = Counter[str]()
    paths = (path for each in sorted(checkouts.iterdir()) for path in sorted(each.resolve().rglob("Chart.yaml")))
    for chart in (path.parent for path in paths):
        if not any("KafkaUser" in each.read_text(errors="replace") for each in chart.rglob("*.yaml")):
            continue
        with tempfile.TemporaryDirectory() as name:
            copy = Path(name) / "chart"
            subprocess.run(["cp", "-r", "--", chart, copy], check=True)
            write_files(copy, {"one.jsonl": ONE_RULE})
            try:
                rendered, read = _rendered(helm, copy, []), read_rules(copy)
            except (subprocess.CalledProcessError, ConfigError):
                results["refused"] += 1
                continue
        missing = rendered - set(read.rules)
        extra = set(read.rules) - rendered - {"ALLOW READ TOPIC one to User:one"}
        assert not extra, (chart, extra)
        assert not missing or read.unread, (chart, missing)
        results["unread" if read.unread else "equal"] += 1
    yield (
        f"public charts with a KafkaUser: {results['equal']} equal, {results['unread']} unread, 0 different; "
        f"{results['refused']} that Helm refuses offline"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--helm", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--charts", type=Path, help="a directory of checkouts")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = list(_generated(options.helm, options.number))
    if options.charts is not None:
        lines += _public(options.helm, options.charts)
    print("\n".join(lines))
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
