from __future__ import annotations

from hermes_advisor.extractors.communication import (
    communication_time,
    link_bandwidth,
    packet_size,
    transfer_alignment,
)
from hermes_advisor.extractors.steps import Capture

US, MS = 1_000, 1_000_000
STEPS = Capture({1: 100 * MS, 2: 50 * MS}, 2, 150 * MS)


def op(name, elapse_ms, step=1, traffic="collective", **parts):
    return {"name": name, "elapse_ns": int(elapse_ms * MS), "step": step, "traffic": traffic,
            **{f"{key}_ns": int(value * MS) for key, value in parts.items()}}  # fmt: skip


def test_time_per_step_and_traffic(build):
    ops = [op("a", 10, transit=6, wait=1, idle=3), op("b", 30, transit=20, wait=2, idle=8, start=5),
           op("c", 5, step=2, transit=5), op("d", 20, traffic="p2p", idle=20)]  # fmt: skip
    first, p2p, second = communication_time(1, build.rank(comm_ops=ops), STEPS)
    assert (first.step, first.traffic, first.op_count, first.elapse_us) == (1, "collective", 2, 40_000)
    assert (first.transit_us, first.wait_us, first.idle_us) == (26_000, 3_000, 11_000)
    assert (first.step_ratio, first.wait_ratio, first.idle_ratio) == (0.4, 0.075, 0.275)
    assert first.largest_idle_us == 8_000
    assert [(i.name, i.duration_us) for i in first.worst] == [("b@g", 30_000), ("a@g", 10_000)]
    assert first.source.locator == "step1/collective/"
    assert (p2p.traffic, p2p.step_ratio, p2p.idle_ratio) == ("p2p", 0.2, 1)
    assert (second.step, second.step_ratio) == (2, 0.1)


def test_transfer_time_from_the_links_where_the_export_leaves_it_at_zero(build):
    # 12 ms summed over two links side by side are 6 ms; of 10 ms elapsed 1 was waited, so 3 remain idle.
    ops = [op("a", 10, wait=1, idle=10), op("b", 20, transit=15, idle=5)]
    moves = [moved("a", 8_000_000, 12, 10), moved("b", 8_000_000, 99, 20)]
    links = [{"src": 0, "dst": d, "transport": "HCCS", "size_bytes": 4_000_000, "transit_ns": 6 * MS} for d in (1, 2)]
    links += [{"src": 0, "dst": 0, "transport": "LOCAL", "size_bytes": 1, "transit_ns": 1}]
    (found,) = communication_time(0, build.rank(comm_ops=ops, comm_bandwidth=moves, comm_links=links), STEPS)
    assert (found.transit_us, found.wait_us, found.idle_us) == (21_000, 1_000, 8_000)
    assert found.source.locator == "step1/collective/, transfer time of 1 operators from their links"
    # Without the matrix the number of links is not known, and nothing is guessed.
    (plain,) = communication_time(0, build.rank(comm_ops=ops, comm_bandwidth=moves), STEPS)
    assert (plain.transit_us, plain.idle_us) == (15_000, 15_000)


def moved(name, size, transit_ms, elapse_ms, transport="HCCS"):
    return {"name": name, "size_bytes": size, "transit_ns": int(transit_ms * MS), "elapse_ns": int(elapse_ms * MS),
            "transport": transport}  # fmt: skip


BANDWIDTH = [moved("a", 400_000_000, 20, 25), moved("b", 100_000_000, 5, 10), moved("c", 50_000_000, 10, 20, "RDMA"),
             moved("d", 0, 0, 90, "PCIE"), moved("a", 500_000_000, 25, 25, "SDMA")]  # fmt: skip


def test_bandwidth_per_transport_without_the_sums_over_others(build):
    hccs, rdma = link_bandwidth(0, build.rank(comm_bandwidth=BANDWIDTH), STEPS)
    assert (hccs.transport, hccs.size_bytes, hccs.transit_us) == ("HCCS", 500_000_000, 25_000)
    assert (hccs.bandwidth_gb_per_s, hccs.op_count, hccs.longest_op_us, hccs.step_ratio) == (20, 2, 25_000, 0.35)
    assert (rdma.transport, rdma.bandwidth_gb_per_s, rdma.step_ratio) == ("RDMA", 5, 0.2)


def test_packets_are_counted_and_weighted(build):
    packets = [{"packet_bytes": 1e6, "packet_count": 3, "transit_ns": MS}, {"packet_bytes": 5e6, "packet_count": 1}]
    (fact,) = packet_size(0, build.rank(comm_packets=packets, comm_bandwidth=BANDWIDTH), STEPS)
    assert (fact.packet_count, fact.mean_bytes, fact.largest_bytes) == (4, 2e6, 5e6)
    assert (fact.transit_us, fact.step_ratio) == (1_000, 0.35)
    assert packet_size(0, build.rank(comm_packets=packets), STEPS) == []


def test_transfer_time_is_that_of_the_operators_not_of_their_parallel_links(build):
    # a: 25 ms elapsed, 8 of them transfer, though its links sum up to 20; b took 6 of 10, but its link only 5.
    ops = [op("a", 25, transit=8), op("b", 10, transit=6), op("c", 20, transit=10), op("d", 90, transit=90)]
    packets = [{"packet_bytes": 1e6, "packet_count": 3, "transit_ns": MS}]
    tables = build.rank(comm_ops=ops, comm_bandwidth=BANDWIDTH, comm_packets=packets)
    hccs, rdma = link_bandwidth(0, tables, STEPS)
    assert (hccs.transfer_us, hccs.transfer_step_ratio) == (8_000 + 5_000, 0.13)
    assert (rdma.transfer_us, rdma.transfer_step_ratio) == (10_000, 0.1)
    (packet,) = packet_size(0, tables, STEPS)
    assert (packet.transit_us, packet.transfer_us, packet.transfer_step_ratio) == (1_000, 13_000, 0.13)


def test_transfer_time_of_a_transport_from_its_links_or_unknown(build):
    ops, moves = [op("a", 10, wait=1, idle=10)], [moved("a", 8_000_000, 12, 10)]
    links = [{"src": 0, "dst": d, "size_bytes": 4_000_000, "transit_ns": 6 * MS} for d in (1, 2)]
    (found,) = link_bandwidth(0, build.rank(comm_ops=ops, comm_bandwidth=moves, comm_links=links), STEPS)
    assert (found.transfer_us, found.transfer_step_ratio) == (6_000, 0.06)
    # Bytes moved in no time: the time was not recorded, and is no zero.
    for tables in (build.rank(comm_ops=ops, comm_bandwidth=moves), build.rank(comm_bandwidth=moves)):
        (found,) = link_bandwidth(0, tables, STEPS)
        assert (found.transfer_us, found.transfer_step_ratio) == (None, None)


def transfer(size, length_us=10, **more):
    return {"size_bytes": size, "duration_ns": length_us * US, **more}


def test_alignment_of_transfers_between_cards(build):
    tasks = [
        transfer(1024), transfer(1025, 30), transfer(2047, 20), transfer(512), transfer(511), transfer(3),
        transfer(1025, link_type="ON_CHIP"), transfer(1025, link_type="INVALID_TYPE"), transfer(1025, dst=0),
        transfer(1025, transport="RDMA"), transfer(1025, transport="LOCAL"),
    ]  # fmt: skip
    (fact,) = transfer_alignment(0, build.rank(comm_tasks=tasks), STEPS)
    assert (fact.transfer_count, fact.unaligned_count, fact.unaligned_bytes) == (3, 2, 3072)
    assert (fact.unaligned_us, fact.unaligned_per_step_us) == (50, 25)
    assert (fact.unaligned_ratio, fact.unaligned_step_ratio) == (round(2 / 3, 6), round(50 / 150_000, 6))
    assert [i.detail for i in fact.worst] == [
        "1025 bytes from 0 to 1, 1 beyond 512·n", "2047 bytes from 0 to 1, 511 beyond 512·n"
    ]  # fmt: skip
    (fact,) = transfer_alignment(0, build.rank(comm_tasks=tasks[:1]), STEPS)
    assert (fact.transfer_count, fact.unaligned_count, fact.unaligned_ratio) == (1, 0, 0)


def test_absent_tables_give_no_fact(build):
    nothing = build.rank()
    for question in (communication_time, link_bandwidth, packet_size, transfer_alignment):
        assert question(0, nothing, STEPS) == []
