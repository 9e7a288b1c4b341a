"""profiler_info and profiler_metadata: the rank, and how it was profiled."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_advisor.extractors.readers.settings import collection_end_ns, rank_of, rank_settings
from hermes_advisor.extractors.readers.tables import GroupInfo

INFO: dict[str, Any] = {
    "config": {
        "common_config": {"record_shapes": True, "profile_memory": False, "with_stack": "yes"},
        "experimental_config": {"_profiler_level": "Level2", "_aic_metrics": "ACL_AICORE_PIPE_UTILIZATION"},
    },
    "end_info": {"collectionTimeEnd": 1764246878131995320},
    "torch_npu_version": "2.7.1", "cann_version": "8.3.RC1", "rank_id": "0",
}  # fmt: skip
METADATA: dict[str, Any] = {
    "distributed_args": {
        "pipeline_model_parallel_size": 2,
        "sequence_parallel": False,
        "rank": 3,
        "world_size": 4,
        "x": None,
    },
    "ENV_VARIABLES": {"HCCL_ALGO": "", "TASK_QUEUE_ENABLE": 2},
    "parallel_group_info": {
        "group_name_5": {"group_name": "dp_cp", "group_rank": 0, "global_ranks": [0, 1]},
        "group_name_6": {"group_name": 7, "global_ranks": ["2", 3]},
        "group_name_7": {"group_name": "tp", "global_ranks": []},
        "group_name_8": {"group_name": "tp", "global_ranks": [0, "x"]},
        "group_name_9": None,
    },
}


def test_settings() -> None:
    found = rank_settings(INFO, METADATA, "r/profiler_info_0.json", "r/profiler_metadata.json")
    assert (found.level, found.aic_metrics) == ("Level2", "ACL_AICORE_PIPE_UTILIZATION")
    assert (found.record_shapes, found.with_stack, found.profile_memory) == (True, None, False)
    assert found.versions == {"torch_npu": "2.7.1", "cann": "8.3.RC1"}
    assert found.environment == {"HCCL_ALGO": "", "TASK_QUEUE_ENABLE": "2"}
    assert found.parallel == {"pipeline_model_parallel_size": 2, "rank": 3, "world_size": 4}
    assert found.groups == (GroupInfo("group_name_5", "dp_cp", (0, 1)), GroupInfo("group_name_6", "", (2, 3)))
    assert (found.info_file, found.metadata_file) == ("r/profiler_info_0.json", "r/profiler_metadata.json")


@pytest.mark.parametrize("broken", [{}, {"config": None}, {"config": {"common_config": 3, "experimental_config": []}}])
def test_what_is_not_recorded_stays_unknown(broken: dict[str, Any]) -> None:
    found = rank_settings(broken, {"ENV_VARIABLES": [], "distributed_args": 3, "parallel_group_info": []}, "", "")
    assert (found.level, found.aic_metrics, found.record_shapes, found.versions) == ("", "", None, {})
    assert (found.environment, found.parallel, found.groups) == (None, {}, ())


@pytest.mark.parametrize(
    ("written", "level"),
    [
        ("Level1", "Level1"), ("level0", "Level0"), ("LEVEL2", "Level2"), ("Level_none", "Level_none"),
        ("ProfilerLevel.Level1", "Level1"), ("ProfilerLevel.level_none", "Level_none"), ("Deep", "Deep"), (1, ""), (None, ""),
    ],
)  # fmt: skip
def test_level_in_any_spelling(written: object, level: str) -> None:
    assert rank_settings({"config": {"experimental_config": {"_profiler_level": written}}}, {}, "", "").level == level


@pytest.mark.parametrize(
    ("info", "name", "metadata", "rank"),
    [
        ({"rank_id": 4}, "profiler_info_9.json", {"distributed_args": {"rank": 8}}, 4),
        ({"rank_id": "4"}, "profiler_info.json", {}, 4),
        ({}, "profiler_info_9.json", {"distributed_args": {"rank": 8}}, 9),
        ({}, "profiler_info.json", {"distributed_args": {"rank": 8}}, 8),
        ({"rank_id": -1}, "profiler_info.json", {"distributed_args": {"rank": "8"}}, 8),
        ({"rank_id": None}, "", {"distributed_args": {"rank": 0}}, 0),
        ({"rank_id": -1}, "profiler_info.json", {}, None),
        ({"rank_id": True}, "profiler_info.json", {}, None),
        ({"rank_id": "1.5"}, "", {"distributed_args": None}, None),
        ({"rank_id": 10**30}, "", {}, None),
    ],
)
def test_rank(info: dict[str, Any], name: str, metadata: dict[str, Any], rank: int | None) -> None:
    assert rank_of(info, name, metadata) == rank


def test_end_of_the_capture() -> None:
    assert collection_end_ns(INFO) == 1764246878131995320
    assert [collection_end_ns(i) for i in ({}, {"end_info": 3}, {"end_info": {"collectionTimeEnd": "x"}})] == [0, 0, 0]


def test_a_group_is_named_by_its_hash_in_communication_files() -> None:
    # Pairs of names and numbers as a real job recorded them (torch_npu 2.7.1, CANN 8.3).
    assert GroupInfo("group_name_5", "dp_cp", (0, 1)).hashed_name == "5862276114690318097"
    assert GroupInfo("group_name_0", "default_group", (0, 1, 2, 3)).hashed_name == "5862276093215481612"
