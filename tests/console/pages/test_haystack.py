"""The haystack beside looking through each text."""

from hypothesis import given
from hypothesis import strategies as st

from aclog.console.listing import Haystack

TEXTS = st.text("abc\n\u03c3\U0010ffff", max_size=5)


@given(st.lists(TEXTS, max_size=60), TEXTS)
def test_the_texts_that_have_it(texts: list[str], wanted: str) -> None:
    assert Haystack.of(texts).places(wanted) == [place for place, text in enumerate(texts) if wanted in text]


def test_few_of_many() -> None:
    texts = [f"user:team-{number}\norders.{number}\n*" for number in range(10_000)]
    haystack = Haystack.of(texts)
    for wanted in ("team-77", "99\n", "*", "orders.12", "nothing", "9"):
        assert haystack.places(wanted) == [place for place, text in enumerate(texts) if wanted in text]
