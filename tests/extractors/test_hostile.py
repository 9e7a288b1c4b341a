"""Tables with whatever a damaged or hostile file can hold: no question may fail, and every number stays finite."""

from __future__ import annotations

import math
import random

import pytest

from hermes_advisor.extractors.rank import extract_tables
from hermes_advisor.extractors.readers.tables import GroupInfo, RankSettings
from hermes_advisor.extractors.run import combine

NUMBERS = [0, 1, 2, 7, 999, 10**6, 10**9, 2**40, 2**61]
TEXTS = {
    "name": ["ProfilerStep#3", "ProfilerStep#", "ProfilerStep#99999999999999", "enumerate(DataLoader)#x", "a\x1b[31m", "",
             "aten::_local_scalar_dense", "</script>", "x" * 5000, "op", "MEMCPY_ASYNC"],
    "op_type": ["", "Cast", "=cmd|x", "TransData"], "core_type": ["", "AI_CORE", "MIX_AIV", "AI_CPU", "?"],
    "task_type": ["Other", "", "AI_CORE", "PCIE_DMA_SQE"], "state": ["", "dynamic", "static", "??"],
    "level": ["acl", "runtime", "ACL", "", "node"],
    "api": ["aclrtMemcpy", "AscendCL@aclopCompileAndExecute", "StreamSynchronize", "", "@"],
    "lane": ["Computing", "Communication", "Free", "?"], "traffic": ["collective", "p2p", "total"],
    "group": ["", "g", "h"], "transport": ["HCCS", "SDMA", "LOCAL", "", "RDMA"], "link": ["HostToDevice", "async_npu", "?"],
    "link_type": ["HCCS", "ON_CHIP", ""], "component": ["PTA", "APP", "PTA+GE", ""], "direction": ["", "host to device", "?"],
    "category": ["cpu_op", ""], "series": ["MHz", ""], "thread": ["1", "2"], "stream": ["1"], "kind": ["x"], "op": ["y"],
    "plane": ["0"],
}  # fmt: skip


def value(column, default, draw):
    if column == "name" and default == "AI Core Freq":
        return draw.choice([default, "other"])
    if isinstance(default, str):
        return draw.choice(TEXTS[column])
    if isinstance(default, bool):
        return draw.random() < 0.5
    if isinstance(default, float):
        return draw.choice([float("nan"), 0.0, 0.5, 1.0, 1e300, -1.0, math.inf])
    if column in ("step", "row", "src", "dst", "block_dim", "connection_id"):
        return draw.choice([-1, 0, 1, 2, 3, 10**9])
    return draw.choice(NUMBERS if draw.random() < 0.5 else NUMBERS[:6])


@pytest.mark.parametrize("seed", range(12))
def test_no_question_fails_and_numbers_are_finite(build, defaults, seed):
    draw = random.Random(seed)
    parallel = draw.choice([{}, {"world_size": 3, "pipeline_model_parallel_size": 2}, {"pipeline_model_parallel_size": 0},
                            {"world_size": 10**15}])  # fmt: skip
    settings = RankSettings(
        level=draw.choice(["", "Level1", "?"]), parallel=parallel, environment={"A": "\x00", "": ""}, versions={"cann": "8"},
        groups=draw.choice([(), (GroupInfo("g", "pp", (0, 1)),), (GroupInfo("z", "dp", (5, 5, 5)), GroupInfo("h", "", (0,)))]),
    )  # fmt: skip
    extracts = []
    for rank in range(draw.randint(1, 3)):
        tables = {}
        for name, columns in defaults.items():
            if draw.random() < 0.8:
                rows = [{c: value(c, d, draw) for c, d in columns.items()} for _ in range(draw.randint(0, 12))]
                tables[name] = rows
        extracts.append(extract_tables(build.rank(rank, settings, **tables)))
    failed = [entry.detail for extract in extracts for entry in extract.health if entry.issue == "question_failed"]
    assert failed == []
    run = combine(extracts)
    for fact in run.facts:
        for field, number in fact.scalars().items():
            assert not isinstance(number, float) or math.isfinite(number), (fact.kind, field)
            assert not isinstance(number, str) or (number.isprintable() and len(number) <= 200), (fact.kind, field)
