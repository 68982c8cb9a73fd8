"""Posting to a webhook: in the background, with retries, in bounded memory, and without a word of its secrets."""

import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from prometheus_client import CollectorRegistry

from aclog.cli import follow
from aclog.cli.follow import FollowerStatus, Webhook, serving
from aclog.config.node_config import HostPort
from aclog.metalog.errors import ConfigError
from tests.support.processes.waiting import SECONDS


class Receiver:
    """Keeps what is posted, and answers as it is told: with these codes first, then 204."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.bodies: list[str] = []
        self.authorizations: list[str | None] = []
        self.arrived = threading.Condition()

    def wait_for(self, count: int) -> None:
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.bodies) >= count, SECONDS)

    @contextmanager
    def listening(self) -> Iterator[int]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                with receiver.arrived:
                    code = receiver.codes.pop(0) if receiver.codes else 204
                    receiver.bodies.append(body)
                    receiver.authorizations.append(self.headers["Authorization"])
                    receiver.arrived.notify_all()
                self.send_response(code)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            try:
                yield server.server_port
            finally:
                server.shutdown()
                thread.join()


def outcomes(registry: CollectorRegistry) -> dict[str, float | None]:
    names = ("delivered", "failed", "dropped")
    return {name: registry.get_sample_value("aclog_webhook_posts_total", {"outcome": name}) for name in names}


def test_posts_arrive_in_order_with_the_login_of_the_url() -> None:
    receiver, registry = Receiver(), CollectorRegistry()
    with receiver.listening() as port:
        hook = Webhook.of(f"http://user:p%40ss@127.0.0.1:{port}/hook", registry)
        assert "p@ss" not in hook.url
        assert "p%40ss" not in hook.url
        with hook.running():
            hook.post("1")
            hook.post("2")
    assert receiver.bodies == ["1", "2"]
    assert set(receiver.authorizations) == {"Basic dXNlcjpwQHNz"}
    assert outcomes(registry) == {"delivered": 2, "failed": 0, "dropped": 0}


@pytest.mark.parametrize("code", [500, 302, 404])
def test_what_is_refused_is_posted_again(
    code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(follow, "_RETRY_S", (0.0,))
    receiver, registry = Receiver(code, code), CollectorRegistry()
    with (
        receiver.listening() as port,
        Webhook.of(f"http://u:secret@127.0.0.1:{port}/token", registry).running() as hook,
    ):
        hook.post("1")
        receiver.wait_for(3)
    assert receiver.bodies == ["1", "1", "1"]
    assert outcomes(registry)["delivered"] == 1
    said = capsys.readouterr().err
    assert f"webhook at 127.0.0.1:{port}: answered {code}: trying again" in said
    assert "secret" not in said
    assert "token" not in said


def test_a_receiver_that_is_down_fills_no_memory(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(follow, "_MOST_WAITING", 3)
    monkeypatch.setattr(follow, "_LAST_S", 0.0)
    registry = CollectorRegistry()
    with Receiver().listening() as port:
        pass  # nobody listens there any more
    with Webhook.of(f"http://user:secret@127.0.0.1:{port}/token", registry).running() as hook:
        for number in range(10):
            hook.post(str(number))
    dropped = outcomes(registry)["dropped"]
    assert dropped in (6, 7)  # one may be on its way
    said = capsys.readouterr().err
    assert "messages were not delivered" in said
    assert "secret" not in said
    assert "token" not in said


@pytest.mark.parametrize(
    "url", ["hooks.example.com/x", "ftp://u:secret@h/x", "http://", "https://u:secret@/", "http://h:99999/secret", ""]
)
def test_what_is_no_url_is_refused_without_a_word_of_it(url: str) -> None:
    with pytest.raises(ConfigError, match="--webhook: expected a URL") as error:
        Webhook.of(url, CollectorRegistry())
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), OverflowError("a port")])
def test_an_endpoint_that_cannot_run_is_an_error_and_no_wait_without_end(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def no_loop(work: Coroutine[None, None, None]) -> None:
        work.close()
        raise error

    monkeypatch.setattr(follow.asyncio, "run", no_loop)
    expected = (ConfigError, OverflowError)
    with pytest.raises(expected) as failed, serving(HostPort(host="127.0.0.1", port=0), FollowerStatus()):
        pass
    assert str(failed.value) in {"--http: cannot serve 127.0.0.1:0: Too many open files", "a port"}
