from __future__ import annotations

import pytest

from hermes_advisor.extractors.readers.tables import RankSettings
from hermes_advisor.extractors.settings import profile_settings


@pytest.mark.parametrize(
    ("level", "number"),
    [("Level0", 0), ("ProfilerLevel.Level1", 1), ("Level2", 2), ("Level_none", -1), ("Level9", None)],
)
def test_level(build, level, number):
    (fact,) = profile_settings(3, build.rank(3, RankSettings(level=level, info_file="rank/profiler_info_3.json")))
    assert (fact.level, fact.level_number) == (level.rsplit(".")[-1], number)
    assert fact.source.file == "rank/profiler_info_3.json"


def test_what_a_level_hides(build):
    full = RankSettings("Level2", "ACL_AICORE_PIPE_UTILIZATION", True, True, True)
    (fact,) = profile_settings(0, build.rank(0, full))
    assert (fact.aic_metrics, fact.hides) == ("PipeUtilization", ())
    (fact,) = profile_settings(0, build.rank(0, RankSettings("Level0", "AiCoreNone", True, False, None)))
    assert any("AscendCL" in words for words in fact.hides)
    assert any("communication" in words for words in fact.hides)
    assert any("pipe" in words for words in fact.hides)
    assert "call stacks" in fact.hides and "tensor shapes" not in fact.hides
    (fact,) = profile_settings(0, build.rank(0, RankSettings("Level1", "ACL_AICORE_PIPE_UTILIZATION")))
    assert fact.hides == ("runtime calls below AscendCL",)


def test_no_profiler_info_no_fact(build):
    assert profile_settings(0, build.rank()) == []
