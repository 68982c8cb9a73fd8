"""Cipher suites by their names in Java (ssl.cipher.suites), which are IANA's, translated to OpenSSL's. Pure."""

from collections.abc import Iterable, Iterator

from attrs import frozen

from aclog.metalog.errors import ConfigError

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
    wanted = [name for name in dict.fromkeys(names) if name not in _SIGNALS]
    tls_1_3 = TLS_1_3.intersection(wanted)
    if tls_1_3 and tls_1_3 != TLS_1_3:
        raise ConfigError(
            f"ssl.cipher.suites: only some suites of TLS 1.3: expected all ({', '.join(sorted(TLS_1_3))}) or none"
        )
    known = dict(_known())
    for name in wanted:
        if name not in known and name not in TLS_1_3:
            raise ConfigError(f"ssl.cipher.suites: {name}: expected a suite of TLS 1.2 or 1.3 in Java's name for it")
    return CipherSuites(tls_1_3=bool(tls_1_3), tls_1_2=tuple(known[name] for name in wanted if name in known))


def _known() -> Iterator[tuple[str, str]]:
    """Yield the supported suites of TLS 1.2: Java's name and OpenSSL's."""
    for exchange, prefix in _KEY_EXCHANGES.items():
        for cipher, name in _CIPHERS.items():
            if (exchange, cipher) not in _NO_PAIRS:
                yield f"TLS_{exchange}_WITH_{cipher}", f"{prefix}{name}"
