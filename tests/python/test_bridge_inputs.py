# SPDX-License-Identifier: Apache-2.0
"""Recorded inputs of operators against torch's, over the kinds of argument that operators take."""

import warnings

import pytest

torch = pytest.importorskip("torch")

from torch.utils._pytree import tree_map  # noqa: E402

import opstrobe  # noqa: E402
from opstrobe import _core  # noqa: E402

F = torch.nn.functional
COLUMNS = ("input_shapes", "structured_input_shapes", "structured_input_strides", "input_dtypes", "concrete_inputs")


def record(module, program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program()
        with module.profile(record_shapes=True) as prof:
            program()
    # An older torch has not all of the columns.
    return [(e.name, *(getattr(e, column, None) for column in COLUMNS)) for e in prof.events()]


def dtypes():
    for dtype in (
        torch.float,
        torch.double,
        torch.half,
        torch.bfloat16,
        torch.int8,
        torch.uint8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.bool,
        torch.complex64,
        torch.complex128,
        torch.float8_e4m3fn,
        torch.float8_e5m2,
    ):
        torch.zeros(2, 3, dtype=dtype).clone()


def dimensions():
    for n in (0, 1, 2, 3, 4, 5, 6, 7, 20, 64):
        x = torch.zeros((1,) * n)
        x.clone()
        x.sum()
    torch.zeros(0).clone()
    torch.zeros(3, 0, 2).clone()


def strides():
    x = torch.arange(24.0).reshape(2, 3, 4)
    for view in (x.permute(2, 0, 1), x[:, ::2, 1:], x.expand(5, 2, 3, 4), x.as_strided((2, 2), (0, 7), 3), x.mT):
        view.clone()
        view + 1
    x.to(memory_format=torch.contiguous_format)
    torch.zeros(1, 2, 3, 4).to(memory_format=torch.channels_last).clone()


def scalars():
    x = torch.ones(3)
    torch.add(x, 2, alpha=3)
    torch.add(x, -(1 << 40))
    torch.add(x, 0.1)
    torch.add(x, True)
    torch.add(x, 1 + 2j)
    torch.add(x, float("inf"))
    torch.clamp(x, -1.5, None)
    torch.full((2,), 3)
    torch.full((2,), 2.5)
    torch.full((), 1j)
    torch.where(x > 0, x, 0.5)
    torch.isclose(x, x, equal_nan=True)


def lists():
    x = torch.ones(2, 3, 4)
    x.sum(dim=(0, 2))
    x.permute(2, 0, 1)
    F.pad(x, (1, 1, 0, 2))
    F.interpolate(x, scale_factor=[2.0], mode="linear")
    torch.zeros([])
    torch.zeros((1,) * 30)
    torch.zeros((1,) * 31)
    torch.quantile(x, 0.5)
    torch.roll(x, (1, 2), (0, 1))
    torch.fft.fftn(x, s=(4, 4), dim=(0, 1))


def tensor_lists():
    x, y = torch.ones(2, 3), torch.zeros(2, 3, dtype=torch.int32)
    torch.cat([x, x, x])
    torch.cat([x, y])
    torch.stack([x] * 40)
    torch.stack([x.t()] * 3, dim=1)
    torch._foreach_add([x, x], 1.0)
    torch._foreach_mul([x] * 35, [x] * 35)
    torch._foreach_add([x] * 3, [1.0, 2.0, 3.0])
    torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
    torch.broadcast_tensors(x, y)
    torch.split(x, [1, 1])
    torch.einsum("ij,kj->ik", x, x)
    torch.block_diag(x, x)


def optional_tensors():
    x = torch.arange(12.0).reshape(3, 4)
    x[torch.tensor([0, 1])]
    x[:, torch.tensor([0, 1])]
    x[torch.tensor([0, 1]), torch.tensor([1, 2])]
    x[x > 3]
    x[torch.tensor([0])] = 1
    F.layer_norm(x, (4,))
    F.layer_norm(x, (4,), torch.ones(4), None)
    F.batch_norm(x, torch.zeros(4), torch.ones(4))
    F.linear(x, x)
    F.conv2d(torch.ones(1, 1, 5, 5), torch.ones(2, 1, 3, 3), padding="same")
    torch.bincount(torch.tensor([1, 2]), minlength=4)


def other_arguments():
    generator = torch.Generator().manual_seed(1)
    torch.randn(3, generator=generator)
    torch.zeros(2, dtype=torch.half, device="cpu", layout=torch.strided, pin_memory=False)
    torch.ones(3).to(torch.float64)
    torch.ones(3).to("meta")
    torch.searchsorted(torch.arange(3), torch.tensor([1]), side="right")
    torch.nn.init.normal_(torch.empty(2))
    F.gelu(torch.ones(2), approximate="tanh")


def layouts():
    coo = torch.eye(3).to_sparse()
    csr = torch.eye(3).to_sparse_csr()
    coo @ torch.ones(3, 2)
    csr @ torch.ones(3, 2)
    coo + coo
    coo.to_dense()
    torch.eye(4).to_sparse_bsr((2, 2)).to_dense()
    torch.ones(2, 3).to_mkldnn().relu().to_dense()


def nested():
    n = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    n + n
    torch.nested.to_padded_tensor(n, 0.0)


def quantized():
    q = torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 0, torch.qint8)
    q.dequantize()
    q.int_repr()


def meta_and_fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    x = torch.ones(2, 3, device="meta")
    x @ x.t()
    with FakeTensorMode():
        y = torch.ones(2, 3)
        y + y


class Wrapper(torch.Tensor):
    """Says its own sizes and strides, from Python."""

    @staticmethod
    def __new__(cls, inner, policy=None):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.size(), strides=inner.stride(), dtype=inner.dtype, dispatch_sizes_strides_policy=policy
        )

    def __init__(self, inner, policy=None):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if "size" in function.name() or "stride" in function.name():
            torch.sub(torch.ones(1, 2, 3), 2.5)
        unwrapped = tree_map(lambda x: x.inner if isinstance(x, Wrapper) else x, (args, kwargs or {}))
        return function(*unwrapped[0], **unwrapped[1])


def subclasses():
    x = Wrapper(torch.ones(2, 3))
    x + 1
    torch.nn.Parameter(torch.ones(2)).clone()


def subclass_with_sizes_in_python():
    x = Wrapper(torch.ones(2, 3), "sizes")
    y = Wrapper(torch.ones(2, 3), "strides")
    torch.add(x, y)
    torch.cat([x, y])


def functional_and_vmapped():
    torch.func.vmap(lambda x: x * 2)(torch.ones(3, 4))
    torch.func.grad(lambda x: x.sin().sum())(torch.ones(3))
    torch.func.functionalize(lambda x: x.add_(1))(torch.ones(3))


def backward():
    x = torch.ones(2, 3, requires_grad=True)
    y = F.linear(x, torch.ones(4, 3, requires_grad=True), torch.ones(4, requires_grad=True))
    F.cross_entropy(y, torch.tensor([0, 1])).backward()
    torch.cat([x, x]).unbind()[0].sum().backward()


def optimizers():
    parameters = [torch.ones(3, i + 1, requires_grad=True) for i in range(4)]
    for p in parameters:
        p.grad = torch.ones_like(p)
    for optimizer in (torch.optim.Adam(parameters, foreach=True), torch.optim.SGD(parameters, momentum=0.9, lr=0.1)):
        optimizer.step()


def scaled_dot_product():
    q = torch.ones(1, 2, 8, 16)
    F.scaled_dot_product_attention(q, q, q, is_causal=True)


PROGRAMS = [
    dtypes,
    dimensions,
    strides,
    scalars,
    lists,
    tensor_lists,
    optional_tensors,
    other_arguments,
    layouts,
    nested,
    quantized,
    meta_and_fake,
    subclasses,
    functional_and_vmapped,
    backward,
    optimizers,
    scaled_dot_product,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_inputs_equal_torch(program):
    theirs, ours = record(torch.profiler, program), record(opstrobe, program)
    assert [e[0] for e in ours] == [e[0] for e in theirs]
    for mine, other in zip(ours, theirs):
        for column, a, b in zip(COLUMNS, mine[1:], other[1:]):
            assert b is None or repr(a) == repr(b), f"{mine[0]}: {column}"


def test_sizes_that_python_computes():
    """Asking for them runs operators, which are recorded too, while the inputs of the first are half written. (Torch's
    own profiler does not survive this.)"""
    rows = record(opstrobe, lambda: [subclass_with_sizes_in_python() for _ in range(300)])
    expected = {
        "aten::add": [[2, 3], [2, 3], []],
        "aten::cat": [[[2, 3], [2, 3]], []],
        "aten::sub": [[1, 2, 3], [], []],
        "aten::ones": [[], [], [], [], []],
    }
    for name, shapes in expected.items():
        assert {repr(row[2]) for row in rows if row[0] == name} == {repr(shapes)}
    assert (
        len([row for row in rows if row[0] == "aten::ones"])
        == len([row for row in rows if row[0] == "aten::sub"]) + 600
    )


def test_a_list_too_long_for_any_block():
    """4,000 tensors are more than a block holds: the operator is recorded, without that list."""
    tensors = [torch.ones(1, 1)] * 4000
    with opstrobe.profile(record_shapes=True) as prof:
        torch._foreach_add(tensors, torch.tensor(1.0))
        torch._foreach_neg([torch.ones(2)] * 1200)
        torch.add(tensors[0], 1)
    events = {e.name: e for e in prof.events()}
    assert events["aten::_foreach_add"].structured_input_shapes[:2] == [[], []]
    assert events["aten::_foreach_neg"].structured_input_shapes == [[[2]] * 1200]
    assert events["aten::add"].input_shapes[0] == [1, 1]


def test_blocks_fill_up_with_inputs():
    """Payloads of every size across many blocks."""
    sizes = [(1,) * n for n in range(1, 60)]
    with opstrobe.profile(record_shapes=True) as prof:
        for _ in range(60):
            for size in sizes:
                torch.empty(size).neg()
    shapes = [tuple(e.input_shapes[0]) for e in prof.events() if e.name == "aten::neg"]
    assert shapes == sizes * 60


def test_equal_inputs_take_no_more_memory():
    """The slots of 20,000 operators fill 1.1 MB; with a separate list of inputs for each it would be 2.2 MB."""
    tensors = [torch.ones(4), torch.ones(2, 2), torch.ones(2, 2).t(), torch.ones(4, dtype=torch.int32)]
    session = _core.Session(record_shapes=True, max_bytes=1_500_000)
    session.start()
    for _ in range(2500):
        for x in tensors:
            torch.add(x, x)
            x.neg()
    trace = session.stop()
    trace.check()
    assert trace.lost == 0
    events = trace.function_events()
    assert len(events) == 20_000
    expected = [
        (name, tuple(x.shape), tuple(x.stride()), dtype)
        for x, dtype in zip(tensors, ("float", "float", "float", "int"), strict=True)
        for name in ("aten::add", "aten::neg")
    ]
    recorded = [
        (e.name, tuple(e.structured_input_shapes[0]), tuple(e.structured_input_strides[0]), e.input_dtypes[0])
        for e in events
    ]
    assert recorded == expected * 2500


def test_inputs_that_are_nearly_equal():
    """The same bits as an integer, as a float, and as nothing at all; each twice in a row, then once."""
    x = torch.ones(3)
    values = [0, 0, 0.0, 0.0, 1, 1, False, False, True, True, -0.0, -0.0, 1.0, 1.0, 0, 0.0, 1]
    with opstrobe.profile(record_shapes=True) as prof:
        for _ in range(20):
            for value in values:
                torch.add(x, x, alpha=value) if not isinstance(value, bool) else torch.full((3,), value)
            x.sum(dtype=None)
    first = [e.concrete_inputs for e in prof.events()]
    assert len(first) % 20 == 0
    cycle = first[: len(first) // 20]
    assert first == cycle * 20
    with torch.profiler.profile(record_shapes=True) as theirs:
        for value in values:
            torch.add(x, x, alpha=value) if not isinstance(value, bool) else torch.full((3,), value)
        x.sum(dtype=None)
    assert cycle == [e.concrete_inputs for e in theirs.events()]
