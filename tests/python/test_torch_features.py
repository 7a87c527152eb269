# SPDX-License-Identifier: Apache-2.0
"""Features of torch other than calls of operators, each recorded with all options: the trace is valid, and so is its file."""

import json
import threading

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import opstrobe
from opstrobe import ProfilerActivity, profile

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")


def vmap():
    torch.func.vmap(torch.mm)(torch.ones(3, 2, 2), torch.ones(3, 2, 2))
    torch.func.grad(lambda x: (x**2).sum())(torch.ones(3))
    torch.func.jacrev(torch.sin)(torch.ones(3))


def nested():
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    torch.nested.to_padded_tensor(x, 0.0)
    jagged = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged, requires_grad=True)
    (jagged * 2).values().sum().backward()


def sparse():
    x = torch.eye(4)
    for layout in (x.to_sparse(), x.to_sparse_csr(), x.to_sparse_bsr((2, 2))):
        layout @ torch.ones(4, 2) if layout.layout != torch.sparse_bsr else layout.to_dense()
    torch.nn.Embedding(5, 3, sparse=True)(torch.tensor([1, 2])).sum().backward()


def quantized():
    x = torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8)
    x.dequantize()
    torch.quantize_per_channel(torch.ones(2, 2), torch.ones(2), torch.zeros(2), 0, torch.quint8).int_repr()


def complex_numbers():
    x = torch.ones(3, dtype=torch.complex64, requires_grad=True)
    (x * (1 + 2j)).abs().sum().backward()
    torch.view_as_real(torch.fft.fft(torch.ones(8)))


def meta_and_fake():
    torch.ones(1 << 20, 1 << 20, device="meta") @ torch.ones(1 << 20, 4, device="meta")
    with torch._subclasses.FakeTensorMode():
        torch.ones(3, 4) @ torch.ones(4, 5)


class Logged(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), strides=inner.stride(), dtype=inner.dtype)
        made.inner = inner
        return made

    def __init__(self, inner):
        pass

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        def unwrap(value):
            return value.inner if isinstance(value, Logged) else value

        out = function(
            *torch.utils._pytree.tree_map(unwrap, args), **torch.utils._pytree.tree_map(unwrap, kwargs or {})
        )
        return Logged(out) if isinstance(out, torch.Tensor) else out


def subclass():
    (Logged(torch.ones(3)) + 1).detach()
    torch.nn.Parameter(torch.ones(2)).sum().backward()


def custom_operator():
    name = f"opstrobe_test::scale{custom_operator.calls}"
    custom_operator.calls += 1

    @torch.library.custom_op(name, mutates_args=())
    def scale(x: torch.Tensor, by: float) -> torch.Tensor:
        return x * by

    scale(torch.ones(3), 2.0)


custom_operator.calls = 0


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def custom_function():
    Twice.apply(torch.ones(3, requires_grad=True)).sum().backward()


def hooks():
    linear = torch.nn.Linear(3, 2)
    linear.register_forward_hook(lambda module, args, out: out.sigmoid())
    linear.register_full_backward_hook(lambda module, inner, outer: (inner[0] * 2,))
    linear.weight.register_hook(lambda grad: grad.tanh())
    linear(torch.ones(2, 3, requires_grad=True)).sum().backward()


def checkpointing():
    linear = torch.nn.Linear(3, 3)
    for reentrant in (False, True):
        checkpoint(
            lambda x: linear(x).cos(), torch.ones(2, 3, requires_grad=True), use_reentrant=reentrant
        ).sum().backward()


def autograd_across_threads():
    x = torch.ones(3, requires_grad=True)
    y = (x * 3).sum()
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()


def child(x: torch.Tensor):
    return x.cos()


def fork_and_wait(x: torch.Tensor):
    future = torch.jit.fork(child, x)
    return torch.jit.wait(future) + x.sin()


def jit():
    torch.jit.script(fork_and_wait)(torch.ones(3))
    traced = torch.jit.trace(torch.nn.Linear(3, 2), torch.ones(1, 3))
    torch.jit.freeze(torch.jit.script(torch.nn.Linear(3, 2)).eval())(torch.ones(1, 3))
    traced(torch.ones(1, 3)).sum().backward()


def higher_order():
    x = torch.ones(3, requires_grad=True)
    (grad,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    grad.sum().backward()
    with torch.autograd.forward_ad.dual_level():
        torch.autograd.forward_ad.make_dual(torch.ones(3), torch.ones(3)).exp()


def modes():
    with torch.inference_mode():
        torch.ones(2) + 1
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.nn.Linear(3, 2)(torch.ones(1, 3)).sum().backward()
    with torch.autograd.set_detect_anomaly(True):
        torch.ones(2, requires_grad=True).exp().sum().backward()


# The feature, and an operator that must have been seen.
FEATURES = {
    vmap: "aten::bmm",
    nested: "aten::_nested_tensor_from_tensor_list",
    sparse: "aten::to_sparse",
    quantized: "aten::quantize_per_tensor",
    complex_numbers: "aten::view_as_real",
    meta_and_fake: "aten::mm",
    subclass: "aten::add",
    custom_operator: None,
    custom_function: "TwiceBackward",
    hooks: "aten::tanh",
    checkpointing: "aten::cos",
    autograd_across_threads: "aten::mul",
    jit: "aten::cos",
    higher_order: "aten::exp",
    modes: "ExpBackward0",
}


def validate(path):
    with open(path) as file:
        rows = json.load(file)["traceEvents"]
    try:
        from torch.profiler._trace_validator import validate_trace
    except ImportError:  # torch has it from 2.13 on
        return rows
    assert validate_trace(str(path)) == (True, [])
    return rows


@pytest.mark.parametrize("all_threads", [False, True], ids=["inheriting", "all_threads"])
@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.__name__)
def test_feature_with_all_options(feature, all_threads, tmp_path):
    feature()
    observer = opstrobe.ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
    config = opstrobe._ExperimentalConfig(
        profile_all_threads=all_threads, capture_overload_names=True, performance_events=["pagefaults"]
    )
    with profile(
        activities=[ProfilerActivity.CPU],
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_flops=True,
        with_modules=True,
        experimental_config=config,
        execution_trace_observer=observer,
    ) as prof:
        feature()
    prof.profiler.trace.check()
    events = prof.events()
    names = {event.name for event in events}
    expected = FEATURES[feature] or f"opstrobe_test::scale{custom_operator.calls - 1}"
    assert expected in names
    for event in events:
        event.input_shapes, event.concrete_inputs, event.input_dtypes, event.stack, event.kwinputs
    assert prof.key_averages(group_by_input_shape=True).table(row_limit=5)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    rows = validate(tmp_path / "trace.json")
    assert expected in {row.get("name", "").split(".")[0] for row in rows}
    assert len(opstrobe.read(tmp_path / "trace.json").events()) == len(events)
    with open(tmp_path / "et.json") as file:
        assert expected in {node["name"] for node in json.load(file)["nodes"]}


def test_backward_in_a_plain_thread():
    """Recorded if all threads are requested, as by torch."""
    for all_threads in (False, True):
        with profile(experimental_config=opstrobe._ExperimentalConfig(profile_all_threads=all_threads)) as prof:
            autograd_across_threads()
        assert ("MulBackward0" in {event.name for event in prof.events()}) == all_threads


def test_scopes_of_operators():
    scripted = torch.jit.script(fork_and_wait)
    with profile(with_stack=False) as prof:
        scripted(torch.ones(3))
        torch.ones(3, requires_grad=True).exp().sum().backward()
        with opstrobe.record_function("range"):
            pass
    scopes = {event.name: event.scope for event in prof.events()}
    assert scopes["aten::cos"] == opstrobe.RecordScope.FUNCTION.value
    assert scopes["ExpBackward0"] == opstrobe.RecordScope.BACKWARD_FUNCTION.value
    assert scopes["fork_and_wait"] == opstrobe.RecordScope.TORCHSCRIPT_FUNCTION.value
    assert scopes["range"] == opstrobe.RecordScope.USER_SCOPE.value


def test_range_in_a_compiled_function():
    @torch.compile(backend="eager")
    def function(x):
        with opstrobe.record_function("inside"):
            return x.sin() + 1

    function(torch.ones(3))
    with profile() as prof:
        assert torch.equal(function(torch.ones(3)), torch.ones(3).sin() + 1)
    assert "inside" in [event.name for event in prof.events()]
