"""TLS settings from ssl.* (SslConfigs, and the checks of DefaultSslEngineFactory)."""

from pathlib import Path

from attrs import frozen

from aclog.metalog.errors import ConfigError
from aclog.nodes.config.cipher_suites import cipher_suites
from aclog.nodes.config.java_properties import Properties
from aclog.nodes.config.node_config import ClientAuth, TlsSettings
from aclog.nodes.config.principal_mapping import SslPrincipalMapper

STORE_TYPES = ("JKS", "PKCS12", "PEM")
PROTOCOLS = ("TLSv1.2", "TLSv1.3")
CLIENT_AUTH = "ssl.client.auth"
_SUITES = "ssl.cipher.suites"
_RULES = "ssl.principal.mapping.rules"
_IDENTIFICATION = "ssl.endpoint.identification.algorithm"
_KEY_PEM = "ssl.keystore.key"
_CHAIN_PEM = "ssl.keystore.certificate.chain"
_TRUST_PEM = "ssl.truststore.certificates"


@frozen(kw_only=True)
class _Store:
    """A key store or trust store file."""

    path: Path | None
    type: str
    password: str | None


def tls_settings(properties: Properties, *, sasl: bool = False, server: bool = False) -> TlsSettings:
    """Read the settings of a listener or a client from its properties; `sasl` for SASL_SSL.

    On a SASL_SSL listener, ssl.client.auth applies only with the listener's prefix, as in Kafka (KIP-684).

    Raises:
        ConfigError: unsupported values, keys that contradict each other, or a server without a key.

    """
    keystore = _store(properties, "ssl.keystore", (_KEY_PEM, _CHAIN_PEM))
    truststore = _store(properties, "ssl.truststore", (_TRUST_PEM,))
    key_pem, trust_pem = properties.text_or_none(_KEY_PEM), properties.text_or_none(_TRUST_PEM)
    client_auth = _client_auth(properties, sasl=sasl) if server else ClientAuth.NONE
    if server and keystore.path is None and key_pem is None:
        raise properties.error("ssl.keystore.location", f"neither it nor {_KEY_PEM} is set, but a listener uses TLS")
    if client_auth is not ClientAuth.NONE and truststore.path is None and trust_pem is None:
        raise properties.contradiction(
            CLIENT_AUTH, "ssl.truststore.location", "client certificates are requested, but there is no trust store"
        )
    return TlsSettings(
        keystore=keystore.path,
        keystore_type=keystore.type,
        keystore_password=keystore.password,
        key_password=properties.text_or_none("ssl.key.password"),
        certificate_chain_pem=properties.text_or_none(_CHAIN_PEM),
        key_pem=key_pem,
        truststore=truststore.path,
        truststore_type=truststore.type,
        truststore_password=truststore.password,
        truststore_pem=trust_pem,
        client_auth=client_auth,
        protocols=_protocols(properties),
        cipher_suites=_suites(properties),
        endpoint_identification=_identification(properties),
        principal_mapping_rules=_rules(properties),
    )


def _store(properties: Properties, name: str, pem_keys: tuple[str, ...]) -> _Store:
    location, type_key, password_key = f"{name}.location", f"{name}.type", f"{name}.password"
    path, password = properties.text_or_none(location), properties.text_or_none(password_key)
    kind = (properties.text_or_none(type_key) or "JKS").upper()
    given = [key for key in pem_keys if properties.text_or_none(key)]
    if kind not in STORE_TYPES:
        raise properties.error(type_key, f"{properties.shown(type_key)}: expected one of {', '.join(STORE_TYPES)}")
    # Kafka's own rules and error cases (DefaultSslEngineFactory.createKeystore): contradictions fail, nothing is
    # guessed.
    if given and kind != "PEM":
        raise properties.contradiction(given[0], type_key, f"PEM text is set, but the type is {kind}: expected PEM")
    if given and path is not None:
        raise properties.contradiction(given[0], location, "expected the text or the file")
    if given and len(given) < len(pem_keys):
        raise properties.error(given[0], f"{', '.join(set(pem_keys) - set(given))} is missing: expected both")
    if password is not None and kind == "PEM":
        raise properties.contradiction(password_key, type_key, "a PEM store has no password, only ssl.key.password")
    if password is not None and path is None:
        raise properties.contradiction(password_key, location, "a password is set, but no file")
    if name == "ssl.keystore" and path is not None and password is None and kind != "PEM":
        raise properties.error(password_key, f"not set, but {location} is: expected the store's password")
    return _Store(path=None if path is None else Path(path), type=kind, password=password)


def _client_auth(properties: Properties, *, sasl: bool) -> ClientAuth:
    choices = tuple(choice.value for choice in ClientAuth)
    value = ClientAuth(properties.chosen(CLIENT_AUTH, choices, ClientAuth.NONE.value))
    return value if not sasl or properties.full_key(CLIENT_AUTH) != CLIENT_AUTH else ClientAuth.NONE


def _protocols(properties: Properties) -> tuple[str, ...]:
    protocols = properties.items("ssl.enabled.protocols") or PROTOCOLS
    for protocol in protocols:
        if protocol not in PROTOCOLS:
            raise properties.error("ssl.enabled.protocols", f"{protocol!r}: expected {' or '.join(PROTOCOLS)}")
    return protocols


def _suites(properties: Properties) -> tuple[str, ...]:
    """Check the suites now: a node must fail before it opens a listener (SslConfigs.SSL_CIPHER_SUITES)."""
    names = properties.items(_SUITES) or ()
    try:
        cipher_suites(names)
    except ConfigError as error:
        raise properties.error(_SUITES, _why(error, _SUITES)) from error
    return names


def _rules(properties: Properties) -> str:
    """Check the rules now, before a client connects whose principal depends on them."""
    text = properties.text(_RULES) or "DEFAULT"
    try:
        SslPrincipalMapper.parse(text)
    except ConfigError as error:
        raise properties.error(_RULES, _why(error, _RULES)) from error
    return text


def _why(error: ConfigError, key: str) -> str:
    """Return the error without its key, which is added again with the listener's prefix."""
    return str(error).removeprefix(f"{key}: ")


def _identification(properties: Properties) -> bool:
    value = properties.text(_IDENTIFICATION)
    if value and value.lower() != "https":
        raise properties.error(
            _IDENTIFICATION, f"{value!r}: expected https, or an empty value to disable host name verification"
        )
    return value is None or bool(value)
