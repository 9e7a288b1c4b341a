"""The simulated job as its framework sees it: in: whether the AI CPU fault is planted; out: the operators of one step.

Masked-patch pre-training of a small transformer in bfloat16, data-parallel: a frozen patch embedding (as in MoCo v3),
two layers without affine norms, a head that predicts a codebook entry per patch. Weight gradients go straight into flat
buckets, each scaled and reduced as soon as it is full; AdamW runs on flat fp32 master weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

BATCH, SEQUENCE, HIDDEN, HEADS, FEED_FORWARD, CODEBOOK, PATCH, LAYERS = 10, 1024, 3072, 24, 12288, 8192, 768, 2
TOKENS = BATCH * SEQUENCE
_ITEM_BYTES = {"bf16": 2, "fp32": 4, "int64": 8, "bool": 1}
BUCKET_CAP_BYTES = 72 << 20
"""A bucket is closed once it holds this much: halves of at least 36 MiB then travel in every allReduce."""

AICPU_US = 6000.0
"""What IndexPutV2 on int64 takes on the AI CPU: the first planted fault."""


@dataclass(frozen=True)
class Tensor:
    """A shape and an item type."""

    shape: tuple[int, ...]
    dtype: str = "bf16"

    @property
    def size_bytes(self) -> int:
        """Bytes of the elements, without the allocator's rounding."""
        return prod(self.shape) * _ITEM_BYTES[self.dtype]


@dataclass(frozen=True)
class Kernel:
    """One device kernel: what it computes on, and the work that decides how long it takes."""

    name: str
    op_type: str
    core: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    flops: int = 0
    hbm_bytes: int = 0


@dataclass(frozen=True)
class Op:
    """One operator of the training script and what it puts on the launch queue.

    ``kind``: kernel, collective (``bucket`` says which), copy (host to device), record or wait (stream events).
    """

    kind: str
    name: str
    acl: str
    thread: str = "main"
    phase: str = ""
    kernel: Kernel | None = None
    inputs: tuple[Tensor, ...] = ()
    makes: tuple[tuple[str, Tensor], ...] = ()
    frees: tuple[str, ...] = ()
    bucket: int = -1
    bucket_bytes: int = 0


def parameters() -> list[tuple[str, int]]:
    """Trainable weights (name, elements) in the order in which their gradients become ready."""
    out = [("head", HIDDEN * CODEBOOK)]
    for layer in reversed(range(LAYERS)):
        for name, size in (("fc2", FEED_FORWARD), ("fc1", FEED_FORWARD), ("proj", HIDDEN), ("qkv", 3 * HIDDEN)):
            out.append((f"{layer}.{name}", HIDDEN * size))
    return out


def buckets() -> list[tuple[tuple[str, ...], int]]:
    """The gradient buckets: (weights, bytes), filled in order of readiness up to the cap."""
    out: list[tuple[tuple[str, ...], int]] = []
    names: tuple[str, ...] = ()
    size = 0
    for name, elements in parameters():
        names, size = (*names, name), size + elements * _ITEM_BYTES["bf16"]
        if size >= BUCKET_CAP_BYTES:
            out.append((names, size))
            names, size = (), 0
    assert not names, "the last bucket is full too"
    return out


class _Script:
    """Collects the operators of a step; one method per kind of operator."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.thread = "main"
        self.phase = ""
        self._bucket_of = {names[-1]: (i, size) for i, (names, size) in enumerate(buckets())}

    def run(
        self, name: str, kernel: Kernel, acl: str, makes: Sequence[tuple[str, Tensor]] = (), frees: str = ""
    ) -> None:
        self.ops.append(
            Op("kernel", name, acl, self.thread, self.phase, kernel, kernel.inputs, tuple(makes), tuple(frees.split()))
        )

    def matmul(
        self, name: str, m: int, k: int, n: int, out: str, operands: tuple[Tensor, Tensor], frees: str = ""
    ) -> None:
        result = Tensor((m, n))
        moved = sum(t.size_bytes for t in (*operands, result))
        kernel = Kernel(
            "aclnnMatmul_MatMulV3Common_MatMulV3", "MatMulV3", "AI_CORE", operands, (result,), 2 * m * k * n, moved
        )
        self.run(name, kernel, "aclnnMatmul", [(out, result)] if out else [], frees)

    def vector(
        self, name: str, acl: str, kernel: str, op_type: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor],
        out: str = "", frees: str = "", moved: int = 0,
    ) -> None:  # fmt: skip
        moved = moved or sum(t.size_bytes for t in (*inputs, *outputs))
        names = [f"{out}{'' if i == 0 else f'.{i}'}" for i in range(len(outputs))] if out else []
        made = list(zip(names, outputs, strict=False))
        self.run(
            name,
            Kernel(kernel, op_type, "AI_VECTOR_CORE", tuple(inputs), tuple(outputs), 0, moved), acl, made, frees,
        )  # fmt: skip

    def weight_gradient(self, weight: str, rows: int, columns: int, frees: str) -> None:
        """dW, written into its bucket; once that is full, its scaling and the allReduce."""
        operands = (Tensor((rows, TOKENS)), Tensor((TOKENS, columns)))
        self.matmul("aten::mm", rows, TOKENS, columns, "", operands, frees)
        if weight in self._bucket_of:
            index, size = self._bucket_of[weight]
            flat = Tensor((size // _ITEM_BYTES["bf16"],))
            self.vector("aten::mul_", "aclnnInplaceMuls", "aclnnInplaceMuls_MulAiCore_Mul", "Mul", (flat,), (flat,))
            self.ops.append(
                Op("collective", "c10d::allreduce_", "HcclAllreduce", self.thread, self.phase, None, (flat,),
                   bucket=index, bucket_bytes=size)
            )  # fmt: skip


X = Tensor((TOKENS, HIDDEN))
_HEADED = Tensor((BATCH, SEQUENCE, HIDDEN))
_STAT = Tensor((TOKENS, 1), "fp32")
_SOFTMAX = Tensor((BATCH, HEADS, SEQUENCE, 8), "fp32")
_QKV = Tensor((TOKENS, 3 * HIDDEN))
_FF = Tensor((TOKENS, FEED_FORWARD))
_LOGITS = Tensor((TOKENS, CODEBOOK))
_LOGITS32 = Tensor((TOKENS, CODEBOOK), "fp32")
_LABELS = Tensor((BATCH, SEQUENCE), "int64")
_SCALAR = Tensor((), "fp32")
_ATTENTION_FLOPS = 4 * BATCH * HEADS * SEQUENCE * SEQUENCE * (HIDDEN // HEADS)


def step_ops(*, aicpu_fault: bool) -> list[Op]:
    """Every operator of one training step, in the order in which the script issues them."""
    script = _Script()
    _inputs(script, aicpu_fault)
    for layer in range(LAYERS):
        _layer_forward(script, layer)
    _loss(script)
    script.thread, script.phase = "backward", ""
    _loss_backward(script)
    for layer in reversed(range(LAYERS)):
        _layer_backward(script, layer)
    script.thread, script.phase = "main", "Optimizer.step#AdamW.step"
    _optimizer(script)
    return script.ops


def _inputs(script: _Script, aicpu_fault: bool) -> None:
    patches = Tensor((BATCH, SEQUENCE, PATCH))
    script.phase = "prefetch"
    for tensor in (patches, _LABELS):
        script.ops.append(Op("copy", "aten::copy_", "acl_memcpy_host_to_device", "main", "prefetch", None, (tensor,)))
    script.phase = ""
    if aicpu_fault:
        rows = Tensor((TOKENS // 4 * 3,), "int64")
        inputs = (_LABELS, Tensor((), "int64"), rows, rows)
        kernel = Kernel("aclnnIndexPutImpl_IndexPutV2AiCpu_IndexPutV2", "IndexPutV2", "AI_CPU", inputs, (_LABELS,))
        script.run("aten::index_put_", kernel, "aclnnIndexPutImpl")
    else:
        mask = Tensor((BATCH, SEQUENCE), "bool")
        script.vector("aten::where", "aclnnSWhere", "aclnnSWhere_SelectV2AiCore_SelectV2", "SelectV2",
                      (mask, _LABELS, Tensor((1,), "int64")), (_LABELS,), "labels")  # fmt: skip
    script.phase = "DistributedDataParallel.forward"
    operands = (Tensor((TOKENS, PATCH)), Tensor((HIDDEN, PATCH)))
    script.matmul("aten::matmul", TOKENS, PATCH, HIDDEN, "patches", operands)
    script.vector("aten::add", "aclnnAdd", "aclnnAdd_AddAiCore_Add", "Add", (_HEADED, Tensor((SEQUENCE, HIDDEN))),
                  (_HEADED,), "x0", "patches")  # fmt: skip


def _add(script: _Script, out: str, frees: str) -> None:
    script.vector("aten::add", "aclnnAdd", "aclnnAdd_AddAiCore_Add", "Add", (X, X), (X,), out, frees)


def _linear(script: _Script, k: int, n: int, out: str) -> None:
    script.matmul("aten::matmul", TOKENS, k, n, out, (Tensor((TOKENS, k)), Tensor((n, k))))


def _layer_forward(script: _Script, i: int) -> None:
    def norm(out: str) -> None:
        script.vector("aten::native_layer_norm", "aclnnLayerNorm", "aclnnLayerNorm_LayerNormV4_LayerNormV4",
                      "LayerNormV4", (X,), (X, _STAT, _STAT), out)  # fmt: skip

    norm(f"a{i}")
    _linear(script, HIDDEN, 3 * HIDDEN, f"qkv{i}")
    outputs = (_SOFTMAX, _SOFTMAX, _HEADED)
    name = "FlashAttentionScore"
    kernel = Kernel(f"aclnn{name}_{name}_{name}", name, "MIX_AIC", (_HEADED,) * 3, outputs, _ATTENTION_FLOPS)
    made = [(f"attn{i}.1", _SOFTMAX), (f"attn{i}.2", _SOFTMAX), (f"attn{i}", _HEADED)]
    script.run("npu::npu_fusion_attention", kernel, "aclnnFlashAttentionScore", made)
    _linear(script, HIDDEN, HIDDEN, "p")
    _add(script, f"m{i}", "p")
    norm(f"b{i}")
    _linear(script, HIDDEN, FEED_FORWARD, f"f{i}")
    script.vector("aten::gelu", "aclnnGelu", "aclnnGelu_GeluAiCore_Gelu", "Gelu", (_FF,), (_FF,), f"g{i}")
    _linear(script, FEED_FORWARD, HIDDEN, "y")
    _add(script, f"x{i + 1}", "y")


def _loss(script: _Script) -> None:
    _linear(script, HIDDEN, CODEBOOK, "logits")
    script.phase = ""
    script.vector("npu::_npu_dtype_cast", "aclnnCast", "aclnnCast_CastAiCore_Cast", "Cast", (_LOGITS,), (_LOGITS32,),
                  "logits32", "logits")  # fmt: skip
    script.vector("aten::_log_softmax", "aclnnLogSoftmax", "aclnnLogSoftmax_LogSoftmaxV2_LogSoftmaxV2", "LogSoftmaxV2",
                  (_LOGITS32,), (_LOGITS32,), "logp", "logits32")  # fmt: skip
    labels = Tensor((TOKENS,), "int64")
    script.vector("aten::nll_loss_forward", "aclnnNLLLoss", "aclnnNLLLoss_NLLLoss_NLLLoss", "NLLLoss",
                  (_LOGITS32, labels), (_SCALAR, _SCALAR), "loss", moved=TOKENS * 512)  # fmt: skip


def _loss_backward(script: _Script) -> None:
    script.vector("aten::ones_like", "aclnnInplaceOne", "aclnnInplaceOne_OnesLikeAiCore_OnesLike", "OnesLike",
                  (_SCALAR,), (_SCALAR,), "one")  # fmt: skip
    script.vector("aten::nll_loss_backward", "aclnnNLLLossBackward", "aclnnNLLLossBackward_NLLLossGrad_NLLLossGrad",
                  "NLLLossGrad", (Tensor((TOKENS,), "int64"), _SCALAR), (_LOGITS32,), "dlogp",
                  "one loss loss.1 labels")  # fmt: skip
    script.vector("aten::_log_softmax_backward_data", "aclnnLogSoftmaxBackward",
                  "aclnnLogSoftmaxBackward_LogSoftmaxGrad_LogSoftmaxGrad", "LogSoftmaxGrad", (_LOGITS32, _LOGITS32),
                  (_LOGITS32,), "dlogits32", "dlogp logp")  # fmt: skip
    script.vector("npu::_npu_dtype_cast", "aclnnCast", "aclnnCast_CastAiCore_Cast", "Cast", (_LOGITS32,), (_LOGITS,),
                  "dlogits", "dlogits32")  # fmt: skip
    _input_gradient(script, CODEBOOK, HIDDEN, f"dx{LAYERS}")
    script.weight_gradient("head", CODEBOOK, HIDDEN, f"dlogits x{LAYERS}")


def _input_gradient(script: _Script, k: int, n: int, out: str) -> None:
    script.matmul("aten::mm", TOKENS, k, n, out, (Tensor((TOKENS, k)), Tensor((k, n))))


def _layer_backward(script: _Script, i: int) -> None:
    def norm(out: str, grad: str, saved: str) -> None:
        script.vector("aten::native_layer_norm_backward", "aclnnLayerNormBackward",
                      "aclnnLayerNormBackward_LayerNormGradV3_LayerNormGradV3", "LayerNormGradV3",
                      (X, X, _STAT, _STAT), (X,), out, f"{grad} {saved}")  # fmt: skip

    _input_gradient(script, HIDDEN, FEED_FORWARD, "dg")
    script.weight_gradient(f"{i}.fc2", HIDDEN, FEED_FORWARD, f"g{i}")
    script.vector("aten::gelu_backward", "aclnnGeluBackward", "aclnnGeluBackward_GeluGradAiCore_GeluGrad", "GeluGrad",
                  (_FF, _FF), (_FF,), "df", f"dg f{i}")  # fmt: skip
    _input_gradient(script, FEED_FORWARD, HIDDEN, "db")
    script.weight_gradient(f"{i}.fc1", FEED_FORWARD, HIDDEN, f"df b{i}")
    norm("dn", "db", f"b{i}.1 b{i}.2 m{i}")
    _add(script, "dm", f"dn dx{i + 1}")
    _input_gradient(script, HIDDEN, HIDDEN, "dattn")
    script.weight_gradient(f"{i}.proj", HIDDEN, HIDDEN, "")
    grad = "FlashAttentionScoreGrad"
    inputs = (_HEADED,) * 4 + (_SOFTMAX, _SOFTMAX, _HEADED)
    kernel = Kernel(f"aclnn{grad}_{grad}_{grad}", grad, "MIX_AIC", inputs, (_HEADED,) * 3, _ATTENTION_FLOPS * 5 // 2)
    frees = f"dattn qkv{i} attn{i} attn{i}.1 attn{i}.2"
    script.run("npu::npu_fusion_attention_grad", kernel, "aclnnFlashAttentionScoreGrad", [("dqkv", _QKV)], frees)
    if i == 0:  # nothing below the first layer is trained
        script.weight_gradient(f"{i}.qkv", 3 * HIDDEN, HIDDEN, f"dqkv a{i} a{i}.1 a{i}.2 x{i} dm")
        return
    _input_gradient(script, 3 * HIDDEN, HIDDEN, "da")
    script.weight_gradient(f"{i}.qkv", 3 * HIDDEN, HIDDEN, f"dqkv a{i}")
    norm("dn", "da", f"a{i}.1 a{i}.2 x{i}")
    _add(script, f"dx{i}", "dn dm")


def _optimizer(script: _Script) -> None:
    script.ops.append(Op("wait", "wait_event", "aclrtStreamWaitEvent", phase=script.phase))
    groups = [("head", HIDDEN * CODEBOOK)] + [
        (str(layer), sum(n for name, n in parameters() if name.startswith(f"{layer}.")))
        for layer in reversed(range(LAYERS))
    ]
    for index, (_, elements) in enumerate(groups):
        if index == len(groups) - 1:  # the script lets the host run ahead until the device has come to this point
            script.ops.append(Op("record", "record_event", "aclrtRecordEvent", phase=script.phase))
        master, half = Tensor((elements,), "fp32"), Tensor((elements,))
        name = "ApplyAdamWV2"
        state = (master, master, master)
        moved = 2 * sum(t.size_bytes for t in state) + half.size_bytes
        kernel = Kernel(f"aclnn{name}_{name}_{name}", name, "AI_VECTOR_CORE", (*state, half, Tensor((1,), "int64")),
                        (), 0, moved)  # fmt: skip
        script.run("aten::_fused_adamw_", kernel, f"aclnn{name}")
        script.vector("aten::copy_", "aclnnInplaceCopy", "aclnnInplaceCopy_CastAiCore_Cast", "Cast", (master,),
                      (half,))  # fmt: skip
