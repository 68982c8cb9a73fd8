"""APIs and errors of a release, beside what aclog's nodes serve and what its clients and tables know.

aclog may serve versions that an older release does not have. It serves few of Kafka's APIs: of the others only the name
and the form of the header are compared.
"""

from collections.abc import Iterator

from kio.schema.errors import ErrorCode

from aclog.authorizer.audit import API_NAMES
from aclog.metalog.errors import DecodeError
from aclog.protocol import error_codes, headers
from aclog.protocol.api_keys import FIRST_FLEXIBLE, is_flexible
from aclog.protocol.messages import message_type
from aclog.protocol.responses import ApiVersion
from tests.oracle.kit.assumptions import assumed_generation, served_apis
from tests.oracle.kit.values import Difference, Outcome
from tests.support.kafka.release_facts import ApiFacts, ReleaseFacts

CHECK = "APIs and errors"
_USED = {value for name, value in vars(headers).items() if name.isupper() and isinstance(value, int)}
"""The APIs that aclog's nodes serve or its clients ask for."""
_NEWEST = 40
"""Above the newest version of any API."""


def check_apis(facts: ReleaseFacts) -> Outcome:
    """Compare every API, as each listener serves it, and every error."""
    by_key = {api.key: api for api in facts.apis}
    served_by_listener = served_apis(assumed_generation(facts.version))
    found = [
        *(difference for api in facts.apis for difference in _known(api)),
        *(difference for api in facts.apis if api.key in _USED for difference in _in_common(api)),
        *(
            difference
            for listener, served in served_by_listener.items()
            for ours in served
            for difference in _served(ours, by_key.get(ours.api_key), listener)
        ),
        *_errors(facts),
    ]
    compared = len(facts.apis) + sum(map(len, served_by_listener.values())) + len(facts.errors)
    notes = (f"{len(facts.apis)} APIs, {len(facts.errors)} errors",)
    return Outcome(check=CHECK, compared=compared, differences=tuple(found), notes=notes)


def _known(api: ApiFacts) -> Iterator[Difference]:
    subject = f"API {api.key}"
    name = API_NAMES[api.key] if 0 <= api.key < len(API_NAMES) else None
    if name != api.name:
        where = ", ".join(sorted(api.listeners))
        kafka = f"{api.name}, {_versions(api)}, on {where or 'no listener'}"
        yield Difference(subject=subject, kafka=kafka, aclog=name or "not known")
    if api.key not in FIRST_FLEXIBLE:
        return  # reported by its name
    for version, flexible in zip(api.versions, api.flexible, strict=True):
        if is_flexible(api.key, version) != flexible:
            subject = f"API {api.key} {api.name} version {version}, flexible header"
            yield Difference(subject=subject, kafka=str(flexible), aclog=str(not flexible))


def _in_common(api: ApiFacts) -> Iterator[Difference]:
    """A client of aclog's must have a version that the release serves."""
    ours = [version for version in range(_NEWEST) if _has_message(api.key, version)]
    if api.versions and not set(ours) & set(api.versions):
        yield Difference(subject=f"API {api.key} {api.name}, messages", kafka=_versions(api), aclog=str(ours))


def _has_message(key: int, version: int) -> bool:
    try:
        message_type(key, version, "request")
    except DecodeError:
        return False
    return True


def _served(ours: ApiVersion, api: ApiFacts | None, listener: str) -> Iterator[Difference]:
    subject = f"API {ours.api_key} {API_NAMES[ours.api_key]} on a {listener.lower()}"
    served = f"versions {ours.min_version} to {ours.max_version}"
    if api is None or not api.versions or listener not in api.listeners:
        yield Difference(subject=subject, kafka="none", aclog=served)
    elif api.versions[0] < ours.min_version or api.versions[-1] > ours.max_version:
        yield Difference(subject=subject, kafka=_versions(api), aclog=served)


def _versions(api: ApiFacts) -> str:
    return f"versions {api.oldest} to {api.newest}" if api.versions else "no stable version"


def _errors(facts: ReleaseFacts) -> Iterator[Difference]:
    ours = {int(code): code.name.upper() for code in (*ErrorCode, *error_codes.NewerErrorCode)}
    sent = {value: name for name, value in vars(error_codes).items() if name.isupper() and isinstance(value, int)}
    for code, name in facts.errors.items():
        for table, known in (("clients", ours.get(code)), ("nodes", sent.get(code, name))):
            if known != name:
                subject = f"error {code}, of {table}"
                yield Difference(subject=subject, kafka=name, aclog=known or "not known: reported as -1")
