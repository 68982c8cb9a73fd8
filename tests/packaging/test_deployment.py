"""The image and the unit say what the rest of the project says."""

import re
import tomllib
from configparser import ConfigParser
from pathlib import Path

from tests.packaging.conftest import ROOT
from tests.packaging.requirements import needed, requirements

CONTAINERFILE = (ROOT / "packaging" / "Containerfile").read_text("utf-8")
OF_SYSTEMD = ROOT / "packaging" / "systemd" / "aclog.service"


def steps(word: str) -> list[str]:
    """The arguments of each instruction of a kind, its lines joined."""
    return re.findall(rf"^{word} (.+)$", CONTAINERFILE.replace("\\\n", ""), re.MULTILINE)


def test_the_image_leaves_the_tools_that_build_it_behind():
    group = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]["build"]
    [names] = re.findall(r"uninstall --yes --quiet ([\w -]+?) +&&", " ".join(steps("RUN")))
    # `packaging` is small, and pip leaves it to whoever needs it later
    assert set(names.split()) == needed(group) - needed(requirements()) - {"packaging"}


def test_the_image_is_made_of_files_that_exist():
    for line in steps("COPY"):
        *sources, _ = line.split()
        assert line.startswith("--from=build ") or all((ROOT / source).exists() for source in sources)


def test_the_image_runs_as_nobody_special_and_is_asked_for_its_health():
    assert steps("USER") == ["10001:10001"]
    assert steps("ENTRYPOINT") == ['["aclog"]']
    [check] = steps("HEALTHCHECK")
    [address] = re.findall(r"ACLOG_HEALTH=(\S+)", CONTAINERFILE)
    assert "/healthz" in check
    assert f"aclog.http.listener={address}" in CONTAINERFILE


def test_the_unit_starts_a_node_that_cannot_gain_rights():
    unit = ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(OF_SYSTEMD.read_text("utf-8"))
    service = unit["Service"]
    assert service["ExecStart"] == "/opt/aclog/bin/aclog serve /etc/aclog/server.properties"
    assert service["User"] == "aclog"
    assert service["Restart"] == "on-failure"
    assert {service[name] for name in ("NoNewPrivileges", "PrivateTmp", "ProtectHome")} == {"true"}
    assert service["ProtectSystem"] == "strict"
    assert Path(service["WorkingDirectory"]).name == service["StateDirectory"]
