"""Finding ranks: what is given, what is recognised, what is refused, and that the order of listings does not matter."""

from __future__ import annotations

import gzip
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_advisor.extractors.readers.discover import MAX_DEPTH, Discovery, discover
from hermes_advisor.extractors.readers.errors import InputError

Make = Callable[..., Path]
Write = Callable[[str, str | bytes], Path]
TRACE = '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":"1.000","dur":1}]'


def found(discovery: Discovery) -> list[tuple[int, bool, str]]:
    return [(s.rank, s.rank_known, s.label) for s in discovery.sources]


def issues(discovery: Discovery) -> list[str]:
    return [h.issue for h in discovery.health]


def info(rank: Any, end: int = 1) -> dict[str, Any]:
    return {"rank_id": rank, "end_info": {"collectionTimeEnd": end}}


def test_one_rank_folder(make_rank: Make) -> None:
    folder = make_rank("r0", info(0), info_name="profiler_info_0.json")
    found_here = discover([folder])
    assert found(found_here) == [(0, True, "r0")]
    source = found_here.sources[0]
    assert (source.path, source.output, source.prefix) == (folder, folder / "ASCEND_PROFILER_OUTPUT", "")
    assert source.info_file == "profiler_info_0.json"
    assert pickle.loads(pickle.dumps(source)) == source
    assert found_here.health == ()


def test_a_parent_of_many_nested(make_rank: Make, tmp_path: Path) -> None:
    for name, rank in (("z", 0), ("b/c/d", 2), ("a", 1)):
        make_rank(f"run/{name}", info(rank))
    assert found(discover([tmp_path / "run"])) == [(0, True, "z"), (1, True, "a"), (2, True, "b/c/d")]


def test_the_output_folder_itself(make_rank: Make) -> None:
    folder = make_rank("r", info(5))
    assert found(discover([folder / "ASCEND_PROFILER_OUTPUT"])) == [(5, True, "r")]


def test_an_output_folder_alone(write: Write, tmp_path: Path) -> None:
    write("copy/ASCEND_PROFILER_OUTPUT/trace_view.json", TRACE)
    for given in ("copy", "copy/ASCEND_PROFILER_OUTPUT"):
        discovery = discover([tmp_path / given])
        assert [(s.rank, s.rank_known) for s in discovery.sources] == [(0, False)]
        assert [h.issue for h in discovery.sources[0].health] == ["unknown_rank"]


def test_a_timeline_and_a_folder_that_holds_only_one(write: Write, tmp_path: Path) -> None:
    path = write("one/trace_view.json", TRACE)
    assert found(discover([path])) == [(0, False, "trace_view.json")]
    assert found(discover([tmp_path / "one"])) == [(0, False, "one")]
    other = write("other/step7.json", TRACE)
    assert found(discover([other])) == [(0, False, "step7.json")]


def test_a_timeline_within_a_rank_folder_knows_its_rank(make_rank: Make) -> None:
    folder = make_rank("r", info(6), files={"trace_view.json": TRACE})
    assert found(discover([folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"])) == [(6, True, "trace_view.json")]


def test_a_device_id_is_no_rank(make_rank: Make) -> None:
    folder = make_rank("r", {"device_id": 4}, {"distributed_args": {"rank": 2}, "Device_id": 4})
    assert found(discover([folder])) == [(2, True, "r")]


def test_ranks_unknown_are_numbered_in_order_of_their_names(make_rank: Make, tmp_path: Path) -> None:
    make_rank("run/c", {})
    make_rank("run/b", None)
    discovery = discover([tmp_path / "run"])
    assert found(discovery) == [(0, False, "b"), (1, False, "c")]
    assert [h.severity for s in discovery.sources for h in s.health] == ["warning", "warning"]


def test_a_profile_without_a_rank_is_never_given_one_beside_named_ranks(
    make_rank: Make, write: Write, tmp_path: Path
) -> None:
    make_rank("run/a", info(1))
    write("run/trace_view/trace_view.json", TRACE)
    discovery = discover([tmp_path / "run"])
    assert found(discovery) == [(1, True, "a")]
    assert [(h.issue, h.severity, h.count) for h in discovery.health] == [("unnamed_rank_left_out", "warning", 1)]
    assert discovery.health[0].detail.endswith(": trace_view")


def test_a_copied_folder_is_taken_once_and_named(make_rank: Make, tmp_path: Path) -> None:
    for name in ("run/copy of r", "run/r", "run/r (2)"):
        make_rank(name, info(0, 7))
    discovery = discover([tmp_path / "run"])
    assert found(discovery) == [(0, True, "copy of r")]
    assert issues(discovery) == ["several_captures"]
    assert "left out: r, r (2)" in discovery.health[0].detail


def test_of_two_runs_the_later_one_is_taken_whole(make_rank: Make, tmp_path: Path) -> None:
    second = 10**9
    for rank in range(3):
        make_rank(f"run/old{rank}", info(rank, 100 * second + rank))
    for rank in range(2):
        make_rank(f"run/new{rank}", info(rank, 500 * second + rank))
    make_rank("run/new4", info(4, 501 * second))
    discovery = discover([tmp_path / "run"])
    # Rank 2 was captured in the earlier run only: it does not belong to the later one.
    assert found(discovery) == [(0, True, "new0"), (1, True, "new1"), (4, True, "new4")]
    assert discovery.health[0].count == 3


def test_several_infos_in_one_folder(make_rank: Make) -> None:
    folder = make_rank("r", info(3, 5), info_name="profiler_info_3.json")
    (folder / "profiler_info_1.json").write_text('{"rank_id": 1, "end_info": {"collectionTimeEnd": 9}}')
    discovery = discover([folder])
    assert found(discovery) == [(1, True, "r")]
    assert [h.issue for h in discovery.sources[0].health] == ["several_profiler_infos"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe\x00"])
def test_a_broken_info_is_noted_and_the_name_still_tells_the_rank(make_rank: Make, content: bytes) -> None:
    folder = make_rank("r", {}, info_name="profiler_info_4.json")
    (folder / "profiler_info_4.json").write_bytes(content)
    discovery = discover([folder])
    assert found(discovery) == [(4, True, "r")]
    assert [h.file for h in discovery.sources[0].health] == ["profiler_info_4.json"]


def test_links_that_go_in_circles_and_twice_to_one_rank(make_rank: Make, tmp_path: Path) -> None:
    folder = make_rank("run/deep/r", info(0))
    (tmp_path / "run" / "again").symlink_to(folder, target_is_directory=True)
    (tmp_path / "run" / "deep" / "up").symlink_to(tmp_path / "run", target_is_directory=True)
    (tmp_path / "run" / "nowhere").symlink_to(tmp_path / "gone")
    discovery = discover([tmp_path / "run"])
    assert found(discovery) == [(0, True, "again")]
    assert discovery.health == ()


def test_search_has_an_end(make_rank: Make, tmp_path: Path) -> None:
    make_rank("run/r", info(0))
    make_rank("run/" + "/".join("d" * (MAX_DEPTH + 2)), info(1))
    discovery = discover([tmp_path / "run"])
    assert found(discovery) == [(0, True, "r")]
    assert issues(discovery) == ["search_too_deep"]


def test_several_paths_in_any_order(make_rank: Make, tmp_path: Path) -> None:
    a, b = make_rank("x/a", info(1)), make_rank("y/b", info(0))
    discovery = discover([a, b])
    assert found(discovery) == [(0, True, "y/b"), (1, True, "x/a")]
    assert discover([b, a, b, tmp_path / "x"]) == discover([tmp_path / "x", a, b])


def test_the_order_of_listings_does_not_matter(
    make_rank: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i, name in enumerate("cadb"):
        make_rank(f"run/{name}", info(i % 3, 7))
        make_rank(f"run/{name}{name}", None)
    expected = discover([tmp_path / "run"])
    scandir = os.scandir

    class Reversed:
        def __init__(self, path: Any) -> None:
            with scandir(path) as entries:
                self.entries = sorted(entries, key=lambda e: e.name, reverse=True)

        def __enter__(self) -> Any:
            return iter(self.entries)

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(os, "scandir", Reversed)
    assert discover([tmp_path / "run"]) == expected


def raw(tmp_path: Path, name: str = "host_1_20260101000000000_ascend_pt") -> Path:
    (tmp_path / name / "PROF_000001_20260101000000000_AB" / "device_0").mkdir(parents=True)
    (tmp_path / name / "FRAMEWORK").mkdir()
    (tmp_path / name / "profiler_info_0.json").write_text("{}")
    return tmp_path / name


def databases(tmp_path: Path, name: str = "db_ascend_pt") -> Path:
    (tmp_path / name / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
    (tmp_path / name / "profiler_info_0.json").write_text("{}")
    (tmp_path / name / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_0.db").write_bytes(b"SQLite format 3\0")
    return tmp_path / name


def test_raw_and_database_ranks_beside_text_are_named(make_rank: Make, tmp_path: Path) -> None:
    make_rank("r", info(0))
    raw(tmp_path)
    databases(tmp_path)
    (tmp_path / "info_only").mkdir()
    (tmp_path / "info_only" / "profiler_info_7.json").write_text("{}")
    discovery = discover([tmp_path])
    assert found(discovery) == [(0, True, "r")]
    assert issues(discovery) == ["not_parsed", "only_databases", "no_output"]


def test_a_database_beside_text_disturbs_nothing(make_rank: Make) -> None:
    folder = make_rank("r", info(0))
    (folder / "ASCEND_PROFILER_OUTPUT" / "analysis.db").write_bytes(b"SQLite format 3\0")
    assert discover([folder]).health == ()


def absent(tmp_path: Path) -> Path:
    return tmp_path / "nope"


def empty(tmp_path: Path) -> Path:
    (tmp_path / "empty").mkdir()
    return tmp_path / "empty"


def something_else(tmp_path: Path) -> Path:
    (tmp_path / "src" / "deeper").mkdir(parents=True)
    (tmp_path / "src" / "main.py").write_text("print()")
    (tmp_path / "src" / "app.db").write_bytes(b"")
    return tmp_path / "src"


def info_alone(tmp_path: Path) -> Path:
    (tmp_path / "i").mkdir()
    (tmp_path / "i" / "profiler_info_0.json").write_text("{}")
    return tmp_path / "i"


def text_file(tmp_path: Path) -> Path:
    (tmp_path / "notes.txt").write_text("hello")
    return tmp_path / "notes.txt"


def csv_file(tmp_path: Path) -> Path:
    (tmp_path / "step_trace_time.csv").write_text("Step,Computing\n1,2\n")
    return tmp_path / "step_trace_time.csv"


def empty_trace(tmp_path: Path) -> Path:
    (tmp_path / "trace_view.json").write_bytes(b"")
    return tmp_path / "trace_view.json"


def kineto(tmp_path: Path) -> Path:
    (tmp_path / "w.pt.trace.json").write_text('{"schemaVersion": 1, "traceEvents": [{"ph": "X"}]}')
    return tmp_path / "w.pt.trace.json"


def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "trace_view.json")
    return tmp_path / "trace_view.json"


def one_file(name: str, content: str | bytes = "x") -> Callable[[Path], Path]:
    """Makes a folder that holds the file, two levels down."""

    def make(tmp_path: Path) -> Path:
        path = tmp_path / "given" / "inner" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return tmp_path / "given"

    return make


KINETO = '{"schemaVersion": 1, "deviceProperties": [], "traceEvents": []}'


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (one_file("w0.pt.trace.json.gz"), "Kineto traces"),
        (one_file("rank0.json.gz", gzip.compress(KINETO.encode())), "Kineto traces"),
        (one_file("rank0.json.gz", gzip.compress(KINETO.encode())[:20] + b"damage"), "holds no profile"),
        (one_file("ascend_timeline_display_0.json"), "MindSpore profiles"),
        (one_file("step_trace_raw_1_detail_time.csv"), "MindSpore profiles"),
        (one_file("cluster_step_trace_time.csv"), "ranks that it was made from (*_ascend_pt)"),
        (one_file("cluster_analysis.db"), "output of cluster analysis"),
        (one_file("PROF_000001_2023_ABC/device_0/start_info"), "msprof data"),
        (one_file("op_summary_1.csv"), "msprof data"),
        (one_file("train.log"), "training logs"),
        (one_file("a.txt", "iteration 5/100 | elapsed time per iteration (ms): 12"), "training logs"),
        (one_file("a.txt", "nothing of the kind"), "holds no profile"),
    ],
)
def test_what_is_known_but_not_read_is_called_by_its_name(
    tmp_path: Path, make: Callable[[Path], Path], words: str
) -> None:
    path = make(tmp_path)
    with pytest.raises(InputError) as error:
        discover([path])
    message = str(error.value)
    assert message.startswith(f"{path}: holds ")
    assert words in message
    assert ("not read yet" in message) == (words != "holds no profile")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "words"),
    [("w0.pt.trace.json", "Kineto traces"), ("cluster_communication.json", "output of cluster analysis"),
     ("ascend_timeline_display_0.json", "MindSpore profiles"), ("msprof_0.db", "msprof data"), ("x.log", "training logs")],
)  # fmt: skip
def test_a_file_that_is_known_but_not_read(write: Write, name: str, words: str) -> None:
    with pytest.raises(InputError, match=f"holds .*{words}.*, not read yet: give "):
        discover([write(name, "{}")])


def test_the_analysis_of_a_cluster_beside_its_ranks_disturbs_nothing(make_rank: Make, tmp_path: Path) -> None:
    make_rank("run/r0", info(0))
    (tmp_path / "run" / "cluster_analysis_output").mkdir()
    (tmp_path / "run" / "cluster_analysis_output" / "cluster_step_trace_time.csv").write_text("x")
    assert found(discover([tmp_path / "run"])) == [(0, True, "r0")]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (absent, "no such file or folder"),
        (empty, "the folder is empty"),
        (something_else, "holds no profile"),
        (info_alone, "copy it whole"),
        (text_file, "is no trace_view.json"),
        (csv_file, "is no trace_view.json"),
        (empty_trace, "is empty"),
        (kineto, "holds Kineto traces"),
        (pipe, "is a directory or a device"),
        (raw, "torch_npu.profiler.profiler.analyse"),
        (databases, "export_type=[ExportType.Text]"),
    ],
)
def test_refused_in_one_line_that_says_what_to_do(tmp_path: Path, make: Callable[[Path], Path], words: str) -> None:
    path = make(tmp_path)
    with pytest.raises(InputError) as error:
        discover([path])
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert words in message
    assert "\n" not in message


def test_one_bad_path_among_good_ones_is_refused(make_rank: Make, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nope"):
        discover([make_rank("r", info(0)), tmp_path / "nope"])


def test_no_path_at_all() -> None:
    with pytest.raises(InputError):
        discover([])


def test_a_folder_that_cannot_be_listed(tmp_path: Path, make_rank: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    make_rank("run/r", info(0))
    (tmp_path / "run" / "closed").mkdir()
    scandir = os.scandir

    def refusing(path: Any) -> Any:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert issues(discover([tmp_path / "run"])) == ["unreadable_folder"]
    with pytest.raises(InputError, match="cannot be listed"):
        discover([tmp_path / "run" / "closed"])
