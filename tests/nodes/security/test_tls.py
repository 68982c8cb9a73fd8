"""TLS contexts of listeners and clients, with handshakes in memory, before and after the stores change."""

import asyncio
import ssl
from functools import cache, partial

import attrs
import pytest

from aclog.authorizer.settings import KafkaPrincipal
from aclog.config.node_config import ClientAuth, TlsSettings
from aclog.config.properties import SslPrincipalMapper
from aclog.config.security import TLS_1_3, cipher_suites
from aclog.metalog.errors import ConfigError
from aclog.protocol.session import ANONYMOUS
from aclog.security.principals import AuthenticationError, peer_principal
from aclog.security.tls import CertificateWatcher, client_context, reload, server_context
from tests.support.nodes.certificates import Authority

REQUIRED, REQUESTED, NONE = ClientAuth.REQUIRED, ClientAuth.REQUESTED, ClientAuth.NONE
TLS_1_2_SUITE = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
MAPPER = SslPrincipalMapper.parse("DEFAULT")


@cache
def authority(name="root"):
    return Authority.make(name)


@cache
def issued(name, by="root"):
    return authority(by).issue(name)


class Files:
    """The stores of a server and its clients."""

    def __init__(self, directory):
        self.directory = directory
        self.server, self.trust = directory / "server.pem", directory / "trust.pem"
        self.write()

    def write(self, server="server", by="root", trust="root"):
        issued(server, by).write_pem(self.server)
        authority(trust).write_pem(self.trust)

    def server_settings(self, **changes):
        values = {"keystore": self.server, "keystore_type": "PEM", "truststore": self.trust, "truststore_type": "PEM"}
        return TlsSettings(**(values | changes))

    def client_settings(self, name=None, by="root", trusts="root", **changes):
        values = {"truststore": authority(trusts).write_pem(self.directory / "ca.pem"), "truststore_type": "PEM"}
        if name is not None:
            values |= {"keystore": issued(name, by).write_pem(self.directory / "client.pem"), "keystore_type": "PEM"}
        return TlsSettings(**(values | changes))


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


def shake(server, client, *, host="localhost", session=None):
    """Return both ends of a connection after the handshake; raise the SSLError of the end that rejects it."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    there = server.wrap_bio(to_server, to_client, server_side=True)
    here = client.wrap_bio(to_client, to_server, server_hostname=host, session=session)
    waiting = [here, there]
    for end in [here, there] * 4:
        try:
            end.do_handshake()
            waiting = [other for other in waiting if other is not end]
        except ssl.SSLWantReadError:
            pass
    assert not waiting
    there.write(b"hello")
    assert here.read(5) == b"hello"  # TLS 1.3 tells a client only now that its certificate is refused
    return there, here


def shown(client):
    """Return the server's common name as seen by a client."""
    return dict(pair for rdn in client.getpeercert()["subject"] for pair in rdn)["commonName"]


@pytest.mark.parametrize("versions", [("TLSv1.2",), ("TLSv1.3",), ("TLSv1.2", "TLSv1.3")])
@pytest.mark.parametrize("auth", ClientAuth)
def test_a_client_with_a_certificate(files, versions, auth):
    server = server_context(files.server_settings(client_auth=auth, protocols=versions))
    there, here = shake(server, client_context(files.client_settings("alice")))
    assert here.version() == versions[-1]
    assert shown(here) == "server"
    expected = ANONYMOUS if auth is NONE else KafkaPrincipal(type="User", name="CN=alice")
    assert peer_principal(there, MAPPER) == expected


@pytest.mark.parametrize("auth", [NONE, REQUESTED])
def test_a_client_without_a_certificate_is_anonymous(files, auth):
    server = server_context(files.server_settings(client_auth=auth))
    there, _ = shake(server, client_context(files.client_settings()))
    assert peer_principal(there, MAPPER) == ANONYMOUS


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_certificate_is_required(files, version):
    server = server_context(files.server_settings(client_auth=REQUIRED))
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        shake(server, client_context(files.client_settings(protocols=(version,))))


@pytest.mark.parametrize("auth", [REQUIRED, REQUESTED])
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_an_untrusted_certificate_is_rejected(files, auth, version):
    server = server_context(files.server_settings(client_auth=auth))
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(server, client_context(files.client_settings("mallory", by="other", protocols=(version,))))


def test_a_trusted_certificate_need_not_be_a_root(files):
    authority_below = Authority.make("below", authority())
    authority_below.write_pem(files.trust)
    server = server_context(files.server_settings(client_auth=REQUIRED))
    alice = authority_below.issue("alice").write_pem(files.directory / "alice.pem")
    settings = attrs.evolve(files.client_settings(), keystore=alice, keystore_type="PEM")
    there, _ = shake(server, client_context(settings))
    assert peer_principal(there, MAPPER).name == "CN=alice"
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(server, client_context(files.client_settings("bob")))


def test_names_are_mapped(files):
    server = server_context(files.server_settings(client_auth=REQUIRED))
    there, _ = shake(server, client_context(files.client_settings("alice")))
    assert peer_principal(there, SslPrincipalMapper.parse("RULE:^CN=(.*)$/$1/U")).name == "ALICE"
    with pytest.raises(AuthenticationError, match="No rules apply to CN=alice"):
        peer_principal(there, SslPrincipalMapper.parse("RULE:^OU=(.*)$/$1/"))
    assert peer_principal(None, MAPPER) == ANONYMOUS


@pytest.mark.parametrize("host", ["elsewhere", "127.0.0.2"])
def test_a_client_checks_the_host(files, host):
    server = server_context(files.server_settings())
    with pytest.raises(ssl.SSLCertVerificationError, match=r"mismatch|not valid"):
        shake(server, client_context(files.client_settings()), host=host)
    shake(server, client_context(files.client_settings(endpoint_identification=False)), host=host)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_client_trusts_its_trust_store(files, host):
    server = server_context(files.server_settings())
    shake(server, client_context(files.client_settings()), host=host)
    for settings in (files.client_settings(trusts="other"), TlsSettings()):
        with pytest.raises(ssl.SSLCertVerificationError):
            shake(server, client_context(settings), host=host)


def test_no_common_protocol_version(files):
    server = server_context(files.server_settings(protocols=("TLSv1.3",)))
    with pytest.raises(ssl.SSLError):
        shake(server, client_context(files.client_settings(protocols=("TLSv1.2",))))


@pytest.mark.parametrize(
    ("suites", "version", "cipher"),
    [
        ((TLS_1_2_SUITE,), "TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        (("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",), "TLSv1.2", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        (tuple(sorted(TLS_1_3)), "TLSv1.3", None),
        ((*sorted(TLS_1_3), TLS_1_2_SUITE), "TLSv1.3", None),
    ],
)
def test_suites_by_javas_names(files, suites, version, cipher):
    server = server_context(files.server_settings(cipher_suites=suites))
    there, _ = shake(server, client_context(files.client_settings()))
    assert there.version() == version
    assert cipher in (None, there.cipher()[0])


def test_no_common_cipher_suite(files):
    server = server_context(files.server_settings(cipher_suites=(TLS_1_2_SUITE,)))
    client = client_context(files.client_settings(cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",)))
    with pytest.raises(ssl.SSLError):
        shake(server, client)


def test_every_suite_is_one_that_openssl_has():
    names = [f"TLS_{k}_WITH_{c}" for k in ("ECDHE_RSA", "RSA") for c in ("AES_256_GCM_SHA384", "AES_128_CBC_SHA")]
    assert cipher_suites([*names, *TLS_1_3, "TLS_EMPTY_RENEGOTIATION_INFO_SCSV", names[0]]).tls_1_2 == (
        "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDHE-RSA-AES128-SHA",
        "AES256-GCM-SHA384",
        "AES128-SHA",
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"keystore": None}, "ssl.keystore.location: not set"),
        ({"truststore": None, "client_auth": REQUIRED}, "ssl.truststore.location: not set"),
        ({"truststore": None, "client_auth": REQUESTED}, "ssl.truststore.location: not set"),
        ({"protocols": ("TLSv1.1",)}, "ssl.enabled.protocols: TLSv1.1: expected"),
        ({"protocols": ()}, "ssl.enabled.protocols"),
        ({"protocols": ("TLSv1.3",), "cipher_suites": (TLS_1_2_SUITE,)}, "ssl.enabled.protocols: TLSv1.3: expected"),
        ({"protocols": ("TLSv1.2",), "cipher_suites": tuple(TLS_1_3)}, "ssl.enabled.protocols: TLSv1.2: expected"),
        ({"cipher_suites": ("TLS_NO_SUCH",)}, "ssl.cipher.suites: TLS_NO_SUCH: expected a suite"),
        ({"cipher_suites": ("TLS_RSA_WITH_AES_256_CBC_SHA384",)}, "expected a suite"),
        ({"cipher_suites": ("TLS_AES_256_GCM_SHA384",)}, "ssl.cipher.suites: only some suites of TLS 1.3"),
    ],
)
def test_unsupported_settings_are_errors(files, changes, text):
    with pytest.raises(ConfigError, match=text):
        server_context(files.server_settings(**changes))


def test_the_key_does_not_stay_on_disk(files, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(files.directory / "temporary"))
    (files.directory / "temporary").mkdir()
    server_context(files.server_settings())
    assert list((files.directory / "temporary").iterdir()) == []


def test_the_temporary_key_file_cannot_be_written(files, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(files.directory / "nowhere"))
    with pytest.raises(ConfigError, match="cannot write a temporary file for the key: No such file"):
        server_context(files.server_settings())


def test_a_new_certificate_is_shown_at_once(files):
    settings = files.server_settings()
    context = server_context(settings)
    client = client_context(files.client_settings())
    standing, here = shake(context, client)
    files.write(server="server 2")
    assert shown(shake(context, client)[1]) == "server"
    reload(context, settings)
    assert shown(shake(context, client)[1]) == "server 2"
    assert shown(shake(context, client, host="127.0.0.1")[1]) == "server 2"
    standing.write(b"still here")
    assert here.read() == b"still here"


def test_a_certificate_no_longer_trusted_is_rejected(files):
    settings = files.server_settings(client_auth=REQUIRED)
    context = server_context(settings)
    alice, bob = (client_context(files.client_settings(n, by=by)) for n, by in (("alice", "root"), ("bob", "other")))
    shake(context, alice)
    with pytest.raises(ssl.SSLError):
        shake(context, bob)
    files.write(trust="other")
    reload(context, settings)
    assert peer_principal(shake(context, bob)[0], MAPPER).name == "CN=bob"
    with pytest.raises(ssl.SSLError):
        shake(context, alice)


def test_sessions_from_before_a_change_of_trust_are_not_resumed(files):
    settings = files.server_settings(client_auth=REQUIRED, protocols=("TLSv1.2",))
    context, alice = server_context(settings), client_context(files.client_settings("alice"))
    _, here = shake(context, alice)
    files.write(server="server 2")
    reload(context, settings)
    there, here = shake(context, alice, session=here.session)
    assert there.session_reused  # the same are trusted
    assert peer_principal(there, MAPPER).name == "CN=alice"
    files.write(trust="other")
    reload(context, settings)
    with pytest.raises(ssl.SSLError):
        shake(context, alice, session=here.session)


def test_tls_1_3_gives_no_tickets(files):
    _, here = shake(server_context(files.server_settings()), client_context(files.client_settings()))
    assert not here.session.has_ticket


@pytest.mark.parametrize("broken", ["key", "trust", "gone"])
def test_a_broken_file_changes_nothing(files, broken):
    settings = files.server_settings(client_auth=REQUIRED)
    context, client = server_context(settings), client_context(files.client_settings("alice"))
    if broken == "key":
        files.server.write_text(issued("other one").key_pem() + issued("server").certificate_pem())
    elif broken == "trust":
        files.trust.write_text("no certificate")
    else:
        files.server.unlink()
    with pytest.raises(ConfigError):
        reload(context, settings)
    assert shown(shake(context, client)[1]) == "server"


def test_a_watcher_reads_what_changed(files):
    settings = files.server_settings()
    context, client = server_context(settings), client_context(files.client_settings())
    watcher = CertificateWatcher(context=context, settings=settings)
    assert not watcher.check()
    files.write(server="a longer name")
    assert watcher.check()
    assert not watcher.check()
    assert shown(shake(context, client)[1]) == "a longer name"


def test_a_watcher_reports_a_broken_file_once_and_recovers(files):
    settings = files.server_settings()
    context, client = server_context(settings), client_context(files.client_settings())
    watcher = CertificateWatcher(context=context, settings=settings)
    files.server.write_text("half of a")
    with pytest.raises(ConfigError, match="0 private keys"):
        watcher.check()
    assert not watcher.check()
    assert shown(shake(context, client)[1]) == "server"
    files.server.unlink()
    with pytest.raises(ConfigError, match="No such file"):
        watcher.check()
    files.write(server="server 2")
    assert watcher.check()
    assert shown(shake(context, client)[1]) == "server 2"


def test_a_watcher_runs_until_it_is_cancelled(files):
    settings, reports, naps = files.server_settings(), [], []
    watcher = CertificateWatcher(context=server_context(settings), settings=settings)
    steps = [lambda: None, lambda: files.server.write_text("broken"), lambda: files.write(server="server 2")]

    async def sleep(seconds):
        naps.append(seconds)
        if not steps:
            raise asyncio.CancelledError
        steps.pop(0)()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(watcher.run(reports.append, interval=7.0, sleep=sleep))
    assert naps == [7.0] * 4
    assert [type(report) for report in reports] == [ConfigError, type(None)]


def test_over_sockets_by_asyncio(files):
    """As in a node: asyncio streams, the context replaced underneath, the principal from the transport."""
    settings = files.server_settings(client_auth=REQUIRED)
    context = server_context(settings)
    client = client_context(files.client_settings("alice"))
    principal_of = partial(peer_principal, mapper=MAPPER)
    seen = []

    async def serve(_reader, writer):
        seen.append(str(principal_of(writer.get_extra_info("ssl_object"))))
        writer.write(b"x")
        writer.close()
        await writer.wait_closed()

    async def connect(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client)
        name = shown(writer.get_extra_info("ssl_object"))
        assert await reader.read() == b"x"
        writer.close()
        await writer.wait_closed()
        return name

    async def main():
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        async with server:
            port = server.sockets[0].getsockname()[1]
            names = [await connect(port)]
            files.write(server="server 2")
            reload(context, settings)
            return [*names, await connect(port)]

    assert asyncio.run(main()) == ["server", "server 2"]
    assert seen == ["User:CN=alice"] * 2


def test_a_watcher_survives_unexpected_errors(files, monkeypatch):
    watcher = CertificateWatcher(context=server_context(files.server_settings()), settings=files.server_settings())
    outcomes, reports = [RuntimeError("odd"), True], []

    def check(_):
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def sleep(_):
        if not outcomes:
            raise asyncio.CancelledError

    monkeypatch.setattr(CertificateWatcher, "check", check)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(watcher.run(reports.append, sleep=sleep))
    assert [str(report) for report in reports] == ["the certificates cannot be read: RuntimeError", "None"]
