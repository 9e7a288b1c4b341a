"""From profiler output to facts: readers turn files into tables, extractors turn tables into facts."""
