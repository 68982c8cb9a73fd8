from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.config.node_config import ClientSecurity, HostPort, Limits, NodeConfig, Role
from aclog.config.server_properties import KNOWN_KEYS, load_config, parse_config
from aclog.credentials.tokens import TokenSettings
from aclog.metalog.errors import ConfigError
from aclog.protocol.session import SecurityProtocol
from tests.support.kafka.jvm import ROOT
from tests.support.nodes.node_properties import BROKER, COMBINED, CONTROLLER, JAAS, MODULE, SASL, SCRAM_MODULE, changed

FIXTURES = sorted((ROOT / "tests" / "data").glob("kafka-4.3.1-*/expected/server.properties"))


def parsed(base: dict[str, str], changes: dict[str, str | None] | None = None, *, strict: bool = False) -> NodeConfig:
    return parse_config(changed(base, changes or {}), "it", strict=strict, host_name=lambda: "this-machine")


def error_of(base: dict[str, str], changes: dict[str, str | None]) -> str:
    with pytest.raises(ConfigError) as error:
        parsed(base, changes)
    assert str(error.value).startswith("it: ")
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.parts[-3])
def test_a_real_kafkas_configuration_loads(path: Path) -> None:
    config = load_config(path, strict=True)
    assert config.roles == {Role.CONTROLLER, Role.BROKER}
    assert config.node_id == 1
    assert config.metadata_log_dir == Path("data")
    clients, controllers = config.listeners
    assert clients.name == config.inter_broker_listener_name == "SASL_PLAINTEXT"
    assert clients.sasl_mechanisms == ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    assert clients.plain_users["alice"] == "alice-secret"
    assert not clients.controller
    assert not clients.early_start
    assert controllers.name == "CONTROLLER"
    assert controllers.controller
    assert controllers.early_start
    assert controllers.sasl_mechanisms == ("PLAIN",)
    assert controllers.plain_users == {"admin": "admin-secret"}
    assert config.controller_client == ClientSecurity(
        security_protocol=SecurityProtocol.SASL_PLAINTEXT,
        sasl_mechanism="PLAIN",
        username="admin",
        password="admin-secret",
    )
    assert config.controller_quorum == (controllers.bind,)
    assert config.voter_ids == ()
    assert config.properties["super.users"] == "User:admin"
    assert [note.count("not used here") for note in config.notes[:1]] == [1]
    assert "offsets.topic.num.partitions" in config.notes[0]
    assert "secret" not in repr(config).replace("delegation.token.secret.key", "")


def test_a_key_set_twice_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    text = "".join(f"{key}={value}\n" for key, value in COMBINED.items())
    path.write_text(text + "super.users=User:a\nsuper.users=User:a\nnode.id=7\n")
    config = load_config(path)
    assert config.node_id == 7
    assert config.notes == (f"{path}: node.id is set more than once: the last value is used",)


@pytest.mark.parametrize("content", [b"\\u00zz=1", b"a=\\uqqqq"])
def test_a_malformed_file_is_a_config_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"server\.properties: a malformed"):
        load_config(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.properties: no such file"):
        load_config(tmp_path / "none.properties")
    with pytest.raises(ConfigError, match="cannot read"):
        load_config(tmp_path)


def test_unknown_keys_are_noted_or_with_strict_an_error() -> None:
    changes = {"zookeeper.connect": "x:1", "super.user": "User:a", "log.retention.hours": "1", "rsm.config.a": "b"}
    config = parsed(COMBINED, changes)
    unused, unknown = config.notes
    assert unused == "it: Kafka's keys that are not used here: log.retention.hours, rsm.config.a"
    assert unknown == (
        "it: unknown keys: super.user (did you mean super.users?), zookeeper.connect (only with "
        "authorizer.class.name=kafka.security.authorizer.AclAuthorizer)"
    )
    with pytest.raises(ConfigError, match=r"unknown keys: super\.user \(did you mean"):
        parsed(COMBINED, changes, strict=True)
    assert len(parsed(COMBINED, {"log.retention.hours": "1"}, strict=True).notes) == 1


def test_an_unknown_key_of_our_own_is_always_an_error() -> None:
    assert "did you mean aclog.http.listener" in error_of(COMBINED, {"aclog.http.listeners": "localhost:1"})


def test_keys_of_a_listener() -> None:
    changes = {
        "listener.name.sasl_plaintext.max.connections": "5",
        "listener.name.sasl_plaintext.plain.sasl.login.retry.backoff.ms": "5",
        "listener.name.SASL_PLAINTEXT.ssl.client.auth": "none",
        "listener.name.other.ssl.keystore.type": "PEM",
        "listener.name.sasl_plaintext.no.such": "1",
        "listener.name.sasl_plaintext.sasl.jaas.config": "secret",
    }
    unused, unknown = parsed(SASL, changes).notes
    assert "listener.name.sasl_plaintext.max.connections" in unused
    assert "plain.sasl.login.retry.backoff.ms" in unused
    assert "listener.name.sasl_plaintext.sasl.jaas.config" in unused
    assert "listener.name.SASL_PLAINTEXT.ssl.client.auth (" in unknown
    assert "listener.name.other.ssl.keystore.type (" in unknown
    assert "listener.name.sasl_plaintext.no.such" in unknown
    assert "plain.sasl.jaas.config" not in unused + unknown


@pytest.mark.parametrize(
    ("base", "changes", "keys"),
    [
        (COMBINED, {"broker.id": "3"}, ["node.id", "broker.id"]),
        (
            COMBINED,
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            ["inter.broker.listener.name", "security.inter.broker.protocol"],
        ),
        (COMBINED, {"controller.quorum.voters": "2@a:1"}, ["controller.quorum.voters", "node.id"]),
        (BROKER, {"controller.quorum.voters": "2@a:1"}, ["controller.quorum.voters", "process.roles"]),
        (COMBINED, {"controller.listener.names": "PLAINTEXT,X"}, ["listener.security.protocol.map"]),
        (CONTROLLER, {"listeners": "CONTROLLER://:1,PLAINTEXT://:2"}, ["listeners", "controller.listener.names"]),
        (COMBINED, {"listeners": "CONTROLLER://:1"}, ["advertised.listeners", "controller.listener.names"]),
        (COMBINED, {"listeners": "PLAINTEXT://0.0.0.0:1,CONTROLLER://:2"}, ["listeners", "advertised.listeners"]),
        (COMBINED, {"advertised.listeners": "PLAINTEXT://a:1,SSL://b:2"}, ["advertised.listeners", "listeners"]),
        (COMBINED, {"early.start.listeners": "FOO"}, ["early.start.listeners", "listeners"]),
        (COMBINED, {"inter.broker.listener.name": "SSL"}, ["inter.broker.listener.name", "advertised.listeners"]),
        (COMBINED, {"security.inter.broker.protocol": "SSL"}, ["security.inter.broker.protocol"]),
        (COMBINED, {"queued.max.request.bytes": "5"}, ["queued.max.request.bytes", "socket.request.max.bytes"]),
        (
            COMBINED,
            {"connections.max.idle.ms": "50"},
            ["connection.failed.authentication.delay.ms", "connections.max.idle.ms"],
        ),
        (
            SASL,
            {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"},
            ["sasl.mechanism.inter.broker.protocol", "sasl.enabled.mechanisms"],
        ),
    ],
)
def test_contradictions_name_both_keys(base: dict[str, str], changes: dict[str, str | None], keys: list[str]) -> None:
    error = error_of(base, changes)
    assert "contradict each other" in error
    assert all(key in error for key in keys)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("principal.builder.class", "com.example.Builder"),
        ("listener.name.plaintext.principal.builder.class", "com.example.Builder"),
        ("sasl.server.callback.handler.class", "com.example.Handler"),
        ("listener.name.plaintext.plain.sasl.server.callback.handler.class", "com.example.Handler"),
        ("listener.name.plaintext.scram-sha-256.sasl.login.callback.handler.class", "com.example.Handler"),
        ("sasl.client.callback.handler.class", "com.example.Handler"),
        ("sasl.login.class", "com.example.Login"),
        ("ssl.engine.factory.class", "com.example.Factory"),
        ("listener.name.plaintext.ssl.engine.factory.class", "com.example.Factory"),
        ("ssl.trustmanager.algorithm", "Odd"),
        ("ssl.keymanager.algorithm", "Odd"),
        ("ssl.provider", "BC"),
        ("ssl.protocol", "SSLv3"),
        ("security.providers", "com.example.Provider"),
        ("config.providers", "file"),
        ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.OtherAuthorizer"),
        ("authorizer.class.name", "kafka.security.authorizer.OtherAuthorizer"),
        ("authorizer.class.name", "com.example.Authorizer"),
        ("authorizer.class.name", "pathlib.Path"),
        ("max.connections.per.ip", "0"),
    ],
)
def test_unsupported_settings_stop_the_start(key: str, value: str) -> None:
    assert key in error_of(COMBINED, {key: value})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("principal.builder.class", "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"),
        ("ssl.trustmanager.algorithm", "PKIX"),
        ("ssl.keymanager.algorithm", "SunX509"),
        ("ssl.protocol", "TLSv1.3"),
        ("connections.max.reauth.ms", "0"),
        ("sasl.server.callback.handler.class", ""),
        ("authorizer.class.name", "aclog.authorizer.standard.StandardAuthorizer"),
    ],
)
def test_refused_keys_with_default_values_are_accepted(key: str, value: str) -> None:
    assert parsed(COMBINED, {key: value}).notes == ()


@pytest.mark.parametrize(
    "name",
    [
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "kafka.security.authorizer.AclAuthorizer",
        "kafka.security.auth.SimpleAclAuthorizer",
        "aclog.zookeeper.authorizer.AclAuthorizer",
    ],
)
def test_kafkas_authorizers_are_ours(name: str) -> None:
    assert parsed(COMBINED, {"authorizer.class.name": name}).authorizer_class_name == name
    assert parsed(COMBINED).authorizer_class_name is None
    assert parsed(COMBINED, {"authorizer.class.name": ""}).authorizer_class_name is None


def test_the_keys_of_the_authorizer_on_zookeeper_are_its_own() -> None:
    keys = {"zookeeper.connect": "a:2181", "authorizer.zookeeper.url": "b:2181", "kafka.superusers": "User:a"}
    keys |= {"inter.broker.protocol.version": "1.1"}
    name = "kafka.security.authorizer.AclAuthorizer"
    assert parsed(COMBINED, {"authorizer.class.name": name, **keys}).notes == ()
    (note,) = parsed(COMBINED, keys).notes
    only = f"(only with authorizer.class.name={name})"
    assert note == (
        f"it: unknown keys: authorizer.zookeeper.url {only}, inter.broker.protocol.version {only}, "
        f"kafka.superusers (did you mean super.users?), zookeeper.connect {only}"
    )
    misspelt = {"allow.everyone.if.no.acls.found": "true", "kafka.superuser": "User:a"}
    (note,) = parsed(COMBINED, {"authorizer.class.name": name, **keys, **misspelt}).notes
    assert note == (
        "it: unknown keys: allow.everyone.if.no.acls.found (did you mean allow.everyone.if.no.acl.found?), "
        "kafka.superuser (did you mean super.users?)"
    )


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("kafka.superusers", "super.users"),
        ("kafka.super.users", "super.users"),
        ("superusers", "super.users"),
        ("super_users", "super.users"),
        ("Super.Users", "super.users"),
        ("allow.everyone", "allow.everyone.if.no.acl.found"),
        ("allow.everyone.if.no.acl", "allow.everyone.if.no.acl.found"),
        ("authorizer.class", "authorizer.class.name"),
        ("authoriser.class.name", "authorizer.class.name"),
        ("authorizer-class-name", "authorizer.class.name"),
        ("delegation.token.master.key", "delegation.token.secret.key"),
        ("sasl.enabled.mechanism", "sasl.enabled.mechanisms"),
    ],
)
def test_misspelt_keys_of_access_are_recognized(key: str, meant: str) -> None:
    assert parsed(COMBINED, {key: "x"}).notes == (f"it: unknown key: {key} (did you mean {meant}?)",)


def test_the_file_of_kip_11_is_not_read() -> None:
    (note,) = parsed(COMBINED, {"authorizer.config.path": "/etc/authorizer.properties"}).notes
    assert note == "it: unknown key: authorizer.config.path (no such file is read: its keys belong here)"


@pytest.mark.parametrize("roles", [None, ""])
def test_zookeeper_mode_has_two_ways_out(roles: str | None) -> None:
    assert error_of(COMBINED, {"process.roles": roles, "zookeeper.connect": "a:2181"}) == (
        "it: process.roles: not set, but zookeeper.connect is, which is ZooKeeper mode: Kafka 3.9 was the last to have "
        "it. Two ways out: copy ACLs, users and tokens into a log (aclog migrate), set process.roles and remove "
        "zookeeper.connect; or leave the ACLs in ZooKeeper: set process.roles and "
        "authorizer.class.name=kafka.security.authorizer.AclAuthorizer"
    )
    assert "ZooKeeper" not in error_of(COMBINED, {"process.roles": roles})


@pytest.mark.parametrize("mechanism", ["GSSAPI", "OAUTHBEARER", "plain", "SCRAM-SHA-1"])
def test_unsupported_mechanisms_stop_the_start(mechanism: str) -> None:
    changes = {"sasl.enabled.mechanisms": f"PLAIN,{mechanism}"}
    assert f"sasl.enabled.mechanisms: '{mechanism}'" in error_of(SASL, changes)


def test_mechanisms_do_not_matter_where_no_listener_uses_sasl() -> None:
    assert parsed(COMBINED, {"sasl.enabled.mechanisms": "GSSAPI"}).listeners[0].sasl_mechanisms == ()


def test_plain_needs_its_jaas_line_and_its_own_module() -> None:
    key = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    assert f"{key}: not set" in error_of(SASL, {key: None})
    assert f"{key}: not the login module of PLAIN" in error_of(SASL, {key: "com.example.Module required;"})
    assert parsed(SASL).listeners[0].plain_users == {"admin": "admin-secret", "bob": "bob-secret"}


def test_scram_needs_no_jaas_line() -> None:
    config = parsed(SASL, {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,PLAIN"})
    assert config.listeners[0].sasl_mechanisms == ("PLAIN", "SCRAM-SHA-512")


def test_a_broker_logs_in_to_the_controllers_as_their_listener_says() -> None:
    protocols = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"}
    mechanism = {"sasl.mechanism.controller.protocol": "SCRAM-SHA-512"}
    key = "listener.name.controller.scram-sha-512.sasl.jaas.config"
    assert "sasl.mechanism.controller.protocol: 'GSSAPI'" in error_of(BROKER, protocols)
    assert f"{key}: no username and password" in error_of(BROKER, protocols | mechanism)
    line = {key: f'{SCRAM_MODULE} required username="b" password="p" tokenauth="TRUE";'}
    login = parsed(BROKER, protocols | mechanism | line).controller_client
    assert (login.security_protocol, login.sasl_mechanism) == (SecurityProtocol.SASL_PLAINTEXT, "SCRAM-SHA-512")
    assert (login.username, login.password, login.token_auth) == ("b", "p", True)


def test_a_single_controller_needs_no_login() -> None:
    changes = {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
        "security.inter.broker.protocol": None,
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": f'{MODULE} required user_a="b";',
    }
    assert parsed(CONTROLLER, changes).controller_client == ClientSecurity()


@pytest.mark.parametrize("value", ["${file:/etc/secret:password}", "x${vault:a}"])
def test_config_providers_stop_the_start(value: str) -> None:
    error = error_of(COMBINED, {"super.users": value})
    assert "super.users: a ${...}" in error
    assert value not in error


def test_a_plain_dollar_is_not_a_config_provider() -> None:
    assert parsed(COMBINED, {"ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/,DEFAULT"}).notes == ()


def test_more_than_one_voter_is_an_error_only_for_a_controller() -> None:
    voters = {"controller.quorum.voters": "1@a:1,3@b:2"}
    assert "2 voters: expected one" in error_of(COMBINED, voters)
    config = parsed(BROKER, voters | {"controller.quorum.bootstrap.servers": None})
    assert config.controller_quorum == (HostPort(host="a", port=1), HostPort(host="b", port=2))
    assert config.voter_ids == (1, 3)


def test_where_to_ask_for_the_leader() -> None:
    changes = {"controller.quorum.bootstrap.servers": "b:2,a:1,[::1]:3", "controller.quorum.voters": "1@a:1"}
    assert [str(address) for address in parsed(COMBINED, changes).controller_quorum] == ["b:2", "a:1", "[::1]:3"]
    unknown = {"controller.quorum.bootstrap.servers": None, "controller.quorum.voters": "1@0.0.0.0:0"}
    assert parsed(COMBINED, unknown).controller_quorum == ()
    assert "no voter has an address" in error_of(BROKER, unknown)


def test_an_early_start_listener_without_known_users_is_noted() -> None:
    scram = {"early.start.listeners": "SASL_PLAINTEXT", "sasl.enabled.mechanisms": "SCRAM-SHA-256"}
    config = parsed(SASL, scram | {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"})
    assert config.notes == (
        (
            "it: listener SASL_PLAINTEXT starts early with SCRAM only, whose credentials are in the log: "
            "no login succeeds there before the log is replayed"
        ),
    )
    assert parsed(SASL, {"early.start.listeners": "SASL_PLAINTEXT"}).notes == ()


def test_super_users_are_checked() -> None:
    assert "super.users" in error_of(COMBINED, {"super.users": "admin"})


def test_limits() -> None:
    changes = {
        "socket.request.max.bytes": "1000000",
        "sasl.server.max.receive.size": "2000000",
        "max.connections": "7",
        "max.connections.per.ip": "3",
        "connections.max.idle.ms": "1500",
        "queued.max.requests": "9",
        "queued.max.request.bytes": "1000000",
        "request.timeout.ms": "2500",
        "aclog.authentication.timeout.ms": "500",
    }
    assert parsed(COMBINED, changes).limits == Limits(
        frame_bytes=1_000_000,
        unauthenticated_frame_bytes=1_000_000,
        connections=7,
        connections_per_ip=3,
        idle_seconds=1.5,
        authentication_seconds=0.5,
        in_flight_requests=9,
        in_flight_bytes=1_000_000,
        request_seconds=2.5,
    )
    assert parsed(COMBINED).limits == Limits()
    assert parsed(COMBINED, {"queued.max.request.bytes": "-1"}).limits == Limits()
    assert parsed(COMBINED, {"socket.request.max.bytes": str(1 << 30)}).limits.in_flight_bytes == 1 << 30
    assert parsed(COMBINED, {"connections.max.idle.ms": "-1"}).limits.idle_seconds > 10**8


def test_checkpoints() -> None:
    changes = {
        "metadata.log.max.record.bytes.between.snapshots": "60000",
        "metadata.log.max.snapshot.interval.ms": "0",
        "metadata.max.retention.bytes": "-5",
        "metadata.max.retention.ms": "1000",
        "metadata.log.segment.bytes": "8388608",
    }
    policy = parsed(COMBINED, changes).checkpoints
    assert (policy.bytes_between, policy.interval_ms) == (60_000, 0)
    assert (policy.retention_bytes, policy.retention_ms, policy.segment_bytes) == (-1, 1000, 8 << 20)
    internal = changes | {"internal.metadata.log.segment.bytes": "20000"}
    assert parsed(COMBINED, internal).checkpoints.segment_bytes == 20_000


def test_where_metrics_are_served() -> None:
    assert parsed(COMBINED, {"aclog.http.listener": "127.0.0.1:9100"}).http == HostPort(host="127.0.0.1", port=9100)
    assert parsed(COMBINED).http is None
    assert "expected one host:port" in error_of(COMBINED, {"aclog.http.listener": "a:1,b:2"})


def test_log_directories() -> None:
    config = parsed(COMBINED, {"log.dirs": "/a, /b,/a", "metadata.log.dir": "/m"})
    assert config.log_dirs == (Path("/a"), Path("/b"))
    assert config.metadata_log_dir == Path("/m")
    assert "metadata.log.dir: empty" in error_of(COMBINED, {"metadata.log.dir": " "})


def test_log_dirs_come_before_log_dir() -> None:
    config = parsed(COMBINED, {"log.dir": "/other"})
    assert config.log_dirs == (Path("/tmp/x"),)
    assert config.notes == ("it: log.dir is not used, since log.dirs is set",)


def test_no_nul() -> None:
    assert "log.dirs: its value contains a NUL" in error_of(COMBINED, {"log.dirs": "/a\0b"})


_VALUES = st.one_of(
    st.text(max_size=20),
    st.text(alphabet="A0:/,;@[]. -", max_size=20),
    st.sampled_from(["", "0", "-1", "PLAIN", "SSL", "SASL_SSL", "a:1", "1@a:1", "SSL://:1,CONTROLLER://:2", "true"]),
)


@given(st.dictionaries(st.sampled_from(sorted(KNOWN_KEYS)), _VALUES, max_size=5), st.sampled_from([SASL, BROKER]))
def test_any_values_give_a_configuration_or_a_config_error(changes: dict[str, str], base: dict[str, str]) -> None:
    with suppress(ConfigError):
        assert repr(parse_config(base | changes, "it", host_name=lambda: "here"))


@given(st.binary(max_size=60))
def test_any_file_gives_a_configuration_or_a_config_error(content: bytes) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "server.properties"
        path.write_bytes(content)
        with suppress(ConfigError):
            assert load_config(path)


def test_invalid_ports() -> None:
    assert "up to 65535" in error_of(COMBINED, {"listeners": "PLAINTEXT://a:65536,CONTROLLER://a:1"})


def test_the_host_name_is_looked_up_only_if_needed() -> None:
    def unwanted() -> str:
        raise AssertionError

    assert parse_config(COMBINED, "it", host_name=unwanted).listeners[0].advertised.host == "localhost"
    everywhere = changed(COMBINED, {"listeners": "PLAINTEXT://[::]:1,CONTROLLER://:2"})
    listeners = parse_config(everywhere, "it", host_name=lambda: "here").listeners
    assert [str(listener.advertised) for listener in listeners] == ["here:1", "here:2"]
    assert [listener.bind.host for listener in listeners] == ["::", ""]


def test_tokens() -> None:
    default = parsed(COMBINED).tokens
    assert default == TokenSettings(
        secret=None, max_lifetime_ms=604_800_000, expiry_time_ms=86_400_000, expiry_check_interval_ms=3_600_000
    )
    keys = {"secret.key": " hunter2 ", "max.lifetime.ms": "3", "expiry.time.ms": "2", "expiry.check.interval.ms": "1"}
    config = parsed(COMBINED, {f"delegation.token.{key}": value for key, value in keys.items()}, strict=True)
    assert config.notes == ()
    assert config.tokens == TokenSettings(
        secret="hunter2", max_lifetime_ms=3, expiry_time_ms=2, expiry_check_interval_ms=1
    )
    assert parsed(COMBINED, {"delegation.token.secret.key": ""}).tokens == default


@pytest.mark.parametrize("key", ["max.lifetime.ms", "expiry.time.ms", "expiry.check.interval.ms"])
@pytest.mark.parametrize("value", ["0", "-1", "x", ""])
def test_token_times_are_positive(key: str, value: str) -> None:
    assert f"delegation.token.{key}: " in error_of(COMBINED, {f"delegation.token.{key}": value})


def test_session_lifetimes() -> None:
    key = "connections.max.reauth.ms"
    of_all = {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512", key: "5000"}
    clients = parsed(SASL, of_all, strict=True).listeners[0]
    assert clients.session_lifetimes_ms == dict.fromkeys(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), 5000)
    own = {f"listener.name.sasl_plaintext.{key}": "0", f"listener.name.sasl_plaintext.scram-sha-256.{key}": "7000"}
    clients, controllers = parsed(SASL, of_all | own, strict=True).listeners
    assert clients.session_lifetimes_ms == {"SCRAM-SHA-256": 7000}
    assert controllers.session_lifetimes_ms == {}, "PLAINTEXT"
    assert f"it: {key}: 'soon'" in error_of(COMBINED, {key: "soon"})


SECRETS = {
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": "hunter2 required;",
    "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": 'm required password="hunter2"',
    "sasl.jaas.config": "hunter2",
    "ssl.keystore.password": "hunter2",
    "ssl.key.password": "hunter2",
    "ssl.truststore.password": "hunter2",
    "ssl.keystore.key": "hunter2",
    "ssl.truststore.certificates": "hunter2",
    "delegation.token.secret.key": "hunter2",
    "my.own.thing": "hunter2",
    "listener.name.none.ssl.key.password": "hunter2",
    "ssl.keystore.certificate.chain": "${hunter2:x}",
}


@pytest.mark.parametrize("key", SECRETS)
@pytest.mark.parametrize("base", ["SASL", "SSL"])
def test_secrets_are_never_shown(key: str, base: str) -> None:
    tls = changed(
        SASL,
        {
            "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_SSL,CONTROLLER:PLAINTEXT",
            "ssl.keystore.location": "k.jks",
        },
    )
    properties = (SASL if base == "SASL" else tls) | {key: SECRETS[key]}
    try:
        told = repr(parse_config(properties, "it"))
    except ConfigError as error:
        told = str(error)
    assert "hunter2" not in told
    assert JAAS not in told
    assert "bob-secret" not in told
