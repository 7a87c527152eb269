# SPDX-License-Identifier: Apache-2.0
"""FLOPs of real programs, compared with torch.profiler's where it has a value, and in sum with torch.utils.flop_counter's.

Takes the path of flops_filter. Programs run under torch.profiler, whose events go to the filter with the inputs it records.
"""

import re
import sys

from inputs import Filter, input_list, plain_tensor, scalar, skip, tensor, tensor_list

try:
    import torch
    import torch.nn.functional as F
    import torch.utils.mkldnn
    from hypothesis import HealthCheck, assume, given, settings
    from hypothesis import strategies as st
    from torch.profiler import ProfilerActivity, profile
    from torch.utils.flop_counter import FlopCounterMode, flop_registry
except ImportError as missing:
    skip(missing)

FILTER = Filter(sys.argv[1])
PRODUCTS = re.compile(r"mm|conv|mv_?$|dot|attention|rnn|linear")  # what flop_counter counts, and their like
r = torch.randn


def encoded(event):
    items = []
    for sizes, strides, dtype, value in zip(
        event.structured_input_shapes, event.structured_input_strides, event.input_dtypes, event.concrete_inputs
    ):
        if dtype == "TensorList":
            items.append(tensor_list(sizes))
        elif dtype in ("", "Scalar", "ScalarList"):
            items.append(scalar(value))
        else:
            items.append(tensor(sizes, strides) if len(strides) == len(sizes) else plain_tensor(sizes))
    return input_list(items)


def events_of(program):
    """(name, torch.profiler's FLOPs, ours) of every event."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True) as prof:
        program()
    events = [event for event in prof.events() if event.thread == prof.events()[0].thread]
    words = [len(events)]
    for event in events:
        words += [round(event.time_range.start * 1000), round(event.time_range.end * 1000), event.name, encoded(event)]
    status, text = FILTER.ask(words)
    assert status == "OK"
    return [(event.name, event.flops, ours) for event, ours in zip(events, map(int, text.split()), strict=True)]


def ours(program, only_products=True):
    return {
        name: sum(flops for other, _, flops in found if other == name)
        for found in [events_of(program)]
        for name, _, flops in found
        if flops and (not only_products or PRODUCTS.search(name))
    }


def flop_counter(program):
    with FlopCounterMode(display=False) as counter:
        program()
    return counter.get_total_flops()


def test_as_torch_profiler():
    """The values that it has, except the ones that differ on purpose."""
    x, w = r(2, 3, 8, 8), r(4, 3, 3, 3)
    found = []
    for program in [
        lambda: torch.mm(r(3, 4), r(4, 5)),
        lambda: torch.addmm(r(5), r(3, 4), r(4, 5)),
        lambda: torch.bmm(r(2, 3, 4), r(2, 4, 5)),
        lambda: torch.baddbmm(r(2, 3, 5), r(2, 3, 4), r(2, 4, 5)),
        lambda: r(3, 4) + 4,
        lambda: r(3, 4) * r(3, 4),
        lambda: r(3, 4) + r(4),
        lambda: r(2, 1) * r(2, 1),
        lambda: F.conv2d(x, w, stride=2, padding=1),
        lambda: F.conv2d(x, w, r(4), dilation=2),
        lambda: F.conv2d(r(2, 4, 8, 8), r(4, 2, 3, 3), groups=2, dilation=2),
        lambda: torch.nn.Linear(4, 5)(r(2, 3, 4)),
        lambda: r(2, 3, 4) @ r(4, 5),
        lambda: r(0, 4) @ r(4, 5),
        lambda: r(3, 0) @ r(0, 5),
        lambda: torch.einsum("bij,bjk->bik", r(2, 3, 4), r(2, 4, 5)),
        lambda: torch.nn.MultiheadAttention(16, 2)(r(2, 3, 16), r(2, 3, 16), r(2, 3, 16)),
        lambda: F.scaled_dot_product_attention(*[r(2, 4, 8, 16, requires_grad=True)] * 3, dropout_p=0.5),
        lambda: torch.nn.GRU(4, 5)(r(2, 3, 4)),
        lambda: torch.mm(r(3, 4, dtype=torch.complex64), r(4, 5) + 0j),
    ]:
        found += events_of(program)
    for name, theirs, mine in found:
        assert theirs in (0, mine), (name, theirs, mine)
    assert {name for name, theirs, _ in found if theirs} == {
        "aten::mm",
        "aten::addmm",
        "aten::bmm",
        "aten::baddbmm",
        "aten::add",
        "aten::mul",
        "aten::conv2d",
    }
    assert sum(theirs > 0 for _, theirs, _ in found) > 20


def test_where_it_differs():
    for program, expected in [
        (lambda: r(3, 1) + r(1, 4), {"aten::add": 12}),
        (lambda: torch.tensor(2.0) * r(3, 4), {"aten::mul": 12}),
        (lambda: r(3, 4).sub_(r(4)).div_(2), {"aten::sub_": 12, "aten::div_": 12}),
        (lambda: 1 - r(3, 4), {"aten::sub": 12}),
        (lambda: r(3, 4) / r(3, 1), {"aten::div": 12}),
        (lambda: r(3, 4).mul_(2).add_(1), {"aten::mul_": 12, "aten::add_": 12}),
        (lambda: torch.dot(r(5), r(5)), {"aten::dot": 10}),
        (lambda: torch.vdot(r(5), r(5)), {"aten::vdot": 10}),
        (lambda: torch.mv(r(4, 5), r(5)), {"aten::mv": 40}),
        (lambda: r(4, 5) @ r(5), {"aten::mv": 40}),
        (lambda: torch.addmv(r(4), r(4, 5), r(5)), {"aten::addmv": 40}),
        (lambda: r(4).addmv_(r(4, 5), r(5)), {"aten::addmv_": 40}),
        (lambda: torch.addbmm(r(3, 5), r(2, 3, 4), r(2, 4, 5)), {"aten::addbmm": 240}),
        (lambda: r(3, 5).addmm_(r(3, 4), r(4, 5)), {"aten::addmm_": 120}),
        (lambda: r(2, 3, 5).baddbmm_(r(2, 3, 4), r(2, 4, 5)), {"aten::baddbmm_": 240}),
        (lambda: torch.mm(r(3, 4).to_sparse(), r(4, 5)), {}),
        (lambda: torch.mm(r(3, 4).to_sparse_csr(), r(4, 5)), {}),
        (lambda: r(3, 4).to_sparse() + r(3, 4).to_sparse(), {}),
        (lambda: F.conv1d(r(3, 9), r(4, 3, 3)), {"aten::conv1d": 2 * 7 * 36}),
        (lambda: F.conv2d(r(3, 8, 8), r(4, 3, 3, 3)), {"aten::conv2d": 2 * 36 * 108}),
        (lambda: torch.ops.aten.conv2d(r(1, 3, 8, 8), r(4, 3, 3, 3), None, [2], [1], [1]), {"aten::conv2d": 32 * 108}),
        (lambda: F.conv2d(r(1, 3, 8, 8), r(4, 3, 3, 3), padding="same"), {"aten::convolution": 128 * 108}),
        (lambda: F.conv2d(r(1, 3, 8, 8), r(4, 3, 3, 3), padding="valid"), {"aten::convolution": 72 * 108}),
        (lambda: F.conv_transpose1d(r(3, 9), r(3, 4, 3)), {"aten::conv_transpose1d": 2 * 9 * 36}),
        (lambda: torch._foreach_add([r(2, 3)], [r(2, 3)]), {"aten::_foreach_add": 6}),
    ]:
        assert ours(program, False) == expected, expected


def attention_cost(backward, q, k, v):
    """What flop_counter says of fused attention with these sizes."""
    name = "_scaled_dot_product_flash_attention" + ("_backward" if backward else "")
    q, k, v = (torch.empty(size, device="meta") for size in (q, k, v))
    grad = [torch.empty(*q.shape[:3], v.shape[3], device="meta")] if backward else []
    return flop_registry[getattr(torch.ops.aten, name)](*grad, q, k, v, out_val=None)


def test_attention():
    sizes = [(2, 4, 8, 16), (2, 4, 9, 16), (2, 4, 9, 16)]
    q, k, v = (r(size, requires_grad=True) for size in sizes)
    fused = "aten::_scaled_dot_product_flash_attention_for_cpu"
    assert ours(lambda: F.scaled_dot_product_attention(q, k, v).sum().backward()) == {
        fused: attention_cost(False, *sizes),
        fused + "_backward": attention_cost(True, *sizes),
    }

    def plain():
        F.scaled_dot_product_attention(q, k, v, dropout_p=0.5).sum().backward()

    # The plain form keeps the scores, so it computes them once less.
    assert set(ours(plain)) == {"aten::bmm"}
    assert sum(ours(plain).values()) == flop_counter(plain) == attention_cost(False, *sizes) * 3


def test_kernels():
    """Operators of other devices, which cannot run here: their inputs alone, compared with flop_counter's formulas."""
    aten = torch.ops.aten
    q, k, v, grad = (2, 4, 8, 16), (2, 4, 9, 16), (2, 4, 9, 20), (2, 4, 8, 20)
    swapped = [(2, 8, 4, 16), (2, 9, 4, 16), (2, 9, 4, 20)]
    x, w = (2, 4, 8, 8), (6, 2, 3, 3)
    cases = [
        ("_scaled_dot_product_flash_attention", [q, k, v]),
        ("_scaled_dot_product_cudnn_attention", [q, k, v]),
        ("_scaled_dot_product_efficient_attention", [q, k, v]),
        ("_scaled_dot_product_flash_attention_backward", [grad, q, k, v]),
        ("_scaled_dot_product_cudnn_attention_backward", [grad, q, k, v]),
        ("_scaled_dot_product_efficient_attention_backward", [grad, q, k, v]),
        ("_scaled_mm", [(3, 4), (4, 5), (1,), (1,)]),
        ("convolution_overrideable", [x, w, None, [2, 1], [1, 0], [1, 2], False, [0, 0], 2]),
    ]
    for name, arguments in cases:
        items = [tensor(a) if isinstance(a, tuple) else scalar(a) for a in arguments]
        meta = [torch.empty(a, device="meta") if isinstance(a, tuple) else a for a in arguments]
        out = torch.empty(2, 6, 4, 4, device="meta")
        expected = flop_registry[getattr(aten, name)](*meta, out_val=out)
        assert call("aten::" + name, items) == expected > 0, name
    forward = 2 * 2 * 4 * 4 * 108
    for name, arguments in [
        ("cudnn_convolution", [[1, 0], [2, 1], [1, 2], 2]),
        ("mkldnn_convolution", [None, [1, 0], [2, 1], [1, 2], 2]),
        ("miopen_convolution", [None, [1, 0], [2, 1], [1, 2], 2]),
    ]:
        assert call("aten::" + name, [tensor(x), tensor(w), *map(scalar, arguments)]) == forward, name
    slow = [tensor(x), tensor((6, 4, 3, 3)), *map(scalar, [[3, 3], None, [2, 1], [1, 0]])]
    assert call("aten::_slow_conv2d_forward", slow) == 2 * 2 * 4 * 6 * 216
    # These take (batch, length, heads, size), which flop_counter reads as (batch, heads, length, size).
    swapped, more = [tensor(size) for size in swapped], [scalar(None)] * 4
    for name in ["_flash_attention", "_efficient_attention"]:
        assert call(f"aten::{name}_forward", swapped + more) == attention_cost(False, q, k, v)
        assert call(f"aten::{name}_backward", [tensor((2, 8, 4, 20)), *swapped, *more]) == attention_cost(True, q, k, v)
    # The lengths of packed sequences are not known.
    assert call("aten::_flash_attention_forward", [*swapped, tensor((3,)), tensor((3,))]) == 0


def call(name, items):
    status, text = FILTER.ask([1, 10, 20, name, input_list(items)])
    assert status == "OK"
    return int(text)


@settings(max_examples=150, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_convolutions(data):
    """Any convolution, forward and backward, sums up to what flop_counter makes of it."""
    dimensions = data.draw(st.integers(1, 3))

    def numbers(low, high):
        return data.draw(st.lists(st.integers(low, high), min_size=dimensions, max_size=dimensions))

    groups, channels, outputs = (data.draw(st.integers(1, 3)) for _ in range(3))
    transposed, batched = data.draw(st.booleans()), data.draw(st.booleans())
    stride, dilation, kernel, padding = numbers(1, 3), numbers(1, 2), numbers(1, 3), numbers(0, 2)
    size = [d * (k - 1) + 1 + more for d, k, more in zip(dilation, kernel, numbers(0, 4))]
    if transposed:
        assume(
            all(s * (n - 1) + d * (k - 1) + 1 > 2 * p for s, n, d, k, p in zip(stride, size, dilation, kernel, padding))
        )
    x = r(*([2] if batched else []), channels * groups, *size, requires_grad=data.draw(st.booleans()))
    first, second = (channels * groups, outputs) if transposed else (outputs * groups, channels)
    w = r(first, second, *kernel, requires_grad=data.draw(st.booleans()))
    b = data.draw(st.none() | st.just(r(outputs * groups, requires_grad=True)))
    name = f"conv{'_transpose' if transposed else ''}{dimensions}d"

    def program():
        y = getattr(F, name)(x, w, b, stride=stride, dilation=dilation, padding=padding, groups=groups)
        if y.requires_grad:
            y.sum().backward()

    found = ours(program)
    expected = flop_counter(program)
    if w.requires_grad:  # flop_counter takes this gradient for one of an ungrouped convolution
        expected -= found[f"aten::{name}"] * (groups - 1)
    assert sum(found.values()) == expected, found
    assert set(found) <= {f"aten::{name}", "aten::convolution_backward"}


def test_models():
    """Whole training steps: what is not pointwise sums up to what flop_counter makes of it."""
    convolutional = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding="same"),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 16, 3, stride=2),
        torch.nn.ConvTranspose2d(16, 4, 3),
        torch.nn.Flatten(),
        torch.nn.LazyLinear(10),
    )
    images = r(2, 3, 16, 16)
    convolutional(images)
    recurrent = torch.nn.GRU(6, 5, num_layers=2)
    for model, data in [(convolutional, images), (recurrent, r(3, 2, 6))]:

        def program():
            y = model(data)
            (y[0] if isinstance(y, tuple) else y).sum().backward()

        assert sum(ours(program).values()) == flop_counter(program) > 0


def expected_of_layers(rows, gates, inputs, hidden, layers=1, directions=1):
    widths = [inputs] + [hidden * directions] * (layers - 1)
    return sum(2 * rows * directions * gates * hidden * (width + hidden) for width in widths)


def test_recurrent():
    """Fused or not, a layer's matrix products, once; flop_counter knows only those of layers that are not fused."""
    x = r(7, 3, 4)
    for kind, gates in [("LSTM", 4), ("GRU", 3), ("RNN", 1)]:
        for options in [{}, dict(num_layers=2, bidirectional=True), dict(bias=False)]:
            layer = getattr(torch.nn, kind)(4, 5, **options)
            layers, directions = options.get("num_layers", 1), 1 + options.get("bidirectional", False)
            expected = expected_of_layers(21, gates, 4, 5, layers, directions)
            for program in [lambda: layer(x)]:
                found = ours(program)
                assert sum(found.values()) == expected, (kind, options, found)
                assert "aten::mkldnn_rnn_layer" in found or flop_counter(program) == expected
    weights = [tensor_list([(20, 4), (20, 5), (20,), (20,)])]
    assert call("aten::_cudnn_rnn", [tensor((7, 3, 4)), *weights]) == expected_of_layers(21, 4, 4, 5)
    assert call("aten::miopen_rnn", [tensor((14, 4)), *weights]) == expected_of_layers(14, 4, 4, 5)
    assert call("aten::_cudnn_rnn", [tensor((7, 3, 4)), tensor((20, 4))]) == 0


def test_recurrent_training():
    layer = torch.nn.LSTM(4, 5)
    forward = expected_of_layers(21, 4, 4, 5)
    found = ours(lambda: layer(r(7, 3, 4).requires_grad_())[0].sum().backward())
    assert sum(found.values()) == 3 * forward
    weights = [tensor((20, 4)), tensor((20, 5))]
    assert call("aten::mkldnn_rnn_layer", [tensor((7, 3, 4)), *weights]) == forward
    assert call("aten::mkldnn_rnn_layer_backward", [tensor((7, 3, 4)), *weights]) == 2 * forward


def test_lists_of_tensors():
    a, b = [r(3), r(2, 5)], [r(3), r(2, 5)]

    def program():
        torch._foreach_add(a, b)
        torch._foreach_sub_(a, b)
        torch._foreach_mul_(a, 2.0)
        torch._foreach_div(a, b)
        torch._foreach_sqrt(a)

    found = ours(program, only_products=False)
    names = ["add", "sub_", "mul_", "div"]
    assert found == dict.fromkeys([f"aten::_foreach_{name}" for name in names], 13)


def test_onednn():
    x, linear, convolution = r(2, 8), torch.nn.Linear(8, 5), torch.nn.Conv2d(3, 4, 3, padding=1)
    images = r(2, 3, 8, 8)
    with torch.no_grad():
        expected = flop_counter(lambda: convolution(images))
        dense = torch.utils.mkldnn.to_mkldnn(torch.nn.Sequential(convolution).eval())
        assert sum(ours(lambda: dense(images.to_mkldnn())).values()) == expected
        dense = torch.utils.mkldnn.to_mkldnn(linear)
        assert ours(lambda: dense(x.to_mkldnn())) == {"aten::mkldnn_linear": 2 * 2 * 8 * 5}
        pointwise = torch.ops.mkldnn._linear_pointwise
        weight, bias = linear.weight.to_mkldnn(), linear.bias
        name = "mkldnn::_linear_pointwise"
        assert ours(lambda: pointwise(x, weight, bias, "relu", [], "")) == {name: 160}
        assert ours(lambda: pointwise.binary(x, r(2, 5), weight, bias, "add")) == {name: 160}
        other, kernel = r(2, 4, 8, 8), convolution.weight.to_mkldnn()
        where = [1, 1], [1, 1], [1, 1], 1
        name = "mkldnn::_convolution_pointwise"
        convolve = torch.ops.mkldnn._convolution_pointwise
        assert ours(lambda: convolve(images, kernel, None, *where, "none", [], "")) == {name: expected}
        binary = ("add", None, None, [], None)
        assert ours(lambda: convolve.binary(images, other, kernel, None, *where, *binary)) == {name: expected}
        in_place = torch.ops.mkldnn._convolution_pointwise_.binary
        found = ours(lambda: in_place(other, images, kernel, None, *where, *binary))
        assert found == {f"{name}_": expected}


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(name, "passed", flush=True)
    FILTER.close()
