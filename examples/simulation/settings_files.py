"""Writes profiler_info_R.json and profiler_metadata.json: in: a timeline; out: how the capture was set up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hermes_advisor.examples.simulation.ranks import STEPS, WORLD_SIZE
from hermes_advisor.examples.simulation.text import write_json
from hermes_advisor.examples.simulation.timeline import GROUP, RankTimeline

_BOOT_NS = 512_000_000_000_000
_ENVIRONMENT = {
    "ASCEND_GLOBAL_LOG_LEVEL": "3", "HCCL_RDMA_TC": "", "HCCL_RDMA_SL": "", "ACLNN_CACHE_LIMIT": "",
    "HOST_CACHE_CAPACITY": "", "ASCEND_ENHANCE_ENABLE": "", "PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True",
    "ASCEND_LAUNCH_BLOCKING": "", "HCCL_ALGO": "",
}  # fmt: skip


def write_settings(timeline: RankTimeline, folder: Path) -> None:
    """Write both files into the rank's folder."""
    write_json(folder / f"profiler_info_{timeline.rank}.json", _info(timeline), indent=4)
    write_json(folder / "profiler_metadata.json", _metadata(timeline.rank))


def _info(timeline: RankTimeline) -> dict[str, Any]:
    schedule = {"wait": 0, "active": len(STEPS), "warmup": 1, "repeat": 1, "skip_first": STEPS[0] - 1}
    # A clock that started at boot: the capture lasts as long on it as in wall time.
    booted = timeline.capture_start_ns % 1_000_000_000_000 + _BOOT_NS
    return {
        "config": {
            "common_config": {
                "activities": ["ProfilerActivity.CPU", "ProfilerActivity.NPU"],
                "schedule": schedule,
                "record_shapes": True,
                "profile_memory": True,
                "with_stack": False,
                "with_flops": False,
                "with_modules": False,
            },
            "experimental_config": {
                "_profiler_level": "Level1",
                "_aic_metrics": "ACL_AICORE_PIPE_UTILIZATION",
                "_l2_cache": False,
                "_msprof_tx": False,
                "_mstx": False,
                "_data_simplification": True,
                "record_op_args": False,
                "_export_type": ["text"],
                "_host_sys": [],
                "_op_attr": False,
                "_gc_detect_threshold": None,
                "_mstx_domain_include": [],
                "_mstx_domain_exclude": [],
                "_sys_io": False,
                "_sys_interconnection": False,
            },
        },
        "start_info": {"syscnt_enable": True, "freq": 100, "start_cnt": booted // 10, "start_monotonic": booted},
        "end_info": {
            "collectionTimeEnd": timeline.capture_end_ns,
            "MonotonicTimeEnd": booted + timeline.capture_end_ns - timeline.capture_start_ns,
        },
        "torch_npu_version": "2.7.1",
        "cann_version": "8.3.RC1",
        "rank_id": str(timeline.rank),
    }


def _metadata(rank: int) -> dict[str, Any]:
    everyone = list(range(WORLD_SIZE))
    sizes = {"tensor": 1, "pipeline": 1}
    return {
        "distributed_args": {
            **{f"{name}_model_parallel_size": size for name, size in sizes.items()},
            "data_parallel_size": WORLD_SIZE,
            "context_parallel_size": 1,
            "expert_model_parallel_size": 1,
            "sequence_parallel": False,
            "rank": rank,
            "world_size": WORLD_SIZE,
        },
        "ENV_VARIABLES": _ENVIRONMENT,
        "parallel_group_info": {
            name: {"group_name": role, "group_rank": rank, "global_ranks": everyone}
            for name, role in (("group_name_0", "default_group"), (GROUP, "dp"))
        },
    }
