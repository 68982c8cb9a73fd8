"""The broker that logged a line: by what surrounds its message, or by the path of its file."""

import re
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

from aclog.authorizer.audit import MESSAGE

_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}"
"""A name of a pod, container or host."""
_SEARCHED: Final = 1 << 14
"""The characters of a line in which its broker is searched."""

# In text, what comes before the message: users choose principals and names.

_DATE: Final = r"[A-Z][a-z]{2} [ 0-9][0-9] [0-9:.]{8,15}"
_ISO: Final = r"[0-9-]{10}T[0-9:.,]{8,18}(?:Z|[+-][0-9:]{4,5})?"
_OF_TEXT: Final = tuple(
    re.compile(regex, re.ASCII)
    for regex in (
        rf"\[?pod/({_NAME})(?:/{_NAME})?\]? ",  # kubectl logs --prefix
        rf"\s*({_NAME}) +\| ",  # docker compose
        rf"<[0-9]{{1,3}}>1 {_ISO} ({_NAME}) ",  # syslog of RFC 5424
        # syslog of RFC 3164 and journald: a host, then a process
        rf"(?:<[0-9]{{1,3}}>)?(?:{_DATE}|{_ISO}) ({_NAME}) [^\s\[:]{{1,64}}(?:\[[0-9]+\])?: ",
    )
)


def _key(*names: str) -> re.Pattern[str]:
    alternatives = "|".join(re.escape(name) for name in names)
    return re.compile(rf'(?<!\\)"(?:{alternatives})"\s*:\s*"({_NAME})"')


# In JSON, the keys of shippers, from the narrowest to the widest.
_OF_JSON: Final = (
    _key("pod_name", "pod.name", "kubernetes.pod_name", "kubernetes.pod.name", "pod"),
    re.compile(rf'(?<!\\)"pod"\s*:\s*\{{[^{{}}]{{0,999}}?"name"\s*:\s*"({_NAME})"'),
    _key("container_name", "container.name", "CONTAINER_NAME"),
    _key("broker", "broker_id", "logStream", "logStreamName", "log_stream"),
    _key("_HOSTNAME", "host.name", "host.hostname", "hostname", "host", "HOSTNAME"),
    re.compile(rf'(?<!\\)"host"\s*:\s*\{{[^{{}}]{{0,999}}?"(?:host)?name"\s*:\s*"({_NAME})"'),
)


_OF_EVENT: Final = _key("broker")
_OF_ACCESSES: Final = ('"principal"', '"operation"', '"resourceType"', '"resourceName"')


def broker_of_line(line: str) -> str | None:
    """Return the broker that a line names outside of its message: a pod, container or host; None if it names none."""
    text = line[:_SEARCHED]
    begin = text.lstrip("\ufeff\0 \t")
    if begin.startswith("{") or ('":' in text and MESSAGE not in text):
        # the host of an access itself is that of its client
        is_access = any(key in text for key in _OF_ACCESSES)
        matches = (each.search(text) for each in ((_OF_EVENT,) if is_access else _OF_JSON))
    else:
        before = _COLOURS.sub("", begin[: max(begin.find(MESSAGE), 0) or len(begin)])
        matches = (each.match(before) for each in _OF_TEXT)
    return next((match[1] for match in matches if match is not None), None)


_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

# In paths: the names that Kubernetes and Docker give to the logs of containers; else the directory and the name of the
# file, without what rotation and packing add to it.

_OF_PATHS: Final = tuple(
    re.compile(regex, re.ASCII)
    for regex in (
        rf"/containers/({_NAME})_[^/_]+_[^/]+-[0-9a-f]{{64}}\.log",
        rf"/pods/[^/_]+_({_NAME})_[^/]+/",
        r"/([0-9a-f]{12})[0-9a-f]{52}(?:-json\.log|/)",
    )
)
_NUMBER: Final = r"[0-9]{1,3}|[0-9]{4}-?[0-9]{2}-?[0-9]{2}(?:[T_.-][0-9]{1,6}|-[0-9]{2}-[0-9]{2})?"
_ROTATION: Final = re.compile(rf"(?:[.-](?:{_NUMBER}|gz|zst|bz2|xz|zip|tar|tgz|parquet))+\Z", re.ASCII)


def broker_of_path(path: str) -> str | None:
    """Return the broker that a file's path or URI names: a pod, a container, or its directory and name."""
    place = unquote(urlsplit(path).path) if "://" in path or path.startswith("file:") else path
    match = next((hit for each in _OF_PATHS if (hit := each.search(place)) is not None), None)
    if match is not None:
        return match[1]
    file = PurePosixPath(place)
    name = _ROTATION.sub("", file.name) or file.name
    return f"{file.parent.name}/{name}" if file.parent.name else name or None
