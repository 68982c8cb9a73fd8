"""SCRAM credentials: upserts, removals of absent ones, and no secret in a repr or description."""

from aclog.credentials.scram import CredentialInfo, ScramImage, ScramMechanism, UserCredentials
from aclog.metalog.records import RemoveUserScramCredentialRecord, UserScramCredentialRecord

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


def credential(user, mechanism=SHA_256, iterations=4096):
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism,
        salt=b"secret-salt",
        stored_key=b"secret-stored",
        server_key=b"secret-server",
        iterations=iterations,
    )


def test_a_later_record_replaces():
    image = ScramImage.EMPTY.apply([credential("a"), credential("a", iterations=8192)])
    assert len(image) == 1
    assert image.get("a", SHA_256).iterations == 8192
    assert image.get("a", SHA_512) is None


def test_a_removal_affects_one_mechanism_and_ignores_absent_ones():
    both = ScramImage.EMPTY.apply([credential("a"), credential("a", SHA_512)])
    removals = [RemoveUserScramCredentialRecord(name=name, mechanism=SHA_256) for name in ("a", "a", "nobody")]
    after = both.apply(removals)
    assert [record.mechanism for record in after.records()] == [SHA_512]
    assert len(both) == 2


def test_describe_is_by_user_then_mechanism():
    image = ScramImage.EMPTY.apply([credential("b", SHA_512), credential("a"), credential("b", iterations=5000)])
    assert list(image.describe()) == [
        UserCredentials(user="a", credential_infos=(CredentialInfo(mechanism=1, iterations=4096),)),
        UserCredentials(
            user="b",
            credential_infos=(
                CredentialInfo(mechanism=1, iterations=5000),
                CredentialInfo(mechanism=2, iterations=4096),
            ),
        ),
    ]


def test_no_secret_in_any_repr():
    image = ScramImage.EMPTY.apply([credential("a")])
    for text in (repr(image), str(image), repr(image.get("a", 1)), repr(list(image.describe()))):
        assert "secret" not in text


def test_equality_ignores_order():
    assert ScramImage.EMPTY.apply([credential("a"), credential("b")]) == ScramImage.EMPTY.apply(
        [credential("b"), credential("a")]
    )


def test_sasl_mechanism_names():
    assert [mechanism.mechanism_name for mechanism in ScramMechanism] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]


def test_credentials_without_keys_are_described_and_have_no_records():
    keyless = (UserCredentials(user="zoe", credential_infos=(CredentialInfo(mechanism=2, iterations=8192),)),)
    image = ScramImage(keyless=keyless)
    assert tuple(image.describe()) == keyless
    assert (list(image.records()), image.get("zoe", 2), len(image)) == ([], None, 1)
    assert image.apply(()).keyless == keyless
    assert "zoe" not in repr(image)
