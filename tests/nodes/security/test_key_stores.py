"""Key stores and trust stores: content, and errors for unusable ones."""

import json
from base64 import b64decode
from functools import cache
from pathlib import Path

import pytest

from aclog.config.node_config import TlsSettings
from aclog.metalog.errors import ConfigError
from aclog.security.tls import key_entry, trusted_certificates
from tests.support.nodes.certificates import Authority, pem

JAVA = json.loads((Path(__file__).parent / "java_stores.json").read_text())


@cache
def estate():
    root = Authority.make("root")
    return root, Authority.make("intermediate", root).issue("alice")


def names(certificates):
    return [certificate.subject.rfc4514_string() for certificate in certificates]


def pem_texts(**changes):
    issued = estate()[1]
    values = {"key_pem": issued.key_pem(), "certificate_chain_pem": issued.certificate_pem(chain=True)}
    return TlsSettings(keystore_type="PEM", **(values | changes))


def java_store(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b64decode(JAVA[name]))
    return path


CHAIN = ["CN=alice", "CN=intermediate", "CN=root"]


@pytest.mark.parametrize("password", [None, "hush"])
def test_a_pem_key_store(tmp_path, password):
    path = estate()[1].write_pem(tmp_path / "store.pem", password)
    entry = key_entry(TlsSettings(keystore=path, keystore_type="PEM", key_password=password))
    assert names(entry.chain) == CHAIN
    assert entry.key.public_key() == entry.chain[0].public_key()


@pytest.mark.parametrize("type_", ["PKCS12", "JKS"])
def test_a_pkcs12_key_store(tmp_path, type_):
    path = estate()[1].write_pkcs12(tmp_path / "store.p12")
    entry = key_entry(TlsSettings(keystore=path, keystore_type=type_, keystore_password="changeit"))
    assert names(entry.chain) == CHAIN


def test_stores_created_by_java(tmp_path):
    settings = TlsSettings(
        keystore=java_store(tmp_path, "keystorePkcs12"),
        keystore_password="changeit",
        truststore=java_store(tmp_path, "truststorePkcs12"),
        truststore_password="changeit",
    )
    assert names(key_entry(settings).chain) == ["CN=java server", "CN=java intermediate", "CN=java root"]
    assert sorted(names(trusted_certificates(settings))) == ["CN=java root", "CN=other root"]


def test_pem_texts_in_the_properties():
    assert names(key_entry(pem_texts()).chain) == CHAIN
    root = estate()[0].own.certificate
    assert trusted_certificates(TlsSettings(truststore_pem=pem(root) + "# a remark\n" + pem(root))) == (root, root)


def test_pem_in_one_line():
    settings = pem_texts()
    settings = pem_texts(
        key_pem=settings.key_pem.replace("\n", " "),
        certificate_chain_pem=settings.certificate_chain_pem.replace("\n", " "),
    )
    assert names(key_entry(settings).chain) == CHAIN


def test_a_chain_in_any_order():
    root, alice = estate()
    stranger = Authority.make("stranger").own.certificate
    certificates = [stranger, root.own.certificate, *alice.issuers[:1], alice.certificate]
    entry = key_entry(pem_texts(certificate_chain_pem="".join(map(pem, certificates))))
    assert names(entry.chain) == [*CHAIN, "CN=stranger"]


def test_a_pem_trust_store_may_hold_more_than_certificates(tmp_path):
    path = estate()[1].write_pem(tmp_path / "trust.pem")
    trusted = trusted_certificates(TlsSettings(truststore=path, truststore_type="PEM"))
    assert names(trusted) == CHAIN


def test_no_store_is_configured():
    assert key_entry(TlsSettings()) is None
    assert trusted_certificates(TlsSettings()) is None


def refused(settings, text, *, trust=False):
    with pytest.raises(ConfigError) as caught:
        trusted_certificates(settings) if trust else key_entry(settings)
    message = str(caught.value)
    assert text in message
    assert "\n" not in message
    assert "hush" not in message + repr(settings)


def test_key_stores_that_cannot_be_used(tmp_path):
    issued = estate()[1]
    locked, p12 = issued.write_pem(tmp_path / "locked.pem", "hush"), issued.write_pkcs12(tmp_path / "store.p12", "hush")
    other, nothing = Authority.make("other").own, tmp_path / "nothing"
    junk = tmp_path / "junk"
    junk.write_bytes(b"\x30\x03\xff\x00\xff")
    for settings, text in (
        (TlsSettings(keystore=nothing), f"ssl.keystore.location: {nothing}: No such file"),
        (TlsSettings(keystore=tmp_path), "Is a directory"),
        (TlsSettings(keystore=locked, keystore_type="PEM"), "not a private key, or wrong ssl.key.password"),
        (TlsSettings(keystore=locked, keystore_type="PEM", key_password="hush2"), "not a private key, or wrong"),
        (pem_texts(key_password="hush"), "ssl.keystore.key: not a private key, or wrong ssl.key.password"),
        (TlsSettings(keystore=p12, keystore_password="hush2"), f"{p12}: not a PKCS12 store, or wrong password"),
        (TlsSettings(keystore=p12), "not a PKCS12 store, or wrong password"),
        (TlsSettings(keystore=junk, keystore_password="hush"), "not a PKCS12 store"),
        (TlsSettings(keystore=junk, keystore_type="PEM"), "0 private keys in PEM, expected one"),
        (pem_texts(key_pem=other.key_pem() + issued.key_pem()), "2 private keys in PEM, expected one"),
        (pem_texts(key_pem=other.key_pem()), "no certificate matches the private key"),
        (pem_texts(certificate_chain_pem=None), "ssl.keystore.certificate.chain: no certificate in PEM"),
        (pem_texts(key_pem=issued.key_pem().replace("M", "N")), "ssl.keystore.key: not a private key"),
        (pem_texts(certificate_chain_pem=issued.certificate_pem().replace("M", "N")), "unreadable certificate"),
    ):
        refused(settings, text)


def test_trust_stores_that_cannot_be_used(tmp_path):
    nothing, empty = tmp_path / "nothing", tmp_path / "empty"
    empty.touch()
    for settings, text in (
        (TlsSettings(truststore=nothing), f"ssl.truststore.location: {nothing}: No such file"),
        (TlsSettings(truststore=empty, truststore_type="PEM"), "no certificate in PEM"),
        (TlsSettings(truststore=empty), "not a PKCS12 store"),
        (TlsSettings(truststore_pem="none"), "ssl.truststore.certificates: no certificate in PEM"),
    ):
        refused(settings, text, trust=True)


@pytest.mark.parametrize("type_", ["JKS", "PKCS12"])
def test_a_store_in_javas_own_format_says_how_to_convert_it(tmp_path, type_):
    key, trust = java_store(tmp_path, "keystoreJks"), java_store(tmp_path, "truststoreJks")
    settings = TlsSettings(
        keystore=key, keystore_type=type_, keystore_password="hush", truststore=trust, truststore_type=type_
    )
    refused(settings, f"{key}: JKS is not supported, expected PKCS12 or PEM: convert it with `keytool -importkeystore")
    refused(settings, f"{trust}: JKS is not supported", trust=True)


def test_a_pkcs12_store_without_a_key(tmp_path):
    path = java_store(tmp_path, "truststorePkcs12")
    refused(TlsSettings(keystore=path, keystore_password="changeit"), "contains no private key")
