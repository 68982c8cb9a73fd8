"""Addresses of objects: the forms that are read, and no secret of any other in an error."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from aclog.metalog.errors import ConfigError
from aclog.usage.accesses.addresses import Address, is_object_path, is_s3_path, plain_name

ACCOUNT = "account1.dfs.core.windows.net"
SECRET = st.text(alphabet=st.sampled_from("aZ09+/=?&%#:@_-. \n\x00é*"), min_size=8, max_size=24).map("SeCrEt".__add__)
SHAPES = [
    "gs://{}@bucket/prefix",
    "gs://user:{}@bucket/prefix",
    "gs://bucket:{}/prefix",
    "gs://{}:x@bucket",
    "gs://bucket/prefix?credentials={}",
    "gs://bucket/prefix?anonymous=true&access_token={}",
    "gs://bucket/prefix?scheme={}",
    "gs://bucket/prefix?project_id=p&project_id={}",
    "gs://bucket/prefix?endpoint_override=https://{}",
    "gs://bucket/prefix&sig={}",
    "abfss://container:{}@" + ACCOUNT + "/prefix",
    "abfss://:{}@" + ACCOUNT + "/prefix",
    "abfs://{}@" + ACCOUNT + "/prefix",
    "abfss://container@{}.dfs.core.windows.net/prefix",
    "abfss://container@account1.dfs.core.windows.net.{}/prefix",
    "abfss://container@account1:{}@dfs.core.windows.net/prefix",
    "abfss://container@" + ACCOUNT + ":{}/prefix",
    "abfss://container@" + ACCOUNT + "/prefix?sv=2020-08-04&sig={}",
    "abfss://container@" + ACCOUNT + "/prefix?account_key={}",
    "abfss://container@" + ACCOUNT + "/prefix?blob_storage_authority=user:{}@host",
    "abfss://container@" + ACCOUNT + "/prefix&sig={}",
    "abfss://container@" + ACCOUNT + "/prefix;AccountKey={}",
    "abfss://{}",
    "s3://{}@bucket/prefix",
    "s3://AKIAX:{}@bucket/prefix",
    "s3://bucket/prefix?secret_key={}",
]


@given(shape=st.sampled_from(SHAPES), secret=SECRET)
def test_a_secret_in_an_address_is_in_no_error(shape, secret):
    with pytest.raises(ConfigError) as refused:
        Address.of(shape.format(secret))
    text = str(refused.value)
    assert "SeCrEt" not in text
    assert "\n" not in text
    assert "credentials" in text


@pytest.mark.parametrize("shape", SHAPES)
def test_each_form_with_a_secret_is_refused(shape):
    with pytest.raises(ConfigError, match="credentials") as refused:
        Address.of(shape.format("SeCrEt/1?a=b@c"))
    assert "SeCrEt" not in str(refused.value)


@given(
    scheme=st.sampled_from(["gs://", "abfss://", "abfs://"]),
    authority=st.text(alphabet="ab1-._@:%", max_size=12),
    rest=st.text(max_size=12),
)
def test_any_text_is_an_address_or_a_configuration_error(scheme, authority, rest):
    path = f"{scheme}{authority}/{rest}"
    try:
        address = Address.of(path)
    except ConfigError as error:
        assert "\n" not in str(error)  # noqa: PT017 - most are refused
    else:
        assert path.partition("?")[0] in {address.name, f"{address.name}/"}
        assert scheme != "gs://" or "@" not in address.authority
        assert not any(ord(each) < 32 for each in address.name)


@given(
    container=st.from_regex(r"[a-z0-9-]{3,63}", fullmatch=True),
    account=st.from_regex(r"[a-z0-9]{3,24}", fullmatch=True),
    cloud=st.sampled_from(["windows.net", "usgovcloudapi.net", "chinacloudapi.cn"]),
    prefix=st.sampled_from(["", "kafka", "kafka/", "team@acme/a:b", "a b/c%20d+é#1.log"]),
)
def test_addresses_of_azure_are_read(container, account, cloud, prefix):
    assume(not container.startswith("-") and not container.endswith("-") and "--" not in container)
    address = Address.of(f"abfss://{container}@{account}.dfs.core.{cloud}/{prefix}")
    assert (address.container, address.account, address.prefix) == (container, (account, cloud), prefix)
    assert address.base == f"{container}/{prefix}".rstrip("/")
    assert address.name_of(f"{container}/a/b") == f"abfss://{container}@{account}.dfs.core.{cloud}/a/b"


@pytest.mark.parametrize(
    "path",
    [
        "gs://ab/x", "gs://Bucket/x", "gs://bucket_/x", "gs:///x", "gs://", "gs://b@bucket/x", "abfss://",
        "abfss://container/x", "abfss://co@" + ACCOUNT, "abfss://Container@" + ACCOUNT, "abfss://a--b@" + ACCOUNT,
        "abfss://-ab@" + ACCOUNT, "abfss://container@ab.dfs.core.windows.net", "abfss://container@account1.example.com",
        "abfss://container@account1.blob.core.windows.net/x", f"abfss://{'a' * 64}@{ACCOUNT}",
        f"abfss://container@{'a' * 25}.dfs.core.windows.net", "gs://bucket/a\nb", "gs://bucket/\udc80",
    ],
)  # fmt: skip
def test_other_forms_are_refused(path):
    with pytest.raises(ConfigError, match="is of another form, or has a key or a control character"):
        Address.of(path)


def test_patterns_are_refused():
    for path in ("gs://bucket/*.log", f"abfss://container@{ACCOUNT}/*.log"):
        with pytest.raises(ConfigError) as refused:
            Address.of(path)
        assert str(refused.value).startswith(f"{path}: expected ")
        assert str(refused.value).endswith(", without *")


def test_options_are_read():
    assert Address.of("gs://bucket/x?scheme=http&endpoint_override=[::1]:80&anonymous=true&project_id=p-1").options == {
        "scheme": "http",
        "endpoint_override": "[::1]:80",
        "anonymous": "true",
        "project_id": "p-1",
    }
    assert Address.of("s3://bucket/x?region=eu-west-1").query == "region=eu-west-1"


def test_only_s3_is_read_by_spark_without_hadoop():
    """The other stores have the credentials of Hadoop there."""
    for path in ("s3://b/x", "s3a://b/x"):
        assert is_object_path(path)
        assert is_s3_path(path)
    for path in ("gs://b/x", "abfss://c@a/x", "abfs://c@a/x"):
        assert is_object_path(path)
        assert not is_s3_path(path)
        assert plain_name(path) == path
    for path in ("hdfs://b/x", "wasbs://c@a/x", "gs:/b", "/gs://b"):
        assert not is_object_path(path)
