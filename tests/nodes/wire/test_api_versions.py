import pytest
from kio.index import load_request_schema

from aclog.metalog.errors import DecodeError
from aclog.protocol.api_keys import (
    CREATE_ACLS,
    CREATE_DELEGATION_TOKEN,
    DELETE_ACLS,
    DESCRIBE_ACLS,
    DESCRIBE_DELEGATION_TOKEN,
    ENVELOPE,
    EXPIRE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
)
from aclog.protocol.messages import decode_response
from aclog.protocol.responses import (
    BROKER_APIS,
    CONTROLLER_APIS,
    ApiVersion,
    Features,
    api_versions_response,
    unsupported_api_versions_response,
)

FEATURES = Features(
    supported={"metadata.version": (7, 30), "kraft.version": (0, 1)},
    finalized={"metadata.version": 30, "kraft.version": 1, "share.version": 0},
    finalized_epoch=17,
)


@pytest.mark.parametrize("apis", [BROKER_APIS, CONTROLLER_APIS])
@pytest.mark.parametrize("version", range(5))
def test_every_version_names_all_apis(version, apis):
    found = decode_response(18, version, api_versions_response(version, apis, FEATURES), 0)
    assert found.error_code == 0
    assert [(each.api_key, each.min_version, each.max_version) for each in found.api_keys] == [
        (each.api_key, each.min_version, each.max_version) for each in apis
    ]


@pytest.mark.parametrize(("version", "names"), [(3, ["metadata.version"]), (4, ["metadata.version", "kraft.version"])])
def test_features_with_minimum_0_are_included_since_version_4(version, names):
    found = decode_response(18, version, api_versions_response(version, BROKER_APIS, FEATURES), 0)
    assert [each.name for each in found.supported_features] == names
    levels = {each.name: (each.min_version_level, each.max_version_level) for each in found.finalized_features}
    assert levels == {"metadata.version": (30, 30), "kraft.version": (1, 1)}
    assert found.finalized_features_epoch == 17


def test_without_features_the_epoch_is_unknown():
    found = decode_response(18, 4, api_versions_response(4, BROKER_APIS, Features()), 0)
    assert (found.supported_features, found.finalized_features, found.finalized_features_epoch) == ((), (), -1)


def test_a_version_that_is_not_served_is_answered_in_version_0():
    body = unsupported_api_versions_response()
    assert body == bytes.fromhex("0023 00000001 0012 0000 0004")


def test_a_version_beyond_the_last_has_no_response_schema():
    with pytest.raises(DecodeError):
        api_versions_response(6, BROKER_APIS, FEATURES)


@pytest.mark.parametrize("apis", [BROKER_APIS, CONTROLLER_APIS])
def test_all_that_is_served_can_be_decoded(apis):
    assert len({each.api_key for each in apis}) == len(apis)
    for each in apis:
        for version in range(each.min_version, each.max_version + 1):
            if each.api_key != ENVELOPE:
                assert load_request_schema(each.api_key, version).__version__ == version


def test_which_versions_are_within():
    assert [version for version in range(-1, 6) if version in ApiVersion(29, 1, 3)] == [1, 2, 3]


@pytest.mark.parametrize("apis", [BROKER_APIS, CONTROLLER_APIS])
def test_versions_0_of_acls_and_tokens_are_gone_as_from_kafka_4(apis):
    served = {api.api_key: (api.min_version, api.max_version) for api in apis}
    assert [served[key] for key in (DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS)] == [(1, 3)] * 3
    assert served[CREATE_DELEGATION_TOKEN] == (1, 3)
    assert served[RENEW_DELEGATION_TOKEN] == served[EXPIRE_DELEGATION_TOKEN] == (1, 2)
    assert served.get(DESCRIBE_DELEGATION_TOKEN, (1, 3)) == (1, 3)
