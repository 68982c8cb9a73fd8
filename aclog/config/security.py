"""TLS, SASL and token settings."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from attrs import field

from aclog.config.node_config import ClientAuth, ClientSecurity, TlsSettings
from aclog.config.properties import Properties, SslPrincipalMapper
from aclog.credentials.tokens import TokenSettings
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.protocol.session import SecurityProtocol

# Cipher suites by their names in Java (ssl.cipher.suites), which are IANA's, translated to OpenSSL's. Pure.


TLS_1_3 = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"})
"""OpenSSL's suites for TLS 1.3; Python's ssl module cannot choose among them."""

_SIGNALS = frozenset({"TLS_EMPTY_RENEGOTIATION_INFO_SCSV", "TLS_FALLBACK_SCSV"})
"""Signaling values in Java's lists, not suites."""

_KEY_EXCHANGES = {"ECDHE_ECDSA": "ECDHE-ECDSA-", "ECDHE_RSA": "ECDHE-RSA-", "DHE_RSA": "DHE-RSA-", "RSA": ""}
_CIPHERS = {
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA": "AES128-SHA",
}
""""""
_NO_PAIRS = frozenset(
    {
        ("ECDHE_ECDSA", "AES_256_CBC_SHA256"),
        ("ECDHE_RSA", "AES_256_CBC_SHA256"),
        ("DHE_RSA", "AES_256_CBC_SHA384"),
        ("RSA", "AES_256_CBC_SHA384"),
        ("RSA", "CHACHA20_POLY1305_SHA256"),
    }
)


@frozen(kw_only=True)
class CipherSuites:
    """A list of suites: whether it has those of TLS 1.3, and those of TLS 1.2 by OpenSSL's names."""

    tls_1_3: bool
    tls_1_2: tuple[str, ...]


def cipher_suites(names: Iterable[str]) -> CipherSuites:
    """Translate these suites.

    Raises:
        ConfigError: an unknown name, or some but not all suites of TLS 1.3.

    """
    requested = [name for name in dict.fromkeys(names) if name not in _SIGNALS]
    tls_1_3 = TLS_1_3.intersection(requested)
    if tls_1_3 and tls_1_3 != TLS_1_3:
        raise ConfigError(
            f"ssl.cipher.suites: only some suites of TLS 1.3: expected all ({', '.join(sorted(TLS_1_3))}) or none"
        )
    suites = dict(_suites_by_name())
    for name in requested:
        if name not in suites and name not in TLS_1_3:
            raise ConfigError(f"ssl.cipher.suites: {name}: expected a suite of TLS 1.2 or 1.3 in Java's name for it")
    return CipherSuites(tls_1_3=bool(tls_1_3), tls_1_2=tuple(suites[name] for name in requested if name in suites))


def _suites_by_name() -> Iterator[tuple[str, str]]:
    """Yield the supported suites of TLS 1.2: Java's name and OpenSSL's."""
    for exchange, prefix in _KEY_EXCHANGES.items():
        for cipher, name in _CIPHERS.items():
            if (exchange, cipher) not in _NO_PAIRS:
                yield f"TLS_{exchange}_WITH_{cipher}", f"{prefix}{name}"


# JAAS configuration lines: a login module and its options (org.apache.kafka.common.security.JaasConfig).
#
# The syntax is `<module> <control flag> (<option>=<value>)*;`. Errors never quote the line: it contains passwords.


PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"

_FLAGS = ("required", "requisite", "sufficient", "optional")
# Java's StreamTokenizer as JaasConfig sets it up: comments, quoted strings with escapes, words, and the marks = and ;
_TOKEN = re.compile(
    r"""(?P<blank>[\x00-\x20]+ | //[^\n\r]* | /\*.*?\*/ | /[^\n\r]*)
      | "(?P<double>(?:[^"\\\n\r] | \\[^\n\r])*)"
      | '(?P<single>(?:[^'\\\n\r] | \\[^\n\r])*)'
      | (?P<word>[A-Za-z_$\xa0-\U0010ffff][-A-Za-z0-9_$.\xa0-\U0010ffff]*)
      | (?P<mark>[=;])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@frozen(kw_only=True)
class JaasEntry:
    """A login module's class and its options; the repr shows only their number, as they include passwords."""

    module: str
    options: Mapping[str, str] = field(repr=lambda options: f"{len(options)} options")


def parse_jaas(text: str) -> JaasEntry:
    """Parse the one login module of a sasl.jaas.config value.

    Raises:
        ConfigError: malformed, or several modules.

    """
    tokens = list(_tokens(text))
    kinds = [kind for kind, _ in tokens]
    if kinds[:2] != ["word", "word"] or tokens[1][1].lower() not in _FLAGS:
        raise _malformed("it does not begin with a login module's class and a control flag such as 'required'")
    if kinds[-1] != ";":
        raise _malformed("it does not end with ';'")
    if kinds.count(";") > 1:
        raise _malformed("more than one login module")
    options = {}
    body = tokens[2:-1]
    for name, equals, value in zip(body[0::3], body[1::3], body[2::3], strict=False):
        if name[0] not in {"word", "quoted"} or equals[0] != "=" or value[0] not in {"word", "quoted"}:
            raise _malformed('an option that is not <name>="<value>"')
        options[name[1]] = value[1]
    if len(body) % 3:
        raise _malformed('an option that is not <name>="<value>"')
    return JaasEntry(module=tokens[0][1], options=options)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _malformed(f"character {position + 1} is not allowed outside quotes")
        position = match.end()
        kind = str(match.lastgroup)
        if kind == "mark":
            yield match["mark"], ""
        elif kind == "word":
            yield kind, match["word"]
        elif kind != "blank":
            yield "quoted", _ESCAPE.sub(_unescaped, match[kind])


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    return chr(int(escaped, 8)) if escaped[0] in "01234567" else _ESCAPED.get(escaped, escaped)


def _malformed(what: str) -> ConfigError:
    return ConfigError(f'not a JAAS line: {what}: expected <login module> required <option>="<value>" ... ;')


# SASL mechanisms and JAAS lines, of listeners and of clients.


SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""The supported mechanisms."""

ENABLED = "sasl.enabled.mechanisms"
JAAS = "sasl.jaas.config"
_KAFKAS_DEFAULT = "GSSAPI"
_USER = "user_"


def enabled_mechanisms(properties: Properties) -> tuple[str, ...]:
    """Return a SASL listener's mechanisms, from its properties.

    Raises:
        ConfigError: none, or an unsupported one.

    """
    mechanisms = properties.items(ENABLED)
    if mechanisms is None:
        expected = ", ".join(SASL_MECHANISMS)
        raise properties.error(
            ENABLED, f"not set, and Kafka's default {_KAFKAS_DEFAULT} is not supported: expected some of {expected}"
        )
    if not mechanisms:
        raise properties.error(ENABLED, "empty, but a listener uses SASL")
    for mechanism in mechanisms:
        check_mechanism(properties, ENABLED, mechanism)
    return tuple(dict.fromkeys(mechanisms))


def check_mechanism(properties: Properties, key: str, mechanism: str) -> None:
    """Check that a mechanism is supported.

    Raises:
        ConfigError: it is not.

    """
    if mechanism not in SASL_MECHANISMS:
        raise properties.error(key, f"{mechanism!r} is not supported: expected one of {', '.join(SASL_MECHANISMS)}")


def jaas_entry(properties: Properties, mechanism: str, key: str) -> JaasEntry | None:
    """Return the mechanism's login module under a key; None if the key is absent.

    Raises:
        ConfigError: not a JAAS line, or another mechanism's login module.

    """
    text = properties.text(key)
    if text is None:
        return None
    try:
        entry = parse_jaas(text)
    except ConfigError as error:
        raise properties.error(key, str(error)) from error
    expected = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    if entry.module != expected:
        raise properties.error(key, f"not the login module of {mechanism}: expected {expected}")
    return entry


def mechanism_key(properties: Properties, mechanism: str) -> str:
    """Return the full key of a mechanism's JAAS line on a listener (JaasContext.loadServerContext)."""
    return f"{properties.prefix}{mechanism.lower()}.{JAAS}"


def plain_users(properties: Properties) -> Mapping[str, str]:
    """Return PLAIN's users and passwords on a listener: the `user_<name>` options of its JAAS line.

    Raises:
        ConfigError: there is no such line, or it is malformed.

    """
    key = mechanism_key(properties, "PLAIN")
    entry = jaas_entry(properties, "PLAIN", key)
    if entry is None:
        raise properties.error(key, f"not set, but PLAIN is among {ENABLED}: expected {PLAIN_MODULE} required ... ;")
    return {name.removeprefix(_USER): password for name, password in entry.options.items() if name.startswith(_USER)}


def login(
    properties: Properties,
    protocol: SecurityProtocol,
    mechanism: str,
    *,
    entry: JaasEntry | None,
    key: str,
    tls: TlsSettings | None,
) -> ClientSecurity:
    """Return how a client logs in with a JAAS entry, which is configured under `key`.

    Raises:
        ConfigError: no entry, or an entry without username or password.

    """
    options = entry.options if entry else {}
    username, password = options.get("username"), options.get("password")
    if username is None or password is None:
        raise properties.error(
            key,
            f"no username and password, which {protocol.value} with {mechanism} requires: expected both",
        )
    return ClientSecurity(
        security_protocol=protocol,
        sasl_mechanism=mechanism,
        username=username,
        password=password,
        # Delegation tokens are SCRAM credentials: PLAIN ignores the option.
        token_auth=mechanism != "PLAIN" and options.get("tokenauth", "").lower() == "true",
        tls=tls,
    )


# TLS settings from ssl.* (SslConfigs, and the checks of DefaultSslEngineFactory).


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
    pem_values = [key for key in pem_keys if properties.text_or_none(key)]
    if kind not in STORE_TYPES:
        raise properties.error(
            type_key, f"{properties.display_value(type_key)}: expected one of {', '.join(STORE_TYPES)}"
        )
    # Kafka's own rules and error cases (DefaultSslEngineFactory.createKeystore): contradictions fail, nothing is
    # guessed.
    if pem_values and kind != "PEM":
        raise properties.contradiction(
            pem_values[0], type_key, f"PEM text is set, but the type is {kind}: expected PEM"
        )
    if pem_values and path is not None:
        raise properties.contradiction(pem_values[0], location, "expected the text or the file")
    if pem_values and len(pem_values) < len(pem_keys):
        raise properties.error(pem_values[0], f"{', '.join(set(pem_keys) - set(pem_values))} is missing: expected both")
    if password is not None and kind == "PEM":
        raise properties.contradiction(password_key, type_key, "a PEM store has no password, only ssl.key.password")
    if password is not None and path is None:
        raise properties.contradiction(password_key, location, "a password is set, but no file")
    if name == "ssl.keystore" and path is not None and password is None and kind != "PEM":
        raise properties.error(password_key, f"not set, but {location} is: expected the store's password")
    return _Store(path=None if path is None else Path(path), type=kind, password=password)


def _client_auth(properties: Properties, *, sasl: bool) -> ClientAuth:
    choices = tuple(choice.value for choice in ClientAuth)
    value = ClientAuth(properties.choice(CLIENT_AUTH, choices, ClientAuth.NONE.value))
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


# Delegation token settings, and the lifetime of logins: delegation.token.*, connections.max.reauth.ms.


SECRET = "delegation.token.secret.key"  # noqa: S105 - the key's name
DECOY_SECRET = "aclog.scram.decoy.secret"  # noqa: S105 - the key's name
MAX_LIFETIME = "delegation.token.max.lifetime.ms"
EXPIRY_TIME = "delegation.token.expiry.time.ms"
EXPIRY_CHECK_INTERVAL = "delegation.token.expiry.check.interval.ms"
MAX_REAUTH = "connections.max.reauth.ms"


def read_token_settings(properties: Properties) -> TokenSettings:
    """Read Kafka's keys, with its defaults (DelegationTokenManagerConfigs); an empty secret disables tokens.

    Raises:
        ConfigError: numbers out of bounds.

    """
    default = TokenSettings()
    return TokenSettings(
        secret=properties.text_or_none(SECRET),
        max_lifetime_ms=properties.long(MAX_LIFETIME, default.max_lifetime_ms, least=1),
        expiry_time_ms=properties.long(EXPIRY_TIME, default.expiry_time_ms, least=1),
        expiry_check_interval_ms=properties.long(EXPIRY_CHECK_INTERVAL, default.expiry_check_interval_ms, least=1),
    )


def session_lifetimes(properties: Properties, mechanisms: Iterable[str]) -> Mapping[str, int]:
    """Return how long, in ms, a login by each mechanism is valid on a listener (KIP-368).

    A mechanism's own value takes precedence over the listener's. Unlimited ones (0 and below) are left out.

    Raises:
        ConfigError: not integers.

    """
    shared = properties.long(MAX_REAUTH, 0)
    lifetimes = {}
    for mechanism in mechanisms:
        own = f"{mechanism.lower()}.{MAX_REAUTH}"
        lifetime = properties.long(own, shared)
        if lifetime > 0:
            lifetimes[mechanism] = lifetime
    return lifetimes


# Security properties that are refused, since ignoring them could admit clients that the operator means to refuse.


_ACCEPTED = {
    "principal.builder.class": ("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",),
    "sasl.server.callback.handler.class": (),
    "sasl.client.callback.handler.class": (),
    "sasl.login.callback.handler.class": (),
    "sasl.login.class": (),
    "security.providers": (),
    "ssl.client.auth": ("none", "requested", "required"),
    "ssl.engine.factory.class": (),
    "ssl.keymanager.algorithm": ("SunX509", "NewSunX509", "PKIX"),
    "ssl.protocol": ("TLS", "TLSv1.2", "TLSv1.3"),
    "ssl.provider": (),
    "ssl.trustmanager.algorithm": ("PKIX", "SunX509"),
}
"""Keys that control admission, and their supported values, also for listeners that do not use them."""

CHECKED_KEYS = frozenset({*_ACCEPTED, "authorizer.class.name", "config.providers"})


def refuse_plugins(properties: Properties) -> None:
    """Refuse security properties that only Java can implement, also with a listener's or a mechanism's prefix.

    Raises:
        ConfigError: there is one.

    """
    for key, value in properties.values.items():
        for name in _endings(key):
            accepted, text = _ACCEPTED.get(name), value.strip()
            if accepted is not None and text and text not in accepted:
                only = f", only {' or '.join(accepted)}" if accepted else ""
                raise properties.error(key, f"{text!r} is not supported here{only}: expected it to be left out")


def _endings(key: str) -> Iterator[str]:
    """Yield the key, and the rest of `listener.name.<name>.<key>` and `listener.name.<name>.<mechanism>.<key>`."""
    yield key
    if key.startswith("listener.name."):
        parts = key.split(".")
        yield from (".".join(parts[start:]) for start in range(3, len(parts)))
