"""The clients of stores, without a store: what opens them, and the texts of their errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

from aclog.metalog.errors import ConfigError
from aclog.usage.accesses.addresses import AZURE, GCS, Address
from aclog.usage.accesses.clients import azure_credentials, opened, reason

AZURE_ADDRESS = "abfss://logs@account1.dfs.core.windows.net/x"
ERRORS = (
    "GetFileInfo failed for 'https://account1/?sig={}'. Azure Error: [{}] 403 Server {}",
    "google::cloud::Status(PERMISSION_DENIED: {} http_status_code=403)",
    "Could not create a OAuth2 access token: {}",
    "{}",
)


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("KEY", "SAS_TOKEN", "ACCOUNT"):
        monkeypatch.delenv(f"AZURE_STORAGE_{name}", raising=False)


@pytest.mark.parametrize(("path", "name"), [("gs://logs/x", "GcsFileSystem"), (AZURE_ADDRESS, "AzureFileSystem")])
@pytest.mark.parametrize("error", [ImportError, AttributeError])
def test_a_pyarrow_without_a_client_is_named(monkeypatch, path, name, error):
    """pyarrow raises ImportError for a class that its build lacks; an older pyarrow does not know it."""
    monkeypatch.delattr(fs, name)
    if error is AttributeError:
        monkeypatch.delattr(fs, "__getattr__")
    else:
        monkeypatch.setattr(fs, "_not_imported", [name])
    with pytest.raises(ConfigError, match=f"^{path}: pyarrow has no client for {path.partition('//')[0]}//") as refused:
        opened(Address.of(path))
    assert isinstance(refused.value.__cause__, error)


@given(text=st.sampled_from(ERRORS), store=st.sampled_from([GCS, AZURE]), secret=st.text(min_size=1))
def test_errors_show_nothing_of_a_response(text, store, secret):
    shown = reason(store, OSError(text.replace("{}", f"SeCrEt{secret}")))
    assert "SeCrEt" not in shown
    assert "\n" not in shown


@pytest.mark.parametrize(
    ("variables", "credentials"),
    [
        ({}, {}),
        ({"KEY": "QUJD"}, {"account_key": "QUJD"}),
        ({"KEY": "QUI=", "SAS_TOKEN": "sig=x"}, {"account_key": "QUI="}),
        ({"SAS_TOKEN": "sv=1&sig=x"}, {"sas_token": "?sv=1&sig=x"}),
        ({"SAS_TOKEN": "?sv=1&sig=x", "ACCOUNT": "account1"}, {"sas_token": "?sv=1&sig=x"}),
        ({"KEY": "", "ACCOUNT": "another"}, {}),
    ],
)
def test_the_variables_of_azure_are_read(monkeypatch, variables, credentials):
    for name, value in variables.items():
        monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
    assert azure_credentials(Address.of(AZURE_ADDRESS)) == credentials


@pytest.mark.parametrize(
    "variables",
    [{"KEY": "SeCrEt!"}, {"KEY": "QUJ"}, {"SAS_TOKEN": "sig=SeCrEt\n"}, {"SAS_TOKEN": "sig=SeCrEt", "ACCOUNT": "b"}],
)
def test_variables_that_do_not_fit_are_refused(monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
    with pytest.raises(ConfigError, match=f"^{AZURE_ADDRESS}: .*AZURE_STORAGE_.*expected") as refused:
        azure_credentials(Address.of(AZURE_ADDRESS))
    assert "SeCrEt" not in str(refused.value)


@pytest.mark.parametrize(
    "path",
    [
        "gs://logs/x?scheme=http",
        "gs://logs/x?scheme=http&endpoint_override=127.0.0.1.example",
        f"{AZURE_ADDRESS}?blob_storage_scheme=http",
        f"{AZURE_ADDRESS}?dfs_storage_scheme=http&dfs_storage_authority=a.example:80",
    ],
)
@pytest.mark.parametrize("token", ["", "sv=1&sig=x"])
def test_tokens_are_not_sent_without_encryption(monkeypatch, path, token):
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", token)
    with pytest.raises(ConfigError, match="/x: http would send a token without encryption: expected https"):
        opened(Address.of(path))
