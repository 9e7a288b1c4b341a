"""The embedded demo: in: a target folder; out: ``slow/`` with both planted faults and ``healthy/`` without them."""

from __future__ import annotations

from pathlib import Path

from hermes_advisor.examples.simulation.communication_tables import write_communication
from hermes_advisor.examples.simulation.host_tables import write_host_tables
from hermes_advisor.examples.simulation.kernel_tables import write_kernel_tables
from hermes_advisor.examples.simulation.memory_tables import app_samples, write_memory_tables
from hermes_advisor.examples.simulation.ranks import simulate
from hermes_advisor.examples.simulation.settings_files import write_settings
from hermes_advisor.examples.simulation.timeline import RankTimeline
from hermes_advisor.examples.simulation.trace_view import write_trace

DOWNCLOCKED_MHZ = 1350


def write_demo(target: Path) -> None:
    """Simulate both runs and write their rank folders under ``target``."""
    runs = {
        "healthy": simulate(aicpu_fault=False),
        "slow": simulate(aicpu_fault=True, rank1_mhz=DOWNCLOCKED_MHZ),
    }
    for name, timelines in runs.items():
        for timeline in timelines:
            write_rank(timeline, target / name / f"rank{timeline.rank}_ascend_pt")


def write_rank(timeline: RankTimeline, folder: Path) -> None:
    """Write one rank's ``*_ascend_pt`` folder."""
    output = folder / "ASCEND_PROFILER_OUTPUT"
    write_settings(timeline, folder)
    write_trace(timeline, output / "trace_view.json", app_samples(timeline))
    write_kernel_tables(timeline, output)
    write_host_tables(timeline, output)
    write_memory_tables(timeline, output)
    write_communication(timeline, output)
