"""Cost model of the device: in: a kernel, the AI core clock, a jitter; out: its duration and its pipe counters.

A chip with 20 cube and 40 vector cores at 1800 MHz (295 TFLOP/s in bfloat16), HBM that streams 1.35 TB/s, and one HCCS
link between the two cards. What runs in the cores scales with the clock; what waits for HBM does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hermes_advisor.examples.simulation.job import AICPU_US, Kernel

NOMINAL_MHZ = 1800
CUBE_CORES, VECTOR_CORES = 20, 40
FLOPS_PER_CYCLE = 8192
HBM_BYTES_PER_US = 1.35e6
HCCS_BYTES_PER_US = {"Reduce_Inline": 19.2e3, "Memcpy": 19.7e3}
ON_CHIP_BYTES_PER_US = 330e3
PCIE_BYTES_PER_US = 23e3
TICK_NS = 20
"""The device clock counts in steps of 20 ns."""

_FLASH_MAC_RATIO = 0.62


@dataclass(frozen=True)
class Cost:
    """Duration of one kernel and what the pipe counters of its cores show (times in µs, ratios to the core's time)."""

    duration_ns: int
    block_dim: int
    mix_block_dim: int = 0
    cube_us: float = 0.0
    cube: dict[str, float] = field(default_factory=dict)
    vector_us: float = 0.0
    vector: dict[str, float] = field(default_factory=dict)


def ticks(us: float) -> int:
    """Whole device ticks, in ns."""
    return max(1, round(us * 1000 / TICK_NS)) * TICK_NS


def cost(kernel: Kernel, mhz: int, jitter: float) -> Cost:
    """What ``kernel`` costs at a clock of ``mhz``; ``jitter`` around 1 scales the whole."""
    slow = NOMINAL_MHZ / mhz
    if kernel.core == "AI_CPU":
        return Cost(ticks(AICPU_US * jitter), block_dim=1)
    if kernel.core == "AI_CORE":
        return _cube(kernel, slow, jitter)
    if kernel.core == "MIX_AIC":
        return _flash(kernel, slow, jitter)
    return _vector(kernel, slow, jitter)


def _peak_us(kernel: Kernel) -> float:
    return kernel.flops / (CUBE_CORES * FLOPS_PER_CYCLE * NOMINAL_MHZ)


def _cube(kernel: Kernel, slow: float, jitter: float) -> Cost:
    mac = _peak_us(kernel)
    rest = mac * (1 / 0.853 - 1) * jitter  # at the nominal clock the cube is busy for 85 % of the time
    time = mac * slow + rest * (0.5 + 0.5 * slow)
    memory = max(0.42 * (mac + rest), kernel.hbm_bytes / HBM_BYTES_PER_US)
    pipes = {"mac": mac * slow, "scalar": 0.31 * mac * slow, "mte1": 0.71 * mac * slow, "mte2": memory,
             "fixpipe": 0.36 * mac * slow}  # fmt: skip
    return Cost(ticks(time + 3.4), CUBE_CORES, cube_us=time, cube=pipes)


def _flash(kernel: Kernel, slow: float, jitter: float) -> Cost:
    base = _peak_us(kernel) / _FLASH_MAC_RATIO * jitter
    time = base * (0.1 + 0.9 * slow)
    shares = {"mac": _FLASH_MAC_RATIO, "scalar": 0.33, "mte1": 0.41, "mte2": 0.58, "fixpipe": 0.56}
    cube = {name: base * share * (1 if name == "mte2" else slow) for name, share in shares.items()}
    vector = {"vec": base * 0.84 * slow, "scalar": base * 0.22 * slow, "mte2": base * 0.36, "mte3": base * 0.25}
    return Cost(ticks(time + 4.6), CUBE_CORES, VECTOR_CORES, time, cube, time * 0.997, vector)


def _vector(kernel: Kernel, slow: float, jitter: float) -> Cost:
    streaming = kernel.hbm_bytes / HBM_BYTES_PER_US
    base = 1.2 + streaming * jitter
    time = base * (0.75 + 0.25 * slow)
    heavy = kernel.op_type in ("Gelu", "GeluGrad", "LogSoftmaxV2", "LogSoftmaxGrad", "LayerNormV4", "LayerNormGradV3")
    pipes = {"vec": base * (0.52 if heavy else 0.21) * slow, "scalar": (0.4 + 0.03 * base) * slow,
             "mte2": streaming * 0.91, "mte3": streaming * 0.6}  # fmt: skip
    cores = min(VECTOR_CORES, max(1, kernel.hbm_bytes // 16384))
    return Cost(ticks(time + 2.2), cores, vector_us=time, vector=pipes)
