from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.index.layout import utf16
from aclog.shell.tree import decode_name, encode_name, path_text

# with lone surrogates, which JSON may contain
NAMES = st.one_of(
    st.text(st.characters(exclude_categories=())),
    st.text("/.%\x00\n\x1b'\" *?{}\\aé注\u202e😀", max_size=8),
)


@given(NAMES)
@settings(deadline=None)
def test_a_name_comes_back_exactly(name):
    assert decode_name(encode_name(name)) == name


@given(NAMES)
@settings(deadline=None)
def test_an_encoded_name_is_one_component_that_prints(name):
    shown = encode_name(name)
    assert shown.isprintable()
    assert "/" not in shown
    assert shown not in {"", ".", ".."}


@given(NAMES, NAMES)
@settings(deadline=None)
def test_two_names_never_look_alike(one, other):
    assert (encode_name(one) == encode_name(other)) == (one == other)


def test_what_is_encoded():
    assert encode_name("") == "%"
    assert encode_name(".") == "%2E"
    assert encode_name("..") == "%2E%2E"
    assert encode_name("...") == "..."
    assert encode_name("a/b") == "a%2Fb"
    assert encode_name("100%") == "100%25"
    assert encode_name("a\x00\n") == "a%00%0A"
    assert encode_name("User:CN=Alice Smith,OU=Eng") == "User:CN=Alice Smith,OU=Eng"
    assert encode_name("注文") == "注文"
    assert encode_name("\u202etxt") == "%E2%80%AEtxt"
    assert encode_name("\ud800") == "%ED%A0%80"


def test_any_character_may_be_encoded_when_typed():
    assert decode_name("%2a") == "*"
    assert decode_name("User:%2A") == "User:*"
    assert decode_name("%E6%B3%A8") == "注"


def test_what_no_name_looks_like():
    for shown in ("%%", "a%", "%4", "%zz", "%FF", "a%E6%B3"):
        assert decode_name(shown) is None, shown


def test_paths():
    assert path_text(()) == "/"
    assert path_text(("acl", "resource", "a/b", "")) == "/acl/resource/a%2Fb/%"


def test_the_order_is_that_of_utf_16_units():
    # Java sorts surrogate pairs below U+E000..U+FFFF
    assert sorted(["\uff5e", "😀", "b", "a"], key=utf16) == ["a", "b", "😀", "\uff5e"]
    assert utf16("\ud800") < utf16("\uffff")
