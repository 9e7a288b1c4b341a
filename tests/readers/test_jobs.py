"""Several jobs below one path are refused by name; one job spread over folders, nodes and clocks is not split."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_advisor.extractors.readers.capture_time import first_time_ns
from hermes_advisor.extractors.readers.discover import discover
from hermes_advisor.extractors.readers.errors import InputError

Make = Callable[..., Path]
SECOND = 10**9
NOW = 1_767_322_800 * SECOND  # 2026-01-02 03:00:00 UTC
DAY = 86_400 * SECOND


def info(rank: int, end: int = NOW) -> dict[str, Any]:
    return {"rank_id": rank, "end_info": {"collectionTimeEnd": end}}


def args(**sizes: int) -> dict[str, Any]:
    return {"distributed_args": sizes}


def labels(*paths: Path) -> list[str]:
    return [source.label for source in discover(paths).sources]


def refusal(*paths: Path) -> str:
    with pytest.raises(InputError) as error:
        discover(paths)
    assert "\n" not in str(error.value)
    return str(error.value)


def timeline(start_us: int) -> dict[str, str]:
    return {"trace_view.json": f'[{{"ph":"X","name":"a","pid":1,"tid":1,"ts":"{start_us}.250","dur":1}}]'}


def test_one_job_over_nodes_whose_clocks_differ(make_rank: Make, tmp_path: Path) -> None:
    for rank in range(4):
        node = rank // 2
        make_rank(
            f"run/node{node}/host{node}_{rank}_ascend_pt", info(rank, NOW + node * 90 * SECOND), args(world_size=4)
        )
    assert len(labels(tmp_path / "run")) == 4
    assert len(labels(tmp_path / "run" / "node0", tmp_path / "run" / "node1")) == 4


def test_ranks_that_declare_nothing_go_with_those_that_do(make_rank: Make, tmp_path: Path) -> None:
    make_rank("run/a", info(0), args(world_size=4))
    make_rank("run/b", info(1), {})
    make_rank("run/c", info(2, 0), args(tensor_model_parallel_size=2))
    assert len(labels(tmp_path / "run")) == 3


@pytest.mark.parametrize(
    "other",
    [args(world_size=8), args(world_size=4, pipeline_model_parallel_size=1),
     {"parallel_group_info": {"g": {"group_name": "default_group", "global_ranks": [0, 1]}}}],
)  # fmt: skip
def test_jobs_of_different_size_or_layout(make_rank: Make, tmp_path: Path, other: dict[str, Any]) -> None:
    for rank in (0, 1):
        make_rank(f"many/one/r{rank}", info(rank), args(world_size=4, pipeline_model_parallel_size=2))
    make_rank("many/two/r1", info(1), other)
    message = refusal(tmp_path / "many")
    assert message.startswith(f"{tmp_path / 'many'}: holds profiles of 2 different jobs or captures: ")
    assert "one (ranks 0, 1, world size 4, captured 2026-01-02 03:00 UTC)" in message
    assert "; two/r1 (rank 1" in message
    assert message.endswith("; give the folder of one")
    assert labels(tmp_path / "many" / "one") == ["r0", "r1"]


def test_different_ranks_that_were_not_captured_together(make_rank: Make, tmp_path: Path) -> None:
    make_rank("many/one/r0", info(0))
    make_rank("many/one/r1", info(1))
    make_rank("many/two/r4", info(4, NOW + 3600 * SECOND))
    assert "one (ranks 0, 1, captured 2026-01-02 03:00 UTC); two/r4 (rank 4, captured 2026-01-02 04:00 UTC)" in refusal(
        tmp_path / "many"
    )


def test_jobs_that_share_a_folder_are_named_by_their_ranks_folders(make_rank: Make, tmp_path: Path) -> None:
    for rank in (0, 2):
        make_rank(f"mixed/a{rank}", info(rank))
        make_rank(f"mixed/b{rank + 1}", info(rank + 1, NOW + DAY))
    message = refusal(tmp_path / "mixed")
    assert "a0, a2 (ranks 0, 2" in message
    assert "b1, b3 (ranks 1, 3" in message


def test_the_same_ranks_captured_again_are_a_choice(make_rank: Make, tmp_path: Path) -> None:
    for name, end in (("early", NOW), ("late", NOW + 3600 * SECOND)):
        for rank in (0, 1):
            make_rank(f"run/{name}/r{rank}", info(rank, end))
            # Beside each other they are one job's, however long it trains.
            make_rank(f"flat/{name}{rank}_ascend_pt", info(rank, end if name == "early" else NOW + 40 * DAY))
    assert labels(tmp_path / "run") == ["late/r0", "late/r1"]
    assert labels(tmp_path / "flat") == ["late0_ascend_pt", "late1_ascend_pt"]
    assert discover([tmp_path / "flat"]).health[0].issue == "several_captures"


def test_the_same_rank_in_another_folder_long_after_is_another_job(make_rank: Make, tmp_path: Path) -> None:
    make_rank("many/one/r0", info(0))
    make_rank("many/two/r0", info(0, NOW + 40 * DAY))
    assert "2 different jobs" in refusal(tmp_path / "many")


def test_an_unnamed_timeline_of_another_time_is_another_job(make_rank: Make, tmp_path: Path) -> None:
    make_rank("many/one", info(0))
    make_rank("many/two", None, files=timeline(NOW // 1000 - DAY // 1000))
    assert "two (rank not named, captured 2026-01-01 03:00 UTC)" in refusal(tmp_path / "many")
    make_rank("other/one", None, files=timeline(NOW // 1000 - DAY // 1000))
    make_rank("other/two", None, files=timeline(NOW // 1000))
    assert "2 different jobs" in refusal(tmp_path / "other")


def test_thousands_of_ranks_are_told_together_at_once(make_rank: Make, tmp_path: Path) -> None:
    for rank in range(1500):
        make_rank(f"run/r{rank}", info(rank, NOW + rank), args(world_size=1500), {})
        (tmp_path / f"run/r{rank}/ASCEND_PROFILER_OUTPUT/step_trace_time.csv").touch()
    assert len(labels(tmp_path / "run")) == 1500


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("trace_view.json", '[{"ph":"M","args":{}},{"ts":"12.5"},{"ts": 1767322800000000.125}]', NOW + 125),
        ("communication.json", '{"step1":{"p2p":{"a":{"Start Timestamp(us)": 1767322800000000.5}}}}', NOW + 500),
        ("kernel_details.csv", "Name,Start Time(us),x\nk,1767322800000001.000\t,\n", NOW + 1000),
        ("kernel_details.csv", "Name,Start Time(us)\n", 0),
        ("kernel_details.csv", "Name\nk\n", 0),
        ("trace_view.json", "", 0),
        ("trace_view.json", '[{"ts": 17673228000000001767322800}]', 0),
    ],
)
def test_times_at_the_beginning_of_the_files(tmp_path: Path, name: str, content: str, expected: int) -> None:
    (tmp_path / name).write_text(content)
    assert first_time_ns(tmp_path) == expected


def test_the_field_profiles_are_not_one_run(field_dir: Path) -> None:
    message = refusal(field_dir)
    for job in (
        "ascend-4rank-pp2dp2-level2 (ranks 0, 1, 2, 3",
        "ascend-timeline-small (rank not named",
        "ascend-trimmed-",
    ):
        assert job in message
    assert "2 different jobs" in refusal(
        field_dir / "ascend-2rank-text" / "level1", field_dir / "ascend-timeline-small"
    )
    assert labels(field_dir / "ascend-2rank-text") == ["level2/rank0_ascend_pt", "level2/rank1_ascend_pt"]
