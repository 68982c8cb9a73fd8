"""Logging in at a provider: who comes in, and every way to come in as another."""

import asyncio
import json
import time
import urllib.error
import urllib.request
import warnings

import pytest
from attrs import evolve
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, OKPKey, RSAKey
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse

from aclog.console.login.guard import way_of
from aclog.console.login.oidc import LoginError, OidcSettings, OidcWay, claims_of, read_settings
from aclog.metalog.errors import ConfigError
from tests.support.web.browser import Browser
from tests.support.web.guarded import app_of, guard_of
from tests.support.web.oidc_provider import CLIENT, SECRET, OidcProvider, b64, path_of, served

BASE = "http://127.0.0.1:8181"


class Login:
    """A console whose login is at a provider, and what it told of failures."""

    def __init__(self, provider, *, audit=None, **settings):
        self.provider, self.told = provider, []
        given = {"issuer": provider.issuer, "client_id": CLIENT, "client_secret": SECRET, **settings}
        self.settings = OidcSettings(redirect_uri=f"{BASE}/login/callback", **given)
        self.way = OidcWay(read=lambda: self.settings, tell=self.told.append)
        self.guard = guard_of(self.way, audit=audit)
        self.app = app_of(self.guard)

    def browser(self, **more):
        return Browser(self.app, **more)

    def begin(self, browser, wanted="/rules"):
        """Begin a login; return the address of the callback as the provider gives it."""
        reply = browser.get(f"/login/start?next={wanted}")
        assert reply.status == 303, reply
        return self.approved(reply.headers["location"])

    def approved(self, url):
        class Stay(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *_):
                return None

        with pytest.raises(urllib.error.HTTPError) as redirected:
            urllib.request.build_opener(Stay).open(url, timeout=300)
        with redirected.value as reply:
            return path_of(reply.headers["location"])

    def log_in(self, browser=None):
        browser = browser or self.browser()
        return browser.get(self.begin(browser), sec_fetch_site="cross-site")

    def is_refused(self, browser=None):
        """Whether a login does not succeed, and nothing of it is repeated."""
        browser = browser or self.browser()
        reply = self.log_in(browser)
        assert browser.get("/").status == 303
        assert SECRET not in reply.text + "".join(self.told)
        return reply.status in {400, 403, 502}


@pytest.fixture(scope="module")
def running():
    with served(OidcProvider()) as provider:
        yield provider


@pytest.fixture
def provider(running):
    fresh = OidcProvider(key=running.key)
    for name in ("claims", "metadata", "change", "encode", "answer", "secret", "published"):
        setattr(running, name, getattr(fresh, name))
    running.requests.clear()
    return running


@pytest.fixture
def login(provider):
    return Login(provider)


def test_who_logs_in_at_the_provider_is_in(login):
    browser = login.browser()
    form = browser.get("/login?next=/rules")
    assert 'href="/login/start?next=%2Frules"' in form.text
    reply = login.log_in(browser)
    assert (reply.status, reply.headers["location"]) == (303, "/rules")
    assert browser.get("/rules").json["rules"] == ["User:*", "User:alice"]
    assert list(browser.cookies) == ["aclog-8181"], "what the login kept is gone"
    assert browser.get("/login?next=/x").headers["location"] == "/x"
    assert login.told == []
    browser.get("/")
    assert browser.post("/logout", {}).status == 303
    assert browser.get("/").status == 303


def test_sessions_end_when_another_provider_or_claim_says_who_is_who(login):
    browser = login.browser()
    login.log_in(browser)
    login.guard.reload()
    assert browser.get("/").status == 200
    login.settings = evolve(login.settings, claim="preferred_username")
    login.guard.reload()
    assert browser.get("/").status == 303


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({"claim": "preferred_username"}, 400),
        ({"issuer": "http://127.0.0.1:9/realm"}, 400),
        ({"client_id": "another"}, 400),
        ({"prefix": "Group:"}, 400),
        ({}, 303),
    ],
)
def test_settings_that_are_read_again_while_the_provider_is_asked_count(login, settings, status):
    def change(_):
        login.settings = evolve(login.settings, **settings)
        login.guard.reload()

    login.provider.claims = {"sub": "alice", "preferred_username": "admin"}
    login.provider.change = change
    browser = login.browser()
    assert login.log_in(browser).status == status
    assert browser.get("/").status == (200 if status == 303 else 303)
    assert login.told == ([] if status == 303 else ["login: the login's settings have changed on the way"])


def test_the_provider_is_asked_about_itself_once(login):
    assert [login.log_in().status for _ in range(3)] == [303] * 3
    assert sorted(set(login.provider.requests)) == ["keys", "metadata", "token"]
    assert login.provider.requests.count("keys") == login.provider.requests.count("metadata") == 1


def test_strangers_who_begin_logins_at_once_lead_to_one_question_to_the_provider(login):
    async def scenario():
        ask = login.guard.way.provider.metadata
        found = await asyncio.gather(*(ask() for _ in range(40)))
        login.provider.metadata = {"issuer": "another"}
        login.guard.reload()
        failed = await asyncio.gather(*(login.guard.way.provider.metadata() for _ in range(40)), return_exceptions=True)
        return found, failed

    found, failed = asyncio.run(scenario())
    assert len({id(each) for each in found}) == 1
    assert {type(each) for each in failed} == {LoginError}
    assert login.provider.requests.count("metadata") == 2


def test_a_browser_that_was_known_before_is_not_in(login):
    browser = login.browser()
    browser.get("/login")
    known = dict(browser.cookies)
    assert login.log_in(browser).status == 303
    assert login.browser(cookies=known).get("/").status == 303


@pytest.mark.parametrize("secret", [SECRET, None])
@pytest.mark.parametrize("methods", [["client_secret_basic"], ["client_secret_post"], ["private_key_jwt"]])
def test_clients_with_and_without_a_secret(provider, secret, methods):
    provider.secret, provider.metadata = secret, {"token_endpoint_auth_methods_supported": methods}
    login = Login(provider, client_secret=secret)
    if secret and methods == ["private_key_jwt"]:
        assert login.browser().get("/login/start").status == 502
    else:
        assert login.log_in().status == 303


def test_a_wrong_client_secret_is_said_and_not_shown(provider):
    login = Login(provider, client_secret="another s+cret")
    assert login.is_refused()
    assert login.told == ["login: the token endpoint refused the code: invalid_client"]
    assert "s+cret" not in repr(login.way)
    assert "s+cret" not in repr(login.settings)


NOW = int(time.time())


@pytest.mark.parametrize(
    "wrong",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another"},
        {"aud": []},
        {"aud": None},
        {"aud": [CLIENT, "another"]},
        {"aud": [CLIENT, "another"], "azp": "another"},
        {"azp": "another"},
        {"iss": "http://127.0.0.1:1/realm"},
        {"iss": None},
        {"exp": NOW - 120},
        {"exp": None},
        {"exp": "never"},
        {"iat": NOW + 3600},
        {"iat": None},
        {"nbf": NOW + 3600},
        {"sub": None},
        {"at_hash": "AAAA"},
    ],
)
def test_tokens_for_others_or_for_another_time(login, wrong):
    def change(claims):
        claims.update(wrong)
        for name in [name for name, value in wrong.items() if value is None]:
            del claims[name]

    login.provider.change = change
    assert login.is_refused()
    assert "ID token refused" in login.told[0]


def header(value):
    return b64(json.dumps(value).encode())


@pytest.mark.parametrize(
    "encode",
    [
        lambda p, claims: f"{header({'alg': 'none'})}.{header(claims)}.",
        lambda p, claims: f"{header({'alg': 'none', 'kid': 'one'})}.{header(claims)}.",
        lambda p, claims: f"{header({'alg': 'None', 'kid': 'one'})}.{header(claims)}.",
        lambda p, claims: f"{header({'kid': 'one'})}.{header(claims)}.",
        lambda p, claims: jwt.encode(
            {"alg": "HS256", "kid": "one"}, claims, OctKey.import_key(p.key.as_pem(private=False))
        ),
        lambda p, claims: jwt.encode({"alg": "HS256", "kid": "one"}, claims, OctKey.import_key(SECRET)),
        lambda p, claims: jwt.encode({"alg": "RS256", "kid": "one"}, claims, RSAKey.generate_key(2048)),
        lambda p, claims: jwt.encode({"alg": "RS256", "kid": "mine"}, claims, RSAKey.generate_key(2048)),
        lambda p, claims: jwt.encode({"alg": "ES256", "kid": "one"}, claims, ECKey.generate_key("P-256")),
        lambda p, claims: embedded(claims),
        lambda p, claims: p.signed(claims)[:-8] + "AAAAAAAA",
        lambda p, claims: (
            p.signed({**claims, "sub": "x"}).rpartition(".")[0] + "." + p.signed(claims).rpartition(".")[2]
        ),
        lambda p, claims: p.signed(claims) + "." + p.signed(claims),
        lambda p, claims: "",
        lambda p, claims: "x" * 100_000,
        lambda p, claims: None,
        lambda p, claims: 5,
        lambda p, claims: {"a": 1},
        lambda p, claims: "\u00e9.x.y",
    ],
)
def test_tokens_that_the_provider_did_not_sign(login, encode):
    login.provider.encode = lambda claims: encode(login.provider, claims)
    assert login.is_refused()
    assert len(login.told) == 1


def embedded(claims):
    """A token that brings its own key along."""
    key = RSAKey.generate_key(2048)
    return jwt.encode({"alg": "RS256", "jwk": key.as_dict(private=False)}, claims, key)


def test_a_new_key_of_the_provider_is_read_and_strangers_cannot_make_it_read_again(login):
    now = [0.0]
    login.way.provider.clock = lambda: now[0]
    assert login.log_in().status == 303
    new = RSAKey.generate_key(2048, parameters={"kid": "two"})
    login.provider.encode = lambda claims: jwt.encode({"alg": "RS256", "kid": "two"}, claims, new)
    login.provider.published = [new]
    now[0] = 9.0
    assert login.is_refused(), "it was read a moment ago"
    assert login.provider.requests.count("keys") == 1
    now[0] = 11.0
    assert login.log_in().status == 303
    assert login.provider.requests.count("keys") == 2


@pytest.mark.parametrize(
    "keys", [{}, {"keys": 5}, {"keys": []}, {"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}, {"keys": [5, {"kty": "RSA"}]}]
)
def test_keys_that_are_none(login, keys, monkeypatch):
    async def get(_self, url):
        return keys

    browser = login.browser()
    callback = login.begin(browser)
    monkeypatch.setattr(type(login.way.provider), "_get", get)
    assert browser.get(callback).status == 502
    assert browser.get("/").status == 303


def test_a_callback_is_of_the_browser_that_began(login):
    victim, attacker = login.browser(), login.browser()
    stolen = login.begin(attacker)
    assert victim.get(stolen).status == 400, "no login was begun"
    assert victim.get("/").status == 303
    login.begin(victim)
    assert victim.get(stolen).status == 400, "another login was begun"
    assert victim.get("/").status == 303
    assert login.provider.requests.count("token") == 0
    assert attacker.get(stolen).status == 303


def test_a_callback_is_good_once(login):
    browser = login.browser()
    callback = login.begin(browser)
    kept = dict(browser.cookies)
    assert browser.get(callback).status == 303
    assert browser.get(callback).status == 400
    assert login.browser(cookies=kept).get(callback).status == 400
    assert login.provider.requests.count("token") == 1


def test_a_code_is_good_once_and_for_its_verifier(login):
    """A code that an attacker has seen: in a login of his own, and used again."""
    attacker, victim = login.browser(), login.browser()
    code = login.begin(victim).partition("code=")[2].partition("&")[0]
    own = login.begin(attacker)
    begun = own.partition("code=")[2].partition("&")[0]
    assert attacker.get(own.replace(begun, code)).status == 403
    assert login.told == ["login: the token endpoint refused the code: invalid_grant"]
    assert attacker.get("/").status == 303
    login = Login(login.provider)
    browser = login.browser()
    first = login.begin(browser)
    assert browser.get(first).status == 303
    used = first.partition("code=")[2].partition("&")[0]
    second = login.begin(browser)
    assert browser.get(second.replace(second.partition("code=")[2].partition("&")[0], used)).status == 403
    assert used not in "".join(login.told)


@pytest.mark.parametrize(
    "change",
    [
        lambda query: query.replace("state=", "state=x"),
        lambda query: query.replace("state=", "x="),
        lambda query: query + "&state=x",
        lambda query: query.replace("code=", "x="),
        lambda query: query + "&code=x",
        lambda query: query.partition("&iss=")[0],
        lambda query: query.partition("&iss=")[0] + "&iss=https%3A%2F%2Fother",
        lambda query: query + "&error=access_denied",
        lambda query: query + "&error=%3Cscript%3Ealert(1)",
        lambda query: query.replace("state=", "state=%ff"),
        lambda query: query.partition("?")[0],
    ],
)
def test_callbacks_that_were_changed(login, change):
    browser = login.browser()
    reply = browser.get(change(login.begin(browser)))
    assert reply.status in {400, 403}
    assert "<script>" not in reply.text
    assert browser.get("/").status == 303
    assert login.provider.requests.count("token") == 0


def test_a_login_that_takes_long_is_begun_again(login, monkeypatch):
    browser = login.browser()
    callback = login.begin(browser)
    later = time.time() + 700
    monkeypatch.setattr("itsdangerous.timed.time.time", lambda: later)
    assert browser.get(callback).status == 400


@pytest.mark.parametrize("target", ["//evil", "https://evil", "/%5Cevil"])
def test_a_login_leads_nowhere_else(login, target):
    browser = login.browser()
    assert browser.get(login.begin(browser, target)).headers["location"] == "/"


@pytest.mark.parametrize(
    ("claim", "claims", "seen"),
    [
        ("preferred_username", {"preferred_username": "bob"}, "bob"),
        ("email", {"email": "a@b.example", "email_verified": True}, "a@b.example"),
        ("email", {"email": "a@b.example"}, None),
        ("email", {"email": "a@b.example", "email_verified": "true"}, None),
        ("preferred_username", {}, None),
        ("preferred_username", {"preferred_username": ["admin"]}, None),
        ("preferred_username", {"preferred_username": ""}, None),
        ("preferred_username", {"preferred_username": "*"}, None),
        ("preferred_username", {"preferred_username": "ANONYMOUS"}, None),
        ("preferred_username", {"preferred_username": " admin"}, None),
        ("preferred_username", {"preferred_username": "admin\u202e"}, None),
        ("preferred_username", {"preferred_username": "\ud800"}, None),
        ("preferred_username", {"preferred_username": "a" * 1025}, None),
        ("preferred_username", {"preferred_username": "CN=x,OU=<b>"}, "CN=x,OU=<b>"),
    ],
)
def test_claims_that_name_a_principal(provider, claim, claims, seen):
    provider.claims = {"sub": "1", **claims}
    login = Login(provider, claim=claim)
    browser = login.browser()
    reply = login.log_in(browser)
    assert reply.status == (403 if seen is None else 303)
    if seen is not None:
        assert f"{seen}|User:{seen}|False" in browser.get("/").text


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://another"},
        {"issuer": None},
        {"token_endpoint": "http://192.0.2.1/token"},
        {"token_endpoint": None},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"jwks_uri": 5},
        {"jwks_uri": "http://a@127.0.0.1/keys"},
    ],
)
def test_metadata_that_is_another_providers_or_unsafe(provider, metadata):
    provider.metadata = metadata
    login = Login(provider)
    assert login.browser().get("/login/start").status == 502
    assert len(login.told) == 1


@pytest.mark.parametrize(
    "answer",
    [
        lambda: PlainTextResponse("no", 200),
        lambda: PlainTextResponse("no", 500),
        lambda: JSONResponse([], 200),
        lambda: JSONResponse("x", 200),
        lambda: JSONResponse({}, 200),
        lambda: JSONResponse({"error": SECRET}, 400),
        lambda: JSONResponse({"error": {"a": 1}}, 400),
        lambda: JSONResponse({"id_token": None, "access_token": 5}, 200),
    ],
)
def test_answers_of_the_token_endpoint(login, answer):
    login.provider.answer = answer
    assert login.is_refused()
    assert len(login.told) == 1


def drips() -> StreamingResponse:
    async def pieces():
        while True:
            yield b" "
            await asyncio.sleep(0.05)

    return StreamingResponse(pieces(), media_type="application/json")


def test_an_answer_that_never_ends_is_given_up(login, monkeypatch):
    """Each piece of it comes in time."""
    login.log_in(login.browser())  # what the provider says of itself is known by now
    monkeypatch.setattr("aclog.console.login.oidc._IN_ALL_S", 1.0)
    login.provider.answer = drips
    assert login.is_refused()
    assert login.told == ["login: token endpoint: TimeoutError"]


def test_a_signature_that_a_library_calls_deprecated_is_not_warned_of():
    key = OKPKey.generate_key("Ed25519", parameters={"kid": "ed", "use": "sig"})
    claims = {"iss": "i", "aud": CLIENT, "sub": "alice", "iat": 100, "exp": 400, "nonce": "n"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        token = jwt.encode({"alg": "EdDSA", "kid": "ed"}, claims, key, algorithms=["EdDSA"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked = {"issuer": "i", "client_id": CLIENT, "nonce": "n", "access_token": None}
        found = claims_of(token, KeySet([key]), **asked, algorithms=["EdDSA"], now=200)
    assert found == claims


def test_a_provider_that_is_away_is_said(provider):
    login = Login(provider, issuer="http://127.0.0.1:9/realm")
    reply = login.browser().get("/login/start")
    assert reply.status == 502
    assert "unavailable" in reply.text
    assert "127.0.0.1:9" not in reply.text
    assert "127.0.0.1:9" in login.told[0]


def test_no_secret_is_written_down(provider, tmp_path):
    login = Login(provider, audit=tmp_path / "audit")
    browser = login.browser()
    callback = login.begin(browser)
    kept = list(browser.cookies.values())
    browser.get(callback)
    login.guard.audit.close()
    text = (tmp_path / "audit").read_text()
    assert [json.loads(line)["path"] for line in text.splitlines()] == ["/login/start", "/login/callback"]
    assert json.loads(text.splitlines()[1])["viewer"] == "User:alice"
    for secret in (SECRET, "code", "state", callback.partition("?")[2][5:20], *kept, *browser.cookies.values()):
        assert secret not in text


def test_logins_that_fail_are_limited(login):
    login.provider.answer = lambda: JSONResponse({"error": "invalid_grant"}, 400)
    assert [login.log_in().status for _ in range(21)] == [403] * 20 + [429]


def test_settings_of_the_environment_and_of_a_file(tmp_path):
    environment = {
        "ACLOG_OIDC_ISSUER": "https://id.example/realm", "ACLOG_OIDC_CLIENT_ID": "c", "ACLOG_OIDC_CLIENT_SECRET": "s",
        "ACLOG_OIDC_CLAIM": "email",
    }  # fmt: skip
    found = read_settings(None, environment, "https://acl.example/")
    assert found == OidcSettings(
        issuer="https://id.example/realm", client_id="c", redirect_uri="https://acl.example/login/callback",
        client_secret="s", claim="email", scope="openid email",
    )  # fmt: skip
    (tmp_path / "secret").write_text("of a file\n")
    (tmp_path / "secret").chmod(0o600)
    path = tmp_path / "oidc.toml"
    path.write_text(
        'issuer = "http://localhost:1"\nclient_id = "c"\nclient_secret_file = "secret"\nprefix = "Group:"\n'
    )
    found = read_settings(path, {}, BASE)
    assert (found.client_secret, found.prefix, found.scope, found.claim) == ("of a file", "Group:", "openid", "sub")
    (tmp_path / "secret").chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_settings(path, {}, BASE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "issuer is missing"),
        ('issuer = "https://i"', "client_id is missing"),
        ('issuer = "http://id.example"\nclient_id = "c"', "expected https"),
        ('issuer = "ftp://id.example"\nclient_id = "c"', "expected a URL"),
        ('issuer = "https://id.example?x"\nclient_id = "c"', "expected a URL"),
        ('issuer = "https://["\nclient_id = "c"', "expected a URL"),
        ('client_secret = "hidden"', "separate file"),
        ('secret = "hidden"', "expected one of"),
        ("issuer = 5", "expected a string"),
        ("issuer = hidden", "not TOML"),
        ('issuer = "https://i"\nclient_id = "c"\nprefix = "User"', "with a type"),
    ],
)
def test_files_of_settings_that_cannot_be_used(tmp_path, text, said):
    path = tmp_path / "oidc.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said) as raised:
        read_settings(path, {}, BASE)
    assert "hidden" not in str(raised.value)


def test_an_environment_that_says_nothing():
    with pytest.raises(ConfigError, match="ACLOG_OIDC_ISSUER is not set"):
        read_settings(None, {}, BASE)


def test_the_way_that_a_flag_names(tmp_path):
    path = tmp_path / "oidc.toml"
    path.write_text('issuer = "https://i"\nclient_id = "c"\n')
    given = {"base_url": BASE, "tell": print}
    environment = {"ACLOG_OIDC_ISSUER": "https://e", "ACLOG_OIDC_CLIENT_ID": "c"}
    assert way_of("oidc", environment=environment, **given).provider.settings.issuer == "https://e"
    way = way_of(f"oidc:{path}", environment=environment, **given)
    assert way.provider.settings.issuer == "https://i"
    path.write_text('issuer = "https://j"\nclient_id = "c"\n')
    way.reload()
    assert way.provider.settings.issuer == "https://j"
    path.write_text("")
    with pytest.raises(ConfigError):
        way.reload()
    assert way.provider.settings.issuer == "https://j"
    with pytest.raises(ConfigError, match="chmod 600"):
        way_of(str(path), environment=environment, **given)
    with pytest.raises(FileNotFoundError):
        way_of("oidc:", environment=environment, **given)
