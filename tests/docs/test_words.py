"""The checker of words finds each banned form of docs/style.md, in prose only, and the covered files have none."""

import re

from tests.docs.words import (
    ALLOWED,
    COVERED,
    ROOT,
    SINCE,
    STYLE,
    Exemption,
    Words,
    covered_files,
    exemptions,
    findings,
    main,
    subject_findings,
)

PAGE = (ROOT / STYLE).read_text("utf-8")
WORDS = Words.read(PAGE)
EXEMPT = exemptions(ALLOWED.read_text("utf-8"))


def lines(path, text, exempt=()):
    return [(each.line, each.banned) for each in findings(path, text, WORDS, exempt)]


def test_every_row_of_the_table_is_read():
    table = PAGE.partition("\n## Words\n")[2]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert len(rows) >= 25
    forms = [form for row in rows for form in re.findall(r"`([^`]+)`", row.split(" | ")[0])]
    assert list(WORDS.preferred) == forms


def test_every_word_has_a_replacement_that_is_not_banned():
    assert all(preferred.strip() for preferred in WORDS.preferred.values())
    assert [preferred for preferred in WORDS.preferred.values() if lines("a.md", preferred, EXEMPT)] == []


def test_each_banned_form_is_found_in_each_kind_of_prose():
    for form in WORDS.preferred:
        after = "" if form[-1] in ".;:" else " here."
        for text in (f"Rules{'' if form[0] == ',' else ' '}{form}{after}", f"{form[0].upper()}{form[1:]}{after}"):
            assert (3, form) in lines("docs/a.md", f"# A\n\n{text}\n")
            assert (2, form) in lines("aclog/a.py", f'A = 1\n"""{text}"""\n')
            assert (1, form) in lines("aclog/a.py", f"A = 1  # {text}\n")
            assert (1, form) in lines("aclog/a.py", f'A = "{text} And more."\n')
            assert form in [each.banned for each in subject_findings("abc1234", text, WORDS, ())]


def test_a_phrase_is_found_across_a_line_break():
    assert lines("a.md", "All rules but\nfor one.\n") == [(1, "but for")]
    assert lines("a.py", '"""All rules but\n    for one.\n    """\n') == [(1, "but for")]


def test_only_whole_words_are_found():
    assert lines("a.md", "The shed, this task, the essay and the basket; a he-man, histories.\n") == []


def test_code_and_targets_of_links_are_not_prose():
    text = "A `nobody unless ...`, [a link](what-nobody.md#told),\n\n```\nnobody\n```\n\n``a ` nobody``\n"
    assert lines("a.md", text) == []
    assert lines("a.md", f"{text}\nnobody\n") == [(9, "nobody")]


def test_none_of_python_is_not_a_pronoun():
    assert lines("a.py", "A = 1  # the id, which is None\n") == []
    assert lines("a.py", "A = 1  # there is none\n") == [(1, "is none")]


def test_a_single_tick_hides_nothing_after_its_paragraph():
    assert lines("a.md", "A tick: `\n\nnobody\n\nanother `.\n") == [(3, "nobody")]


def test_identifiers_and_codes_of_python_are_not_prose():
    text = 'told = {"told": say}\ndef ask(he): return f"{told} {ask(he)} rules" + "MENDED"\n'
    assert lines("a.py", text) == []
    assert lines("a.py", f'{text}print(f"{{told}} is told here")\n') == [(3, "told")]


def test_what_is_exempt_is_allowed_in_its_file_only():
    exempt = [Exemption(text="told here", path="a.md")]
    assert lines("a.md", "Once told\nhere, and told there.", exempt) == [(2, "told")]
    assert lines("b.md", "Once told here.", exempt) == [(1, "told")]
    assert lines("b.md", "Once told here.", [Exemption(text="told here")]) == []


def test_each_exemption_is_for_a_banned_word():
    assert [each.text for each in EXEMPT if not lines("a.md", each.text)] == []


def test_a_finding_names_the_place_and_the_replacement():
    (finding,) = findings("docs/a.md", "One.\nBut nobody.", WORDS, ())
    assert re.fullmatch(r'docs/a\.md:2: "nobody": write .*no principal.*', str(finding))


def test_a_commit_message_is_checked_by_its_subject(tmp_path, capsys):
    message = tmp_path / "message"
    message.write_text("docs: tell nothing\n\nnobody\n")
    assert main(["--message", str(message)]) == 1
    assert '"tell"' in capsys.readouterr().out
    message.write_text("docs: print nothing\n\nnobody\n")
    assert main(["--message", str(message)]) == 0
    assert capsys.readouterr().out == ""


def test_the_covered_files_have_no_banned_word(capsys):
    assert main(list(COVERED)) == 0, capsys.readouterr().out


def test_every_page_of_the_documentation_is_covered():
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")} <= set(covered_files())
    assert re.fullmatch("[0-9a-f]{40}", SINCE)
