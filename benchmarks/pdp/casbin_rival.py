"""pycasbin in this process: its enforcer that looks policies up by topic and user, without HTTP or JSON."""

import time
from collections.abc import Sequence
from pathlib import Path

import casbin

from benchmarks.pdp.estate import Question, Rule

_MODEL = """[request_definition]
r = sub, obj, act

[policy_definition]
p = sub, obj, act, eft

[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))

[matchers]
m = r.sub == p.sub && r.obj == p.obj && r.act == p.act
"""


def decisions_per_second(
    rules: Sequence[Rule], questions: Sequence[Question], scratch: Path
) -> tuple[float, list[bool]]:
    """Return decisions a second of the thread's CPU, and what was decided."""
    model, policy = scratch / "model.conf", scratch / "policy.csv"
    model.write_text(_MODEL, encoding="utf-8")
    lines = (
        f"p, {rule.user}, {rule.topic}, {rule.operation}, {'deny' if rule.is_deny else 'allow'}\n" for rule in rules
    )
    policy.write_text("".join(lines), encoding="utf-8")
    enforcer = casbin.FastEnforcer(str(model), str(policy), cache_key_order=[0, 1])
    begin = time.thread_time()
    found = [enforcer.enforce(each.user, each.topic, each.operation) for each in questions]
    return len(questions) / (time.thread_time() - begin), found
