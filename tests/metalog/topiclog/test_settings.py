"""Accepted settings of a topic log, and what they never show."""

import subprocess
import sys

import pytest

from aclog.installation import install_command
from aclog.metalog.errors import ConfigError
from aclog.metalog.topiclog import TopicSettings

SERVERS = {"bootstrap.servers": "a:1,b:2"}


def test_names_follow_the_topic():
    settings = TopicSettings(topic="t", properties=SERVERS)
    assert (settings.transactional_id, settings.group_id, settings.name) == ("t", "t", "kafka://a:1,b:2/t")


def test_secrets_are_not_shown():
    settings = TopicSettings(topic="t", properties=SERVERS | {"sasl.password": "swordfish", "ssl.key.pem": "trout"})
    assert "swordfish" not in repr(settings)
    assert "trout" not in repr(settings)


@pytest.mark.parametrize("properties", [{}, {"bootstrap.servers": ""}])
def test_without_servers_it_is_refused(properties):
    with pytest.raises(ConfigError, match=r"bootstrap\.servers: not set"):
        TopicSettings(topic="t", properties=properties)


@pytest.mark.parametrize("name", ["transactional.id", "isolation.level", "enable.auto.commit", "group.id", "acks"])
def test_reserved_properties_are_refused(name):
    with pytest.raises(ConfigError, match=f"{name}: set by the log itself"):
        TopicSettings(topic="t", properties=SERVERS | {name: "x"})


@pytest.mark.process
def test_without_the_client_library_the_error_says_what_to_install():
    script = """
import sys
sys.modules["confluent_kafka"] = None
from aclog.metalog.topiclog import FencedError, Leader, TopicSettings
try:
    from aclog.metalog.topiclog import TopicReader
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == (
        f"ConfigError a topic log needs confluent-kafka, which is not installed: {install_command('kafka')}"
    )
