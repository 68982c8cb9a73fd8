"""Expressions of Terraform's language: all operators and functions, on all sorts of values, right and wrong ones."""

import random
from collections.abc import Iterator
from itertools import product

_STRINGS = ['""', '"a"', '"Hello World"', '"a,b,,c"', '"  pad\\t"', '"12"', '"true"', '"ä ß 日本"', '"x-y_z.1"', '"line\\n"', '"$${no}"']
_NUMBERS = ["0", "1", "-3", "2.5", "1e3", "0.1", "10000000000000000000000", "1.50"]
_LISTS = ["[]", '["b", "a", "b"]', "[3, 1, 2]", '[1, "a", true]', '[["a"], ["b", "c"], []]', '["", "x", ""]', "[null]", '["a", null]']
_SETS = ["toset([])", 'toset(["b", "a", "b"])', 'toset([2, "1"])', "toset([10, 9, 2])", "toset([true, false])"]
_TYPED = ['tolist(["x", "y"])', "tolist([1, 2])", 'tolist([{ a = 1 }, { a = "2" }])', 'tomap({ a = "1", b = "2" })', "tomap({})"]
_OBJECTS = ["{}", '{ a = 1, b = "x" }', '{ b = { c = [1] }, a = null }', '{ "k.1" = "v", k2 = true }', '{ a = "p", a = "q" }']
_PLAIN = ["null", "true", "false"]
VALUES = [*_STRINGS, *_NUMBERS, *_LISTS, *_SETS, *_TYPED, *_OBJECTS, *_PLAIN]

_ONE = (
    "abs alltrue anytrue base64decode base64encode base64sha256 base64sha512 basename ceil chomp coalesce coalescelist compact concat csvdecode "
    "dirname distinct flatten floor jsondecode jsonencode keys length lower max md5 merge min one range reverse sha1 sha256 sha512 "
    "signum sort strrev sum title tobool tolist tomap tonumber toset tostring transpose trimspace upper urlencode values "
    "can try setunion"
).split()
_TWO = (
    "chunklist coalesce coalescelist concat contains element endswith format formatlist indent index join log lookup max merge min parseint "
    "pow range regex regexall setintersection setproduct setsubtract setunion split startswith strcontains trim trimprefix "
    "trimsuffix try zipmap"
).split()
_THREE = "lookup matchkeys range replace slice substr coalesce format setunion setproduct merge try".split()
_OPERATORS = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||"]

CHOSEN = [
    # templates
    '"a${1}b${true}c${"d"}"', '"${[1]}"', '"x${[1]}"', '"x${null}"', '"${null}"', '"%{ if true }yes%{ else }no%{ endif }"',
    '"%{ for x in ["a", "b"] }<${x}>%{ endfor }"', '"%{ for k, v in { a = 1, b = 2 } }${k}=${v};%{ endfor }"',
    '"a  ${~ "b" ~}  c"', '"a %{~ if true ~} b %{~ endif ~} c"', '"\\u00e9\\U0001F600\\t\\"\\\\"', '"e\\u0301"', '"%%{x} $${y}"', '"$$ %% $x %x"',
    "<<E\na\n  b\nE\n", "<<-E\n    a\n      b\n\n    c\n    E\n", "<<-E\n  a ${1}\n ${2} b\n  E\n", "<<E\n%{ for x in [1, 2] ~}\n- ${x}\n%{ endfor ~}\nE\n",
    "<<E\n%{ if false }\nx\n%{ else }\ny\n%{ endif }\nE\n", "<<-E\n\ta\n\t\tb\n\tE\n", "<<E\n\\n \"q\" $${x}\nE\n", "<<-E\n  %{ if true ~}\n    x\n  %{ endif ~}\n  E\n",
    '"${"nested ${"deep ${1 + 1}"}"}"', '"a${"b"}"', '"${"b"}"', '"${true}"', '"%{ if 1 == 1 }a"', '"%{ endif }"',
    # for, splat, index
    "[for x in [1, 2, 3] : x * 2 if x > 1]", '[for i, x in ["a", "b"] : "${i}${x}"]', '{ for x in ["a", "b"] : x => upper(x) }',
    '{ for x in ["a", "b", "a"] : x => 1 }', '{ for x in ["a", "b", "a"] : x => 1... }', '[for k, v in { b = 1, a = 2 } : k]',
    '[for x in toset(["b", "a"]) : x]', '[for k, x in toset(["b", "a"]) : "${k}${x}"]', "[for x in null : x]", '[for x in "abc" : x]', "{ for x in [1, 2] : x => x }",
    "[for x in [1] : x if null]", '[for x in [1] : x if "true"]', "[for x in [[1, 2], [3]] : [for y in x : y]]", "{ for x in [null] : x => 1 }",
    "[{ a = 1 }, { a = 2 }][*].a", '[{ a = { b = "x" } }].*.a.b', "{ a = 1 }[*].a", "null[*].a", "[[1, 2], [3, 4]][*][0]", "[[1, 2], [3, 4]].*.0", 'tolist([{ a = 1 }])[*].a',
    'toset([{ a = 1 }, { a = 2 }])[*].a', "[][*].a", '"x"[*]', "[1, 2][0]", "[1, 2][2]", "[1, 2][-1]", "[1, 2][0.5]", '[1, 2]["1"]', '{ a = 1 }["a"]', "{ a = 1 }.a", "{ a = 1 }.b",
    '{ a = 1 }["b"]', 'tomap({ a = 1 }).a', 'tomap({ a = 1 })["b"]', 'toset(["a"])[0]', "null.a", '"x".a', "[1].0", "{ a = [1, 2] }.a[1]", '{ "0" = 1 }.0',
    # conditionals
    'true ? 1 : "a"', "true ? [1] : []", 'true ? [1] : ["a", "b"]', 'false ? { a = 1 } : { b = "x" }', 'true ? null : "a"', "true ? null : [1]", 'null ? 1 : 2', '"true" ? 1 : 2', '"x" ? 1 : 2',
    "true ? 1 : [1]", "true ? { a = 1 } : { a = true }", "true ? tolist([1]) : []", 'true ? toset(["a"]) : []', 'false ? toset(["a"]) : ["b", "b"]', "true ? {} : { a = 1 }", "false ? {}.x : 1", "true ? {}.x : 1",
    "true ? [{ a = 1 }] : [{ a = 1, b = 2 }]", 'true ? tomap({ a = 1 }) : { b = "x" }', "false ? true ? 1 : 2 : 3", "true ? { a = [1] } : { a = [\"x\", 2] }", "true ? [1, null] : [null]",
    # operators
    "1 + 2 * 3 - 4 / 2", "(1 + 2) * 3", "-2 * -3", "!true || true", "!(true && false)", "1 == 1 && 2 != 3", "10 % 3", "-10 % 3", "5.5 % 2", "1 / 3", "0.1 + 0.2", "1 / 0", "0 / 0", "1 % 0", "2 - -1", "1 < 2 == true",
    "false && null", "true || null", "null || true", "false && {}.x", "{}.x && false", 'true || "x"', "1 == \"1\"", "[1] == [1]", "tolist([1]) == [1]", "null == null", "[null] == [null]", "{ a = 1 } == { a = 1 }", 'toset(["a"]) == toset(["a"])',
    "1 > 2 || 3 >= 3", "- 1", "!null", '-"3"', '!"true"', '"1" + "2"', "1 == 1.0", "1e2", "1.5e-3", "123456789012345678901234567890 * 10", "1 - 1.1", "4 / 2", "7 / 2", "1000000 * 0.000001", "0.1 * 3",
    # objects, tuples
    '{ "a b" = 1, c : 2, (upper("d")) = 3 }', "{ a = 1\n b = 2 }", "{ a = 1, }", "[1, 2,]", "{ 1 = 2 }", "{ true = 1 }", "{ null = 1 }", '{ (null) = 1 }', "{ a.b = 1 }", "{ for = 1 }", '{ "${"x"}y" = 1 }', "[\n1,\n2\n]", "{ a = 1 b = 2 }", "[1 2]", "{ (1) = 2 }",
    # calls
    "max([1, 5, 2]...)", "max([]...)", 'format(["%s-%s", "a", "b"]...)', "max(null...)", 'max("x"...)', "max(toset([3, 4])...)", "nosuch(1)", "upper()", 'upper("a", "b")', "max(\n1,\n2,\n)",
    # functions with more to them
    'format("%d items %s %v %t %q", 3, "x", [1, "a"], true, "q\\"")', 'format("%05d|%5s|%-5s|%x|%X|%o|%b", 42, "a", "b", 255, 255, 8, 5)', 'format("%.2f %8.3f %e %g", 3.14159, 2.5, 1234.5, 0.00001)', 'format("%[2]s %[1]s", "a", "b")',
    'format("%s", null)', 'format("%v", null)', 'format("%s")', 'format("%s", "a", "b")', 'format("%%")', 'format("%d", 1.5)', 'format("%d", "7")', 'format("%+d % d", 5, 5)', 'format("%#v", { a = "x" })', 'format("%z", 1)', 'format("%v", 1e30)', 'format("%v %v", 0.5, 100000)',
    'format("%s", true)', 'format("%s", 1.50)', 'format("%s", [1])', 'format("%3s|%03d", "abcd", -5)', 'format("%.2s", "abc")', 'format("%-8d|", 5)', 'format("%08.3f", -3.14159)', 'format("%f", 1)', 'format("%v", 123456789012345678901234567890)', 'format("%g", 100000000)',
    'formatlist("%s-%s", ["a", "b"], "x")', 'formatlist("%s", [])', 'formatlist("%s-%s", ["a"], ["b", "c"])', 'formatlist("User:%s", toset(["b", "a"]))', 'formatlist("x")', 'formatlist("%s", "a")', 'formatlist("%d", [1, 2])',
    'regex("^([a-z]+)-(\\\\d+)$", "abc-12")', 'regex("(?P<n>[a-z]+)", "12ab")', 'regex("x", "abc")', 'regex("[", "abc")', 'regexall("[a-z]", "a1b2")', 'regexall("(a)(b)?", "ab a")', 'regexall("x", "abc")', 'regex("(?i)ABC", "xabc")', 'regex("a|b", "cb")', 'regex("(a)|(b)", "b")',
    'regex("(?P<x>a)(b)", "ab")', 'regex("\\\\bfoo\\\\b", "a foo b")', 'regex("^.*$", "one\\ntwo")', 'regex("(?s)^.*$", "one\\ntwo")', 'regexall("", "ab")', 'regex("a(?=b)", "ab")', 'regex("(a)\\\\1", "aa")', 'regex("[[:alpha:]]+", "12ab")', 'regex("\\\\p{Lu}", "aB")', 'regex("(?:a)(b)", "ab")', 'regex("a{2,3}?", "aaaa")', 'regex("\\\\((.)\\\\)", "(x)")', 'regex("[(](.)[)]", "(x)")', 'regex("((a)b)", "ab")', 'regex("((a)|b)", "b")', 'regexall("(?P<k>\\\\w)=(?P<v>\\\\w)", "a=1,b=2")',
    'replace("a.b.c", ".", "-")', 'replace("a.b.c", "/[.]/", "-")', 'replace("abc", "/(a)(b)/", "$2$1")', 'replace("abc", "/(?P<x>b)/", "<${"$"}{x}>")', 'replace("aaa", "a", "")', 'replace("abc", "/b/", "$0$0")', 'replace("abc", "/(b)/", "$1x")', 'replace("abc", "/x*/", "-")', 'replace("abc", "", "-")', 'replace("a/b", "/", "-")', 'replace("a//b", "//", "-")', 'replace("abc", "/b/", "$$1")', 'replace("abc", "/(b)/", "\\\\1")', 'replace("a b", "/\\\\s/", "_")', 'replace("abc", "/(b)/", "$9")', 'replace("abc", "/[/", "x")',
    'split(",", "a,b,,c")', 'split("", "abc")', 'split("--", "a--b")', 'split(",", "")', 'join(",", ["a", "b"], ["c"])', 'join(",", [])', 'join(",", [1, true])', 'join(",", toset(["b", "a"]))', 'join(",", ["a", null])', 'join(",", "a")',
    'substr("hello", 1, 3)', 'substr("hello", -3, -1)', 'substr("hello", 10, 1)', 'substr("hello", 0, 100)', 'substr("日本語", 1, 1)', 'substr("hello", -10, 2)', 'substr("hello", 2, 0)', 'substr("hello", 1.5, 1)',
    'title("hello world-foo_bar.baz 1abc")', 'upper("straße")', 'lower("ÄÖÜ")', 'title("ß über")', 'trim("??a??", "?")', 'trim("xyaxy", "yx")', 'trim("a", "")', 'trimspace("\\n a \\t")', 'trimprefix("aab", "a")', 'trimsuffix("baa", "a")', 'indent(2, "a\\nb\\nc")', 'chomp("a\\n\\r\\n")', 'strrev("añ")',
    'lookup({ a = 1 }, "a", 2)', 'lookup({ a = 1 }, "b", "x")', 'lookup({ a = 1 }, "b")', 'lookup(tomap({ a = 1 }), "b", "2")', 'lookup(tomap({ a = 1 }), "b", "x")', 'lookup([1], 0, 2)', 'lookup({ a = null }, "a", 2)', 'lookup({ a = 1 }, "b", null)',
    'merge({ a = 1 }, { a = "x", b = 2 })', 'merge(tomap({ a = "1" }), tomap({ b = "2" }))', "merge()", "merge({}, null)", "merge({ a = 1 }, null)", 'merge(tomap({ a = "1" }), { b = 2 })', "merge([{ a = 1 }, { b = 2 }]...)", "merge([1])", "merge(null, { a = 1 })",
    'concat(["a"], [1], [])', 'concat(tolist(["a"]), tolist([1]))', "concat()", 'concat(["a"], "b")', 'concat(toset(["a"]), ["b"])', "concat(tolist([1]), [2])", "concat([1], null)",
    "flatten([[1, [2]], 3, [], [[]]])", 'flatten([toset(["b", "a"]), ["c"]])', "flatten([[null], null])", "flatten({ a = [1] })", 'flatten([[{ a = [1] }]])', "flatten(tolist([[1], [2]]))",
    'setproduct(["a", "b"], [1, 2])', 'setproduct(toset(["a"]), ["x", "y"])', "setproduct([], [1])", 'setproduct(["a"], [1], [true])', 'setproduct(["a"])', "setproduct([1, \"a\"], [true])", 'setproduct(toset(["b", "a"]), toset(["d", "c"]))',
    'zipmap(["a", "b"], [1, "x"])', 'zipmap(["a"], [1, 2])', 'zipmap(["a", "b"], tolist([1, 2]))', 'zipmap([], [])', 'zipmap(["a", "a"], [1, 2])', 'transpose({ a = ["1", "2"], b = ["2"] })', "transpose({})",
    'element(["a", "b"], 3)', 'element([], 0)', 'element(["a", "b"], -1)', 'element(toset(["a"]), 0)', 'index(["a", "b"], "b")', 'index(["a"], "z")', 'slice(["a", "b", "c"], 1, 3)', 'slice(["a"], 0, 2)', 'slice(tolist(["a", "b"]), 0, 1)', 'slice(["a", "b"], 1, 1)', "slice([1, 2], 2, 1)",
    'contains(["a"], "a")', "contains([1], \"1\")", 'contains(toset(["a"]), "b")', 'contains({ a = 1 }, 1)', 'distinct(["a", "b", "a"])', "distinct([1, \"1\"])", "distinct([[1], [1], [2]])", 'distinct([{ a = 1 }, { a = 1 }])', 'compact(["a", "", null, "b"])', 'sort(["b", "a", "10", "2"])', "sort([2, 1])", 'reverse(toset(["a", "b"]))', 'reverse(["a", 1])', 'sort(["ä", "z", "Z"])',
    'chunklist(["a", "b", "c"], 2)', "chunklist([], 2)", 'chunklist(["a"], 0)', "chunklist([1, 2], -1)", 'coalesce("", "b")', 'coalesce(null, "b")', "coalesce(null, null)", 'coalesce(1, "b")', "coalesce([], [1])", "coalescelist([], [1])", "coalescelist([], [])", 'coalescelist([], ["a"])', 'coalesce("", 1)', "coalesce(false, true)",
    'matchkeys(["a", "b", "c"], ["1", "2", "1"], ["1"])', 'matchkeys(["a"], ["1", "2"], ["1"])', 'matchkeys(["a"], ["1"], [])', "range(3)", "range(1, 4)", "range(4, 1)", "range(1, 10, 3)", "range(1, 2, 0)", "range(0)", "range(0, 1, 0.25)", "range(5, 1, -2)", "range(1, 5, -1)", "range(-2)", "range(2000)",
    'setunion(["a"], ["b", "a"])', 'setintersection(["a", "b"], ["b"])', 'setsubtract(["a", "b"], ["b"])', "setunion()", "setunion([1], [\"a\"])", "setunion([], [])", "setintersection([1], [\"1\"])", "setsubtract([], [1])",
    'sum([1, 2.5])', "sum([])", "sum([1, null])", "one([])", "one([1])", "one([1, 2])", "one(null)", 'one(toset(["a"]))', 'one("a")', "alltrue([])", "anytrue([])", "alltrue([true, null])", 'alltrue(["true", true])', "anytrue([null])", "anytrue([false, true])",
    'jsondecode("{\\"a\\": [1, 2.50, null, true, \\"x\\"]}")', 'jsondecode("[")', 'jsondecode("1 2")', 'jsondecode("\\"\\\\u00e9\\"")', 'jsonencode({ b = [1, "<&>"], a = null })', 'jsonencode("é\\u2028\\n\\t")', 'jsonencode(toset(["b", "a"]))', "jsonencode(null)", "jsonencode(1.50)", 'jsondecode("{\\"a\\": 1, \\"a\\": 2}")', 'jsondecode("")', 'jsondecode("NaN")', 'jsondecode("1e400")',
    'yamldecode("a: 1\\nb: [x, 2, true, null, ~]\\nc: {d: 1.5}")', 'yamldecode("yes")', 'yamldecode("\\"yes\\"")', 'yamldecode("a: on\\nb: off\\nc: n\\nd: Y")', 'yamldecode("0x1F")', 'yamldecode("0o17")', 'yamldecode("017")', 'yamldecode("1e3")', 'yamldecode("- a\\n- b")', 'yamldecode("a: &x {b: 1}\\nc: *x")', 'yamldecode("a: |\\n  text\\n  more\\n")', 'yamldecode("2020-01-01")', 'yamldecode("")', 'yamldecode("~")', 'yamldecode("a: b: c")', 'yamldecode("x: \\"1\\"")', 'yamldecode("1_000")', 'yamldecode(".5")', 'yamldecode("+1")', 'yamldecode("<<: {a: 1}\\nb: 2")', 'yamldecode("a: {<<: {b: 1, c: 2}, b: 3}")', 'yamldecode("1: a\\ntrue: b")', "yamldecode(\"a: 'it''s'\")", 'yamldecode("# only\\n")', 'yamldecode("!x a")', 'yamldecode("12:30:45")', 'yamldecode("--- a\\n--- b")', 'yamldecode("a: 1\\na: 2")',
    'csvdecode("a,b\\n1,2\\n3,4")', 'csvdecode("a,b\\n")', 'csvdecode("a,b\\n1")', 'csvdecode("a,a\\n1,2")', 'csvdecode("")', 'csvdecode("a,b\\n\\"x,y\\",\\"q\\"\\"q\\"")', 'csvdecode("a\\n\\nb\\n")', 'csvdecode("a,b\\r\\n1,2\\r\\n")', 
    'base64encode("é")', 'base64decode("w6k=")', 'base64decode("!!")', 'base64decode("/w==")', 'md5("a")', 'sha256("é")', 'urlencode("a b&c/é~*")', 'uuidv5("dns", "example.com")', 'uuidv5("x", "y")', 'parseint("ff", 16)', 'parseint("10", 2)', 'parseint("z", 36)', 'parseint("Z", 62)', 'parseint("9", 8)', 'parseint("-7f", 16)', 'parseint("", 10)', 'parseint("1", 1)', 'parseint(12, 10)', 'parseint("1_0", 10)', 'parseint("a", 62)',
    "pow(2, 10)", "pow(2, 0.5)", "log(8, 2)", "log(0, 2)", "ceil(1.2)", "floor(-1.2)", "abs(-2.5)", "signum(-3)", "min(3, 1)", "max()", "pow(0, -1)", "log(10, 10)", "ceil(-0.5)",
    'cidrhost("10.0.0.0/8", 5)', 'cidrhost("10.0.0.0/30", 9)', 'cidrhost("10.0.0.0/24", -2)', 'cidrsubnet("10.0.0.0/8", 8, 3)', 'cidrsubnet("10.0.0.0/30", 8, 3)', 'cidrnetmask("10.0.0.0/12")', 'cidrsubnets("10.0.0.0/8", 8, 4, 8)', 'cidrhost("x", 1)', 'cidrsubnet("fd00::/8", 8, 2)', 'cidrhost("fd00::/64", 10)', 'cidrsubnet("10.1.2.3/16", 4, 15)', 'cidrsubnet("10.0.0.0/8", 2, 4)',
    'basename("a/b.txt")', 'basename("")', 'basename("/")', 'basename("a/")', 'dirname("a/b.txt")', 'dirname("a")', 'dirname("/a")', 'dirname("")', 'dirname("a/b/")', 'dirname("./a")', 'dirname("/")',
    'can(regex("a", "b"))', 'can(1)', 'try({}.a, "d")', 'try({}.a, {}.b)', 'try(null, 1)', "try()", "can()", 'try(tonumber("x"), 0)', 'can({ a = 1 }.a)', 'try([1][3], [2][0])',
    'tostring(1.0)', 'tonumber("0x1F")', 'tonumber("1e3")', 'tonumber("")', 'tonumber(" 1")', 'tobool("true")', 'tobool("1")', 'tobool(1)', 'tobool("yes")', 'toset([1, "1"])', 'toset([[1], [1]])', "toset([null])", 'tolist(toset(["b", "a"]))', 'tolist({ a = 1 })', 'tomap({ a = 1, b = "x" })', "tomap([1])", 'tolist([1, "a", true])', "tolist([1, [2]])", 'tolist([{ a = 1 }, { b = 2 }])', 'tomap({ a = [1], b = ["x"] })', "tolist([[1], [\"a\", 2]])", 'tolist([{ a = 1 }, { a = "x" }])', "tolist([1, null])", 'toset("a")', "tonumber(true)", "toset([{ b = 2 }, { b = 1 }])", 'toset([["b", 1], ["a", 2]])', 'toset([{ n = 10 }, { n = 9 }])', 'toset(["a b", "a", "B", "_", "é", "z"])', "toset([1.5, 1, -2, 100])", "toset([[10], [9], [100]])",
]  # fmt: skip
"""Written one by one: where the language has corners."""


def expressions(seed: int, drawn: int) -> list[str]:
    """Return the chosen expressions, every function and operator on values, and as many drawn at random, each once."""
    made = [*VALUES, *CHOSEN, *_systematic(seed)]
    draw = random.Random(seed)
    made += [_drawn(draw, 3) for _ in range(drawn)]
    return list(dict.fromkeys(made))


def _systematic(seed: int) -> Iterator[str]:
    draw = random.Random(seed + 1)
    for name in _ONE:
        for value in draw.sample(VALUES, 8):
            yield f"{name}({value})"
    for name in _TWO:
        for one, other in draw.sample(list(product(VALUES, VALUES)), 8):
            yield f"{name}({one}, {other})"
    for name in _THREE:
        for _ in range(8):
            yield f"{name}({', '.join(draw.choices(VALUES, k=3))})"
    for operator in _OPERATORS:
        for one, other in draw.sample(list(product(VALUES, VALUES)), 8):
            yield f"{one} {operator} {other}"
    for one, other in draw.sample(list(product(VALUES, VALUES)), 60):
        yield f"{draw.choice(['true', 'false'])} ? {one} : {other}"


_TEXT_FUNCTIONS = ["upper", "lower", "title", "trimspace", "strrev"]
_LIST_FUNCTIONS = ["distinct", "reverse", "flatten", "sort", "tolist", "toset", "compact"]


def _drawn(draw: random.Random, depth: int) -> str:
    """Return an expression that mostly has a value."""
    make = draw.choice([_text, _number, _list, _object])
    if depth > 0 and draw.random() < 0.2:
        return f"{_condition(draw, depth)} ? {make(draw, depth - 1)} : {make(draw, depth - 1)}"
    return make(draw, depth)


def _text(draw: random.Random, depth: int) -> str:
    if depth <= 0:
        return draw.choice(_STRINGS)
    deeper = depth - 1
    return draw.choice(
        [
            lambda: f'"{draw.choice("xyz")}-${{{_text(draw, deeper)}}}.${{{_number(draw, deeper)}}}"',
            lambda: f"{draw.choice(_TEXT_FUNCTIONS)}({_text(draw, deeper)})",
            lambda: f'join("-", {_list(draw, deeper)})',
            lambda: f'replace({_text(draw, deeper)}, "/[a-c]+/", "<$0>")',
            lambda: f'format("%s/%v", {_text(draw, deeper)}, {_list(draw, deeper)})',
            lambda: f"jsonencode({_drawn(draw, deeper)})",
            lambda: f"substr({_text(draw, deeper)}, {draw.randrange(4)}, {draw.randrange(6)})",
            lambda: f"sha1({_text(draw, deeper)})",
        ]
    )()


def _number(draw: random.Random, depth: int) -> str:
    if depth <= 0:
        return draw.choice(_NUMBERS)
    deeper = depth - 1
    return draw.choice(
        [
            lambda: f"({_number(draw, deeper)} {draw.choice('+-*')} {_number(draw, deeper)})",
            lambda: f"length({_list(draw, deeper)})",
            lambda: f"max({_number(draw, deeper)}, {_number(draw, deeper)})",
            lambda: f"floor({_number(draw, deeper)})",
        ]
    )()


def _list(draw: random.Random, depth: int) -> str:
    if depth <= 0:
        return draw.choice([*_LISTS, *_SETS])
    deeper = depth - 1
    return draw.choice(
        [
            lambda: f"[{', '.join(_drawn(draw, deeper - 1) for _ in range(draw.randrange(4)))}]",
            lambda: f"[for i, x in {_list(draw, deeper)} : {draw.choice(['x', 'i', '[x]', '{ v = x }', 'jsonencode(x)'])}]",
            lambda: f"concat({_list(draw, deeper)}, {_list(draw, deeper)})",
            lambda: f"{draw.choice(_LIST_FUNCTIONS)}({_list(draw, deeper)})",
            lambda: f"keys({_object(draw, deeper)})",
            lambda: f"values({_object(draw, deeper)})",
            lambda: f"setproduct({_list(draw, deeper)}, {_list(draw, deeper)})",
            lambda: f"[for x in {_list(draw, deeper)} : x if {_condition(draw, deeper)}]",
        ]
    )()


def _object(draw: random.Random, depth: int) -> str:
    if depth <= 0:
        return draw.choice(_OBJECTS)
    deeper = depth - 1
    return draw.choice(
        [
            lambda: f"{{ a = {_drawn(draw, deeper)}, b = {_drawn(draw, deeper)} }}",
            lambda: f"merge({_object(draw, deeper)}, {_object(draw, deeper)})",
            lambda: f"{{ for x in {_list(draw, deeper)} : jsonencode(x) => x... }}",
            lambda: f"{{ for k, v in {_object(draw, deeper)} : upper(k) => v }}",
            lambda: f"tomap({_object(draw, deeper)})",
        ]
    )()


def _condition(draw: random.Random, depth: int) -> str:
    if depth <= 0:
        return draw.choice(["true", "false"])
    deeper = depth - 1
    return draw.choice(
        [
            lambda: f"{_drawn(draw, deeper - 1)} == {_drawn(draw, deeper - 1)}",
            lambda: f"{_number(draw, deeper)} < {_number(draw, deeper)}",
            lambda: f"!({_condition(draw, deeper)})",
            lambda: f"contains({_list(draw, deeper)}, {_drawn(draw, deeper - 1)})",
            lambda: f"can({_drawn(draw, deeper - 1)})",
        ]
    )()
