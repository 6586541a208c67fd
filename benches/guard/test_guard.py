"""The guard finds what has become more expensive, and nothing else."""

from __future__ import annotations

import pytest

import guard

FILE = """desc: Trigger: Client Request: a
ob=(1) /lib/libc.so.6
fn=(1) memcpy
12 100
ob=(2) /site/_core.abi3.so
fn=(2) solve
12 1000
+3 20
cob=(1)
cfn=(1)
calls=2 12
* 200
-1 4
ob=(1)
fn=(1)
12 50
"""


def test_instructions_of_the_module_are_counted_without_those_of_callees():
    assert guard.instructions(iter(FILE.splitlines())) == 1024


def test_growth_beyond_three_percent_is_named():
    before = {"fit": {"steps": 100_000, "instructions": 10**6}, "gone": {"steps": 1}}
    assert guard.growth(before, {**before, "new": {}}, {"steps"}) == ["new: no committed counts"]
    after = {"fit": {"steps": 102_000, "instructions": 2 * 10**6}, "gone": {"steps": 1}}
    assert guard.growth(before, after, {"steps"}) == []
    assert guard.growth(before, after, {"steps", "instructions"}) == [
        "fit: instructions 1,000,000 -> 2,000,000 (+100.0%)"
    ]
    assert guard.growth(before, {"fit": before["fit"]}, {"steps"}) == [
        "gone: committed, but no workload any more"
    ]


@pytest.mark.skipif(guard.missing_tool() is not None, reason="callgrind is not installed")
def test_one_more_pass_over_kernel_values_in_a_search_is_found():
    counted = guard.count(["search: noise", "planted"])
    before = {"search: noise": counted["search: noise"]}
    after = {"search: noise": counted["planted"]}
    (line,) = guard.growth(before, after, {"instructions"})
    assert line.startswith("search: noise: instructions")
    assert guard.growth(after, before, {"instructions"}) == []
