"""An event simulator of a two-rank training job, and writers that put its timeline into the torch_npu text format."""
