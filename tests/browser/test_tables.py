"""Tables by the keyboard alone: rows are walked, filtered, sorted and copied, and columns hidden; updates keep that."""

from playwright.sync_api import Locator, expect

from tests.support.web.visitor import Hands


def shown(part: Locator) -> list[str]:
    """The rows that are visible, in order, each as a line."""
    return [each.replace("\t", " ") for each in part.locator("tbody tr:visible").all_inner_texts()]


def test_rows_are_filtered_while_typing_and_all_are_back_after_escape(visit):
    visitor = visit(Hands.KEYS)
    visitor.start("/rules")
    rules = visitor.part("rules")
    every = shown(rules)
    visitor.page.keyboard.press("f")
    expect(visitor.page.get_by_label("Filter the rows of Rules")).to_be_focused()
    visitor.page.keyboard.type("PII-")
    expect(rules.locator(".shown")).to_have_text("2 of 13 rows here")
    assert shown(rules) == [each for each in every if "pii-" in each]
    expect(visitor.page.locator("#said")).to_have_text("2 of 13 rows here")
    visitor.page.keyboard.press("Escape")
    assert shown(rules) == every
    visitor.page.keyboard.press("j")
    expect(rules.locator("tbody tr").first).to_be_focused()
    visitor.page.keyboard.press("j")
    visitor.page.keyboard.press("k")
    expect(rules.locator("tbody tr").first).to_be_focused()


def test_a_column_sorts_up_down_and_as_it_came(visit):
    visitor = visit(Hands.KEYS)
    visitor.start("/principal")
    principals = visitor.part("principals")
    came = shown(principals)
    head = principals.get_by_role("button", name="Rules", exact=True)
    visitor._act(head)
    expect(principals.locator("th[aria-sort=ascending]")).to_have_text("Rules")
    column = principals.locator("tbody tr td:nth-child(2)")
    numbers = [int(each) for each in column.all_inner_texts()]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) > 1
    visitor.page.keyboard.press("Enter")
    expect(principals.locator("th[aria-sort=descending]")).to_have_text("Rules")
    assert [int(each) for each in column.all_inner_texts()] == sorted(numbers, reverse=True)
    visitor.page.keyboard.press("Enter")
    expect(principals.locator("th[aria-sort]")).to_have_count(0)
    assert shown(principals) == came


def test_a_hidden_column_stays_hidden_in_the_next_answer_and_after_a_reload(visit):
    visitor = visit(Hands.KEYS)
    visitor.start("/rules")
    rules = visitor.part("rules")
    hosts = rules.locator("th").filter(has_text="Host")
    expect(hosts).to_be_visible()
    visitor._act(rules.locator("summary").filter(has_text="Columns"))
    box = rules.get_by_role("checkbox", name="Host")
    visitor._tab_to(box)
    visitor.page.keyboard.press("Space")
    expect(hosts).to_be_hidden()
    visitor.page.get_by_label("Anything").fill("User")
    visitor.sees("13 rules")
    expect(visitor.part("rules").locator("th").filter(has_text="Host")).to_be_hidden()
    visitor.page.reload()
    expect(visitor.part("rules").locator("th").filter(has_text="Host")).to_be_hidden()


def test_a_row_is_copied_as_a_spreadsheet_takes_it(visit):
    visitor = visit(Hands.KEYS, permissions=["clipboard-read", "clipboard-write"])
    visitor.start("/rules")
    visitor.page.keyboard.press("j")
    visitor.page.keyboard.press("c")
    expect(visitor.page.locator("#said")).to_have_text("row copied")
    row = visitor.part("rules").locator("tbody tr").first
    texts = [" ".join(each.split()) for each in row.locator("td").all_inner_texts()]
    assert visitor.page.evaluate("navigator.clipboard.readText()") == "\t".join(texts)


def test_a_filter_and_its_caret_survive_an_update(visit):
    visitor = visit(Hands.KEYS)
    visitor.start("/rules")
    visitor.page.keyboard.press("f")
    visitor.page.keyboard.type("pii-x")
    visitor.page.keyboard.press("ArrowLeft")
    with visitor.page.expect_response("**/rules"):
        visitor.page.locator("#status").evaluate("each => { each.dataset.version = 'other'; }")
    field = visitor.page.get_by_label("Filter the rows of Rules")
    expect(visitor.part("rules").locator(".shown")).to_have_text("0 of 13 rows here")
    expect(field).to_be_focused()
    visitor.page.keyboard.press("Delete")
    expect(field).to_have_value("pii-")
    expect(visitor.part("rules").locator(".shown")).to_have_text("2 of 13 rows here")
