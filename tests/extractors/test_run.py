from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from hermes_advisor.extractors.executors import Failure, ProcessExecutor, SerialExecutor, executor_for
from hermes_advisor.extractors.rank import extract_rank, extract_tables
from hermes_advisor.extractors.readers.discover import discover
from hermes_advisor.extractors.readers.errors import InputError
from hermes_advisor.extractors.readers.tables import Health
from hermes_advisor.extractors.run import canonical, combine, extract_run
from hermes_advisor.facts.run import SoftwareVersion
from hermes_advisor.facts.vocabulary import FACT_TYPES


@pytest.fixture
def folder(tmp_path):
    """Three ranks in the profiler's own format; rank 1 computes longest and so arrives last."""
    for rank, compute in enumerate([100.0, 130.0, 100.0]):
        home = tmp_path / f"host_{9 - rank}_ascend_pt"
        output = home / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (home / f"profiler_info_{rank}.json").write_text(json.dumps({"rank_id": rank, "cann_version": "8.0.RC3"}))
        (home / "profiler_metadata.json").write_text(json.dumps({"ENV_VARIABLES": {"B": "1", "A": "", "C": "2"}}))
        wait = 150.0 - compute
        (output / "step_trace_time.csv").write_text(
            "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble\n"
            f"{rank},7,{compute},{wait},0,{wait},10.0,{compute + wait},0\n"
        )
        times = {
            "Start Timestamp(us)": 1700000000000000.0, "Elapse Time(ms)": wait / 1000, "Transit Time(ms)": 0.01,
            "Wait Time(ms)": 0, "Idle Time(ms)": 0,
        }  # fmt: skip
        operator = {"Communication Time Info": times, "Communication Bandwidth Info": {}}
        (output / "communication.json").write_text(
            json.dumps({"step7": {"p2p": {}, "collective": {"hcom_allReduce__99_0_1@99": operator}}})
        )
    return tmp_path


def as_bytes(run):
    return json.dumps([fact.model_dump(mode="json") for fact in run.facts]).encode()


def test_a_folder_becomes_facts_in_canonical_order(folder):
    run = extract_run(discover([folder]))
    assert (run.ranks, run.ranks_expected, run.steps, run.duration_us) == ((0, 1, 2), 3, (7,), 160)
    assert run.ranks_expected_is_lower_bound is True
    kinds = [fact.kind for fact in run.facts]
    assert kinds == sorted(kinds, key=list(FACT_TYPES).index)
    steps = [fact for fact in run.facts if fact.kind == "step_breakdown"]
    assert [(fact.rank, fact.compute_us) for fact in steps] == [(0, 100), (1, 130), (2, 100)]
    (wait,) = [fact for fact in run.facts if fact.kind == "communication_wait"]
    assert (wait.late_rank, wait.imposed_wait_us) == (1, 30)
    assert wait.source.file == "host_8_ascend_pt/ASCEND_PROFILER_OUTPUT/communication.json"
    assert len({fact.id for fact in run.facts}) == len(run.facts)


def test_order_of_sources_and_number_of_workers_change_nothing(folder):
    found = discover([folder])
    expected = as_bytes(extract_run(found))
    assert as_bytes(extract_run(replace(found, sources=tuple(reversed(found.sources))))) == expected
    assert as_bytes(extract_run(found, jobs=2)) == expected


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_hash_seed_changes_nothing(folder, seed):
    code = (
        "import sys, json, hashlib\n"
        "from pathlib import Path\n"
        "from hermes_advisor.extractors.readers.discover import discover\n"
        "from hermes_advisor.extractors.run import extract_run\n"
        "run = extract_run(discover([Path(sys.argv[1])]))\n"
        "data = json.dumps([fact.model_dump(mode='json') for fact in run.facts]).encode()\n"
        "print(hashlib.sha256(data).hexdigest())\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(
        [sys.executable, "-c", code, folder], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == hashlib.sha256(as_bytes(extract_run(discover([folder])))).hexdigest()


def test_a_rank_that_fails_is_named_and_the_rest_goes_on(folder):
    class OneFails:
        def run(self, work, items):
            for position, item in enumerate(items):
                yield position, Failure("MemoryError") if position == 1 else work(item)

    done = []
    run = extract_run(discover([folder]), executor=OneFails(), progress=lambda n, of: done.append((n, of)))
    assert run.ranks == (0, 2)
    assert ("rank_failed", 1, "error", "the rank is left out: MemoryError") in [
        (fact.issue, fact.rank, fact.severity, fact.detail) for fact in run.health
    ]
    assert done == [(1, 3), (2, 3), (3, 3)]


def test_no_rank_left_gives_an_empty_run():
    run = combine([], [(0, Health("rank_failed", "error", 1, "x"))])
    assert (run.ranks, run.ranks_expected, run.steps, run.duration_us) == ((), 0, (), 0)
    assert [fact.kind for fact in run.facts] == ["trace_health"]


def test_equal_facts_appear_once():
    fact = SoftwareVersion(component="cann", version="8", versions_seen_count=1)
    assert canonical([fact, fact.model_copy()]) == (fact,)


def test_a_question_that_fails_costs_its_own_facts_only(build):
    tables = build.rank(steps=[{"compute_ns": 5}], kernels=[{"duration_ns": 5}])
    del tables.kernels.frame["core_type"]
    extract = extract_tables(tables)
    assert {"step_breakdown", "kernel_summary"} <= {fact.kind for fact in extract.facts}
    assert "aicpu_kernels" not in {fact.kind for fact in extract.facts}
    failed = [entry for entry in extract.health if entry.issue == "question_failed"]
    assert any(entry.detail.startswith("aicpu_kernels gave up: KeyError") for entry in failed)
    assert all(entry.severity == "error" for entry in failed)


DYING = "__import__('os')._exit(3)"


def test_a_worker_that_dies_costs_its_own_input_only():
    items = ["1 + 1", DYING, "1 / 0", "2 + 2", "3 + 3", "4 + 4"]
    outcomes = dict(ProcessExecutor(2).run(eval, items))
    assert {position: outcomes[position] for position in (0, 3, 4, 5)} == {0: 2, 3: 4, 4: 6, 5: 8}
    assert outcomes[1] == Failure("its worker process died (out of memory, or killed)")
    assert outcomes[2] == Failure("ZeroDivisionError: division by zero")


def test_serial_work_survives_a_failing_input():
    assert list(SerialExecutor().run(eval, ["1", "x"])) == [
        (0, 1), (1, Failure("NameError: name 'x' is not defined"))
    ]  # fmt: skip


def test_processes_only_where_they_pay():
    assert isinstance(executor_for(4, 1), SerialExecutor)
    assert isinstance(executor_for(1, 9), SerialExecutor)
    assert isinstance(executor_for(2, 2), ProcessExecutor)


def test_an_extract_can_be_sent_between_processes(folder):
    import pickle

    extract = extract_rank(discover([folder]).sources[0])
    again = pickle.loads(pickle.dumps(extract))
    assert (again.facts, again.health) == (extract.facts, extract.health)


@pytest.mark.parametrize("content", [b"", b"[]", b"\x00\x01", b'{"a": 1}'])
def test_a_folder_of_which_nothing_can_be_read_is_unusable(tmp_path, content):
    (tmp_path / "trace_view.json").write_bytes(content)
    with pytest.raises(InputError, match=r"^no rank could be read: trace_view\.json: .+$"):
        extract_run(discover([tmp_path]))


def test_a_rank_of_which_nothing_can_be_read_is_left_out_and_named(folder):
    for file in (folder / "host_8_ascend_pt" / "ASCEND_PROFILER_OUTPUT").iterdir():
        file.write_bytes(b"")
    run = extract_run(discover([folder]))
    assert run.ranks == (0, 2)
    assert [(h.rank, h.severity) for h in run.health if h.issue == "no_tables"] == [(1, "error")]
    assert not [fact for fact in run.facts if fact.kind == "step_breakdown" and fact.rank == 1]


def test_times_say_what_they_count_from(tmp_path):
    begin = 1704161511420306491  # as the first event below has it, in ns

    def event(name, start_us, length_us, pid, **more):
        at = begin + start_us * 1000
        return {
            "ph": "X",
            "name": name,
            "ts": f"{at // 1000}.{at % 1000:03d}",
            "dur": length_us,
            "pid": pid,
            "tid": 1,
            **more,
        }

    lanes = [event(*lane, 2) for lane in (("Computing", 30, 10), ("Free", 40, 20), ("Computing", 60, 5))]
    names = [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
             for pid, name in ((1, "Python"), (2, "Overlap Analysis"))]  # fmt: skip
    events = [event("ProfilerStep#3", 0, 100, 1, cat="cpu_op"), *lanes, *names]
    (tmp_path / "trace_view.json").write_text(json.dumps(events))
    facts = {fact.kind: fact for fact in extract_run(discover([tmp_path])).facts}
    origin = "; t0 = 1704161511420306.491 µs"
    assert facts["step_breakdown"].source.locator == f"events 0.000–0.100 ms{origin}"
    assert facts["free_time"].source.locator == f"events 0.030–0.065 ms{origin}"
    assert [(i.name, i.start_us, i.duration_us) for i in facts["free_time"].worst] == [("device idle", 40, 20)]
    assert facts["rank_coverage"].source.locator == "the profiles given"


def test_every_number_of_a_run_says_which_reader_found_it(folder):
    silent = {fact.kind for fact in extract_run(discover([folder])).facts if not (fact.source and fact.source.reader)}
    assert silent <= {"trace_health", "rank_coverage"}
