from __future__ import annotations

import random
import statistics
import time
from dataclasses import replace

import pandas as pd
import pytest

from hermes_advisor.extractors.across_ranks import facts_over_ranks, trace_health
from hermes_advisor.extractors.exchange import GroupView
from hermes_advisor.extractors.rank import extract_tables
from hermes_advisor.extractors.readers.tables import GroupInfo, Health, RankSettings

MS = 1_000_000


@pytest.fixture
def over(build):
    """Facts over ranks of the given tables, by kind."""

    def facts(*ranks):
        found = {}
        for fact in facts_over_ranks([extract_tables(tables).exchange for tables in ranks]):
            found.setdefault(fact.kind, []).append(fact)
        return found

    return facts


def step(compute_ms, exposed_ms=0, free_ms=0, number=1):
    return {"step": number, "compute_ns": int(compute_ms * MS), "exposed_communication_ns": int(exposed_ms * MS),
            "communication_ns": int(exposed_ms * MS), "free_ns": int(free_ms * MS)}  # fmt: skip


def op(name, elapse_ms, group="g", transit_ms=0.0, traffic="collective", number=1):
    return {"name": name, "group": group, "elapse_ns": int(elapse_ms * MS), "transit_ns": int(transit_ms * MS),
            "traffic": traffic, "step": number}  # fmt: skip


def link(src, dst, size, transit_ms, group="g", transport="HCCS"):
    return {"src": src, "dst": dst, "size_bytes": size, "transit_ns": int(transit_ms * MS), "group": group,
            "transport": transport}  # fmt: skip


# --- waits


def test_the_rank_that_spends_least_in_a_collective_is_waited_for(build, over):
    # a: rank 2 arrives last: ((10-4)+(8-4))/2 = 5 ms; b: rank 0 arrives last: ((5-2)+(3-2))/2 = 2 ms.
    elapse = {0: (10, 2), 1: (8, 5), 2: (4, 3)}
    ranks = [build.rank(r, steps=[step(80, 20)], comm_ops=[op("a", x), op("b", y)]) for r, (x, y) in elapse.items()]
    (fact,) = over(*ranks)["communication_wait"]
    assert (fact.group, fact.step, fact.op_count, fact.seen_count, fact.late_rank) == ("g", 1, 2, 3, 2)
    assert (fact.imposed_wait_us, fact.imposed_step_ratio) == (5_000, 0.05)
    assert fact.late_share_ratio == round(5 / 7, 6)
    assert (fact.missing_count, fact.r_wait_ratio, fact.transit_max_us, fact.slowest_transit_rank) == (None,) * 4
    assert [(i.name, i.duration_us, i.detail) for i in fact.worst] == [
        ("a@g", 4_000, "rank 2: 4000.000 µs, rank 0: 10000.000 µs")
    ]
    assert fact.source.locator == "step1/collective/*@g, the same operators of ranks 0, 1, 2"


def test_tiny_collectives_and_point_to_point_impose_nothing(build, over):
    tiny = [op("a", 0.009), op("send", 50, traffic="p2p")], [op("a", 0.001), op("send", 1, traffic="p2p")]
    (fact,) = over(*(build.rank(r, steps=[step(9)], comm_ops=ops) for r, ops in enumerate(tiny)))["communication_wait"]
    assert (fact.op_count, fact.imposed_wait_us, fact.late_share_ratio, fact.late_rank, fact.worst) == (1, 0, 0, 0, ())
    longer = [op("a", 0.010)], [op("a", 0.001)]
    (fact,) = over(*(build.rank(r, steps=[step(9)], comm_ops=ops) for r, ops in enumerate(longer)))[
        "communication_wait"
    ]
    assert (fact.late_rank, fact.imposed_wait_us) == (1, 9)


def test_operators_of_one_rank_are_not_compared(build, over):
    assert "communication_wait" not in over(build.rank(0, steps=[step(9)], comm_ops=[op("a", 5)]))
    different = [op("hcom_allReduce__1_7_1", 5)], [op("hcom_allReduce__1_8_1", 1)]
    ranks = [build.rank(r, steps=[step(9)], comm_ops=ops) for r, ops in enumerate(different)]
    assert "communication_wait" not in over(*ranks)
    other_step = [op("a", 5)], [op("a", 1, number=2)]
    ranks = [build.rank(r, steps=[step(9)], comm_ops=ops) for r, ops in enumerate(other_step)]
    assert "communication_wait" not in over(*ranks)


def test_repeated_names_pair_up_in_order(build, over):
    first = [op("a", 1) | {"start_ns": 1}, op("a", 9) | {"start_ns": 2}]
    second = [op("a", 9) | {"start_ns": 8}, op("a", 2) | {"start_ns": 3}]
    (fact,) = over(*(build.rank(r, steps=[step(9)], comm_ops=o) for r, o in enumerate((first, second))))[
        "communication_wait"
    ]
    # In order of time: (1, 2) and (9, 9).
    assert (fact.op_count, fact.late_rank, fact.imposed_wait_us) == (2, 0, 1_000)


def test_r_wait_over_transfer_times(build, over):
    # Per rank 6+2 = 8 and 9+3 = 12 ms: 1 - 10/12.
    ops = [op("a", 20, transit_ms=6), op("b", 20, transit_ms=2)], [op("a", 20, transit_ms=9), op("b", 20, transit_ms=3)]
    (fact,) = over(*(build.rank(r, steps=[step(9)], comm_ops=o) for r, o in enumerate(ops)))["communication_wait"]
    assert (fact.r_wait_ratio, fact.slowest_transit_rank) == (round(1 / 6, 6), 1)
    assert (fact.transit_max_us, fact.transit_mean_us) == (12_000, 10_000)


def test_an_operator_whose_transfer_time_a_rank_did_not_record_does_not_count(build, over):
    ops = [op("a", 20, transit_ms=0), op("b", 20, transit_ms=2)], [op("a", 20, transit_ms=9), op("b", 20, transit_ms=2)]
    (fact,) = over(*(build.rank(r, steps=[step(9)], comm_ops=o) for r, o in enumerate(ops)))["communication_wait"]
    assert (fact.r_wait_ratio, fact.transit_max_us) == (0, 2_000)


def test_link_times_stand_in_where_the_operator_has_no_transfer_time(build, over):
    ranks = [
        build.rank(
            r, steps=[step(9)], comm_ops=[op("a", 20)],
            comm_bandwidth=[{"name": "a", "transport": t, "transit_ns": n * MS, "size_bytes": 9} for t, n in times],
        )
        for r, times in enumerate([[("HCCS", 6), ("SDMA", 6)], [("HCCS", 4), ("SDMA", 4)]])
    ]  # fmt: skip
    (fact,) = over(*ranks)["communication_wait"]
    assert (fact.transit_max_us, fact.r_wait_ratio) == (6_000, round(1 - 5 / 6, 6))


# --- groups and coverage


def test_a_declared_group_is_found_by_its_members(build, over):
    groups = (GroupInfo("group_name_5", "dp", (0, 1)), GroupInfo("group_name_7", "tp", (0,)),
              GroupInfo("group_name_8", "tp", (1,)))  # fmt: skip
    settings = RankSettings(groups=groups)
    ranks = [build.rank(r, settings, comm_ops=[op("a", 1, "77"), op("b", 1, f"8{r}")]) for r in (0, 1)]
    found = over(*ranks)
    assert [(f.group, f.role, f.missing_count) for f in found["communication_wait"]] == [("77", "dp", 0)]
    facts = {fact.group: fact for fact in found["communication_group"]}
    assert (facts["77"].role, facts["77"].seen_count, facts["77"].expected_count) == ("dp", 2, 2)
    assert (facts["80"].role, facts["80"].ranks, facts["80"].missing_count) == ("tp", (0,), 0)


def test_two_roles_with_the_same_members_leave_the_role_open_but_not_the_size(build, over):
    settings = RankSettings(groups=(GroupInfo("a", "mp", (0, 2)), GroupInfo("b", "embd", (0, 2))))
    ranks = [build.rank(r, settings, comm_ops=[op("x", 1, "77")]) for r in (0, 2)]
    (fact,) = over(*ranks)["communication_group"]
    assert (fact.role, fact.expected_count, fact.missing_count) == ("", 2, 0)


def test_a_declared_group_is_found_by_name(build, over):
    settings = RankSettings(groups=(GroupInfo("77", "ep", (0, 1, 2, 3)), GroupInfo("b", "dp", (0, 1))))
    ranks = [build.rank(r, settings, comm_ops=[op("x", 1, "77")]) for r in (0, 1)]
    (fact,) = over(*ranks)["communication_group"]
    assert (fact.role, fact.expected_count, fact.missing_count) == ("ep", 4, 2)


def test_the_place_of_a_rank_tells_declared_groups_apart(build, over):
    settings = RankSettings(groups=(GroupInfo("a", "dp", (0, 1, 2, 3)), GroupInfo("b", "tp", (1, 0, 4, 5))))
    links = [link(0, 3, 5, 1, "77")]  # rank 0 sits at place 0 of a group of four
    (fact,) = over(build.rank(0, settings, comm_ops=[op("x", 1, "77")], comm_links=links))["communication_group"]
    assert (fact.role, fact.expected_count) == ("dp", 4)


def test_peers_in_the_matrix_give_the_size_of_group_and_job(build, over):
    ranks = [build.rank(r, steps=[step(9)], comm_ops=[op("a", 5 - r)],
                        comm_links=[link(r, r, 9, 1), *(link(r, d, 9, 1) for d in range(8) if d != r)])
             for r in (0, 1)]  # fmt: skip
    found = over(*ranks)
    (group,) = found["communication_group"]
    assert (group.seen_count, group.expected_count, group.missing_count) == (2, 8, 6)
    (wait,) = found["communication_wait"]
    assert (wait.late_rank, wait.missing_count) == (1, 6)
    (coverage,) = found["rank_coverage"]
    assert (coverage.seen_count, coverage.expected_count, coverage.missing_count) == (2, 8, 6)
    assert (coverage.missing_ranks, coverage.evidence) == ((2, 3, 4, 5, 6, 7), "peers in communication_matrix.json")


def test_a_link_to_itself_does_not_tell_the_size_of_a_group(build, over):
    (fact,) = over(build.rank(0, comm_ops=[op("a", 5)], comm_links=[link(0, 0, 9, 1)]))["communication_group"]
    assert (fact.expected_count, fact.missing_count) == (None, None)


def test_a_place_beyond_a_declared_group_is_not_of_it(build, over):
    settings = RankSettings(groups=(GroupInfo("a", "tp", (0,)),))
    ranks = build.rank(0, settings, comm_ops=[op("x", 1, "77")], comm_links=[link(1, 1, 9, 1, "77")])
    (fact,) = over(ranks)["communication_group"]
    assert (fact.role, fact.expected_count) == ("", None)


def test_coverage_by_declared_world_and_by_what_was_given(build, over):
    (fact,) = over(build.rank(3, RankSettings(parallel={"world_size": 64})))["rank_coverage"]
    assert (fact.expected_count, fact.missing_count, fact.evidence) == (64, 63, "distributed_args.world_size")
    assert fact.missing_ranks == (0, 1, 2, *range(4, 17))
    world = RankSettings(parallel={"world_size": 2})
    (fact,) = over(build.rank(0, world), build.rank(1, world))["rank_coverage"]
    assert (fact.missing_count, fact.evidence) == (0, "distributed_args.world_size")
    declared = RankSettings(groups=(GroupInfo("a", "dp", (0, 9)),))
    (fact,) = over(build.rank(0, declared))["rank_coverage"]
    assert (fact.expected_count, fact.evidence) == (10, "parallel_group_info")
    (fact,) = over(build.rank(0), build.rank(1))["rank_coverage"]
    assert (fact.expected_count, fact.missing_count, fact.evidence) == (2, 0, "the profiles given")
    (fact,) = over(build.rank(0), build.rank(3))["rank_coverage"]
    assert (fact.expected_count, fact.missing_ranks) == (4, (1, 2))


@pytest.mark.parametrize(
    ("settings", "is_lower_bound"),
    [
        (RankSettings(parallel={"world_size": 8}), False),
        (RankSettings(parallel={"world_size": 1}), True),  # contradicted: rank 1 was profiled
        (RankSettings(groups=(GroupInfo("a", "default_group", tuple(range(8))),)), False),
        (RankSettings(groups=(GroupInfo("a", "dp", (1, 7)),)), True),
        (RankSettings(), True),
    ],
)
def test_a_number_of_ranks_that_was_not_declared_is_a_lower_bound(build, over, settings, is_lower_bound):
    (fact,) = over(build.rank(1, settings))["rank_coverage"]
    assert fact.is_lower_bound is is_lower_bound
    (fact,) = over(build.rank(1, settings, comm_ops=[op("a", 5)], comm_links=[link(1, 9, 9, 1)]))["rank_coverage"]
    assert fact.is_lower_bound is is_lower_bound


def test_environment_and_versions_are_merged_over_ranks(build, over):
    settings = [RankSettings(environment={"A": "1", "B": ""}, versions={"cann": "8.0", "torch_npu": "2.1"}),
                RankSettings(environment={"A": "2", "B": ""}, versions={"cann": "8.1", "torch_npu": "2.1"}),
                RankSettings()]  # fmt: skip
    found = over(*(build.rank(r, s) for r, s in enumerate(settings)))
    assert [(f.name, f.value, f.is_set, f.ranks_count, f.ranks) for f in found["environment_variable"]] == [
        ("A", "1", True, 1, (0,)), ("A", "2", True, 1, (1,)), ("B", "", False, 2, (0, 1))
    ]  # fmt: skip
    assert [(f.component, f.version, f.versions_seen_count, f.ranks) for f in found["software_version"]] == [
        ("cann", "8.0", 2, (0,)), ("cann", "8.1", 2, (1,)), ("torch_npu", "2.1", 1, (0, 1))
    ]  # fmt: skip


# --- pipeline

MEGATRON = {"pipeline_model_parallel_size": 2, "tensor_model_parallel_size": 1, "data_parallel_size": 2,
            "world_size": 4}  # fmt: skip
CHAINS = (GroupInfo("p0", "pp", (0, 2)), GroupInfo("p1", "pp", (1, 3)))


def four(build, settings, computes=(230, 232, 400, 402), p2p=(300, 320, 70, 80)):
    return [
        build.rank(
            r, settings, steps=[step(c, 800 - c, 10)],
            comm_ops=[op("send", e, f"p{r % 2}", traffic="p2p"), op("a", 5, f"d{r // 2}")],
        )
        for r, (c, e) in enumerate(zip(computes, p2p, strict=True))
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "stage_source"),
    [
        (RankSettings(parallel=MEGATRON, groups=CHAINS), "parallel_group_info"),
        (RankSettings(parallel=MEGATRON), "distributed_args"),
        (RankSettings(parallel={k: v for k, v in MEGATRON.items() if k != "world_size"}), "distributed_args"),
        (RankSettings(), "inferred from communication groups"),
    ],
)
def test_pipeline_load_balance_and_bubble(build, over, settings, stage_source):
    found = over(*four(build, settings))
    first, last = found["stage_load"]
    assert (first.stage, first.ranks, first.compute_us, first.p2p_us, first.free_us) == (
        0,
        (0, 1),
        231_000,
        310_000,
        10_000,
    )
    assert (last.stage, last.ranks, last.ranks_count, last.compute_us, last.exposed_communication_us) == (
        1,
        (2, 3),
        2,
        401_000,
        399_000,
    )
    (balance,) = found["pipeline_balance"]
    assert (balance.stage_count, balance.heaviest_stage, balance.stage_source) == (2, 1, stage_source)
    # Mean of the stages (231 + 401) / 2 = 316 ms.
    assert (balance.compute_max_us, balance.compute_mean_us, balance.compute_min_us) == (401_000, 316_000, 231_000)
    assert (balance.excess_us, balance.imbalance_ratio, balance.step_duration_us) == (
        85_000,
        round(85 / 316, 6),
        810_000,
    )
    assert (balance.loaded_ranks, balance.waiting_ranks) == ((2, 3), (0, 1))
    (bubble,) = found["pipeline_bubble"]
    assert (bubble.mean_p2p_us, bubble.max_p2p_us, bubble.ranks) == (192_500, 320_000, (0, 1, 2, 3))
    assert bubble.step_ratio == round(192.5 / 810, 6)


def test_peers_are_those_of_the_same_stage(build, over):
    found = over(*four(build, RankSettings(parallel=MEGATRON)))["rank_compute"]
    assert [(f.rank, f.peers_count, f.peer_median_us, f.excess_us) for f in found] == [
        (0, 1, 232_000, -2_000), (1, 1, 230_000, 2_000), (2, 1, 402_000, -2_000), (3, 1, 400_000, 2_000)
    ]  # fmt: skip
    no_pipeline = over(*four(build, RankSettings(parallel=MEGATRON | {"pipeline_model_parallel_size": 1})))
    assert [(f.rank, f.peers_count, f.peer_median_us) for f in no_pipeline["rank_compute"]][3] == (3, 3, 232_000)
    # Known to be no pipeline: measured zeros, not missing facts.
    assert [(f.stage_count, f.excess_us, f.waiting_ranks) for f in no_pipeline["pipeline_balance"]] == [(1, 0, ())]
    assert [(f.mean_p2p_us, f.step_ratio) for f in no_pipeline["pipeline_bubble"]] == [(0, 0)]


def test_unknown_stages_of_a_declared_pipeline_give_neither_balance_nor_peers(build, over):
    found = over(*four(build, RankSettings(parallel={"pipeline_model_parallel_size": 3, "world_size": 4})))
    assert not {"stage_load", "pipeline_balance", "pipeline_bubble", "rank_compute"} & found.keys()


def test_a_collective_over_all_ranks_hides_stages_that_must_be_inferred(build, over):
    ranks = [
        build.rank(r, steps=[step(9)], comm_ops=[op("send", 1, f"p{r % 2}", traffic="p2p"), op("a", 5, "world")])
        for r in range(4)
    ]
    assert "pipeline_balance" not in over(*ranks)


def test_balance_needs_a_rank_of_every_stage(build, over):
    found = over(*four(build, RankSettings(parallel=MEGATRON))[:2])
    assert [load.stage for load in found["stage_load"]] == [0]
    assert not {"pipeline_balance", "pipeline_bubble"} & found.keys()


def test_a_bubble_needs_send_and_receive_times_of_every_stage(build, over):
    ranks = four(build, RankSettings(parallel=MEGATRON))
    for tables in ranks[2:]:
        tables.comm_ops = None
    found = over(*ranks)
    assert "pipeline_bubble" not in found and "pipeline_balance" in found
    assert [load.p2p_us for load in found["stage_load"]] == [310_000, None]
    silent = four(build, RankSettings(parallel=MEGATRON), p2p=(0, 0, 0, 0))
    assert "pipeline_bubble" not in over(*silent)


def test_ranks_that_disagree_on_the_pipeline_tell_no_stages(build, over):
    ranks = four(build, RankSettings(parallel=MEGATRON))
    ranks[3].settings = RankSettings(parallel=MEGATRON | {"pipeline_model_parallel_size": 4})
    assert not {"stage_load", "pipeline_balance", "rank_compute"} & over(*ranks).keys()


def test_groups_that_cross_stages(build, over):
    found = over(*four(build, RankSettings(parallel=MEGATRON)))
    assert {f.group: f.crosses_stages for f in found["communication_group"]} == {
        "d0": False, "d1": False, "p0": True, "p1": True
    }  # fmt: skip


def test_whole_captures_are_not_compared(build, over):
    lanes = [{"lane": "Computing", "start_ns": 0, "duration_ns": 5 * MS}]
    assert "rank_compute" not in over(*(build.rank(r, overlap_lanes=lanes) for r in (0, 1)))


# --- links


def ring(build, slow_ms, size=20_000_000):
    times = {0: 1, 1: 1, 2: 1, 3: slow_ms}
    return [build.rank(r, steps=[step(100)], comm_links=[link(r, (r + 1) % 4, size, t), link(r, r, 10**9, 1)])
            for r, t in times.items()]  # fmt: skip


def test_the_slowest_of_like_links(build, over):
    (fact,) = over(*ring(build, 5))["slowest_link"]
    assert (fact.src_rank, fact.dst_rank, fact.transport, fact.link_count) == (3, 0, "HCCS", 4)
    assert (fact.bandwidth_gb_per_s, fact.median_gb_per_s, fact.deficit_ratio) == (4, 20, 0.8)
    assert (fact.excess_us, fact.step_ratio) == (4_000, 0.04)
    (fact,) = over(*ring(build, 1))["slowest_link"]
    assert (fact.deficit_ratio, fact.excess_us) == (0, 0)


def test_small_transfers_and_few_links_are_not_compared(build, over):
    assert "slowest_link" not in over(*ring(build, 5, size=999_999))
    assert "slowest_link" not in over(*ring(build, 5)[:2])
    (fact,) = over(*ring(build, 5, size=1_000_000)[1:])["slowest_link"]
    assert (fact.link_count, fact.src_rank) == (3, 3)


def test_of_two_reports_of_a_link_the_senders_counts(build, over):
    ranks = ring(build, 1)
    received = [link(3, 0, 20_000_000, 9), link(0, 1, 20_000_000, 1)]
    ranks[0] = build.rank(0, steps=[step(100)], comm_links=received)
    (fact,) = over(*ranks)["slowest_link"]
    assert (fact.link_count, fact.excess_us) == (4, 0)
    (fact,) = over(*ranks[:3])["slowest_link"]
    assert (fact.link_count, fact.src_rank, fact.transit_us) == (4, 3, 9_000)


def test_places_of_a_group_become_ranks(build, over):
    settings = RankSettings(groups=(GroupInfo("g", "dp", (4, 5, 6, 7)),), parallel={"world_size": 8})
    ranks = [build.rank(r + 4, settings, steps=[step(100)], comm_links=[link(r, (r + 1) % 4, 2_000_000, 1 + r)])
             for r in range(4)]  # fmt: skip
    (fact,) = over(*ranks)["slowest_link"]
    assert (fact.src_rank, fact.dst_rank) == (7, 4)


def test_a_link_to_a_place_that_is_no_known_rank_is_left_out(build, over):
    settings = RankSettings(parallel={"world_size": 16})
    links = [link(0, d, 2_000_000, d) for d in (1, 2, 3, 4)]
    assert "slowest_link" not in over(build.rank(0, settings, steps=[step(100)], comm_links=links))


# --- health


def test_health_is_merged_by_rank_and_issue():
    entries = [(0, Health("bad_cell", "info", 2, "b", "y.csv")), (0, Health("bad_cell", "warning", 3, "a", "x.csv")),
               (1, Health("bad_cell", "info", 1, "c")), (-1, Health("unknown_file", "info", 1, "d", "z"))]  # fmt: skip
    random.Random(3).shuffle(entries)
    facts = trace_health(entries)
    assert [(f.rank, f.issue, f.severity, f.occurrence_count, f.detail) for f in facts] == [
        (-1, "unknown_file", "info", 1, "d"),
        (0, "bad_cell", "warning", 5, "a (and in 1 more files)"),
        (1, "bad_cell", "info", 1, "c"),
    ]
    assert facts[1].source.file == "x.csv"


# --- many ranks


@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_the_median_of_the_others(build, over, count):
    computes = [random.Random(count).randint(1, 5) for _ in range(count)]
    ranks = [build.rank(r, steps=[step(compute)]) for r, compute in enumerate(computes)]
    for fact in over(*ranks)["rank_compute"]:
        others = [compute for rank, compute in enumerate(computes) if rank != fact.rank]
        assert fact.peer_median_us == statistics.median(others) * 1_000


def test_a_thousand_ranks_are_compared_in_seconds(build):
    exchanges = []
    for rank in range(1000):
        ops = pd.DataFrame({"step": 1, "group": "g", "name": [f"op{i}" for i in range(50)], "start_ns": 0,
                            "elapse_ns": 5 * MS + rank, "transit_ns": 0, "occurrence": 0, "link_ns": 0})  # fmt: skip
        tables = build.rank(rank, steps=[step(80 + rank % 7)])
        view = GroupView("g", frozenset({"collective"}), rank, None)
        exchanges.append(replace(extract_tables(tables).exchange, collectives=ops, groups=(view,)))
    begin = time.process_time()
    facts = facts_over_ranks(exchanges)
    assert time.process_time() - begin < 20
    assert sum(fact.kind == "rank_compute" for fact in facts) == 1000
    (wait,) = [fact for fact in facts if fact.kind == "communication_wait"]
    assert (wait.op_count, wait.seen_count, wait.late_rank) == (50, 1000, 0)


def test_pipeline_facts_cite_what_says_the_stages(build, over):
    arguments = RankSettings(parallel=MEGATRON, metadata_file="r/profiler_metadata.json")
    declared = RankSettings(parallel=MEGATRON, groups=CHAINS, metadata_file="r/profiler_metadata.json")
    for settings, words in ((arguments, "distributed_args"), (declared, "parallel_group_info")):
        found = over(*four(build, settings))
        for kind in ("stage_load", "pipeline_balance", "pipeline_bubble"):
            assert found[kind][0].source.locator.endswith(f"; stages from r/profiler_metadata.json {words}"), kind
