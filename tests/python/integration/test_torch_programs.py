# SPDX-License-Identifier: Apache-2.0
"""Programs that use torch in all its ways, profiled with all options on: results unchanged, the trace whole."""

import copy
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from judged import ALL_OPTIONS, cuts, drops, judge, names_of

import opstrobe

HERE = Path(__file__).parent
# Torch's own words on what it will remove.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*(prototype|beta|quantized tensor creation).*:UserWarning"),
]


@pytest.fixture
def profiled(tmp_path, perfetto, recwarn):
    """Runs a function under a profile with all options; what it returned, the profile, the rows of its trace. `cut` names
    what the program's annotations cut."""

    def run(program, cut=(), **more):
        with opstrobe.profile(**{**ALL_OPTIONS, **more}) as profile:
            result = program()
        ours = str(Path(opstrobe.__file__).parent)
        assert not [str(warning.message) for warning in recwarn if warning.filename.startswith(ours)]
        document = judge(profile, tmp_path / "trace.json")
        found = cuts(document["traceEvents"])
        assert {name for _, name in found} <= set(cut), found
        assert perfetto(tmp_path / "trace.json") == drops(found)
        return result, profile, document["traceEvents"]

    return run


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))


def train(model, steps=3, batches=None):
    """The losses of a few steps."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(1)
    losses = []
    for step in range(steps):
        x = batches[step] if batches else torch.randn(8, 16, generator=generator)
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_training(profiled):
    expected = train(network())
    losses, profile, _ = profiled(lambda: train(network()))
    assert losses == expected
    assert {"aten::addmm", "AddmmBackward0", "Optimizer.step#AdamW.step"} <= names_of(profile)


def test_compile(profiled, monkeypatch):
    """The compilation and the compiled code, forward and backward, by inductor's C++."""
    import torch._inductor.config

    monkeypatch.setattr(torch._inductor.config, "force_disable_caches", True)
    torch._dynamo.reset()
    expected = train(network())
    # Not with the stacks of the compiler itself: millions of calls. Its annotations begin in a mode that ends before them.
    losses, profile, _ = profiled(lambda: train(torch.compile(network())), cut=["PythonDispatchMode"], with_stack=False)
    assert losses == pytest.approx(expected, rel=1e-4)
    names = names_of(profile)
    assert any(name.startswith("Torch-Compiled Region") for name in names), names
    assert "CompiledFunctionBackward" in names

    compiled = torch.compile(network())
    train(compiled)
    losses, profile, _ = profiled(lambda: train(compiled))
    assert any(name.startswith("Torch-Compiled Region") for name in names_of(profile))


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        return torch.full((16,), float(index)).square() / 1000


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_data_loader_with_workers(profiled, start):
    def program():
        loader = torch.utils.data.DataLoader(Squares(), batch_size=8, num_workers=2, multiprocessing_context=start)
        return train(network(), 4, list(loader))

    expected = train(network(), 4, [torch.stack([Squares()[i] for i in range(b, b + 8)]) for b in range(0, 32, 8)])
    losses, profile, _ = profiled(program)
    assert losses == expected
    loads = [e for e in profile.events() if e.name.startswith("enumerate(DataLoader)")]
    assert len(loads) == 5  # the last finds that there is no more


def test_threads_that_train(profiled):
    models = [network() for _ in range(3)]
    expected = [train(copy.deepcopy(model)) for model in models]
    results = {}

    def program():
        threads = [
            threading.Thread(target=lambda i=i: results.__setitem__(i, train(models[i])), name=f"trainer {i}")
            for i in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    config = opstrobe._ExperimentalConfig(profile_all_threads=True)
    _, profile, _ = profiled(program, experimental_config=config)
    assert [results[i] for i in range(3)] == expected
    steps = [e for e in profile.events() if e.name == "Optimizer.step#AdamW.step"]
    assert len(steps) == 9 and len({e.thread for e in steps}) == 3


def test_backward_from_another_thread(profiled):
    """One graph, walked by two threads: the events are on the thread that walked, linked to the one that built."""
    x = torch.randn(4, 16)

    def program():
        model = network()
        losses = [model(x).sum(), model(x * 2).sum()]
        threads = [threading.Thread(target=loss.backward) for loss in losses]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [parameter.grad for parameter in model.parameters()]

    config = opstrobe._ExperimentalConfig(profile_all_threads=True)
    grads, profile, rows = profiled(program, experimental_config=config)
    assert all(grad is not None for grad in grads)
    forward = {e.thread for e in profile.events() if e.name == "aten::addmm"}
    backward = {e.thread for e in profile.events() if e.name == "AddmmBackward0"}
    assert len(forward) == 1 and len(backward) == 2 and not forward & backward
    assert sum(row["ph"] == "s" for row in rows) == sum(row["ph"] == "f" for row in rows) >= 4


@torch.jit.script
def _branch(x):
    return torch.mm(x, x).relu()


@torch.jit.script
def _forked(x):
    futures = [torch.jit.fork(_branch, x + i) for i in range(3)]
    total = torch.zeros_like(x)
    for future in futures:
        total = total + torch.jit.wait(future)
    return total


def test_jit_fork(profiled):
    x = torch.randn(8, 8)
    expected = _forked(x)
    result, profile, _ = profiled(lambda: _forked(x))
    assert torch.equal(result, expected)
    products = [e for e in profile.events() if e.name == "aten::mm"]
    assert len(products) == 3


def test_jit_trace_and_freeze(profiled):
    model = network().eval()
    x = torch.randn(2, 16)
    frozen = torch.jit.freeze(torch.jit.trace(model, x))
    result, profile, _ = profiled(lambda: [frozen(x) for _ in range(3)])
    assert torch.allclose(result[-1], model(x))
    assert any("linear" in name for name in names_of(profile))


def test_functorch(profiled):
    from torch.func import functional_call, grad, hessian, jacrev, vmap

    model = network()
    parameters = dict(model.named_parameters())
    batch = torch.randn(5, 16)

    def loss(parameters, x):
        return functional_call(model, parameters, (x,)).square().sum()

    def program():
        per_sample = vmap(grad(loss), in_dims=(None, 0))(parameters, batch)
        return per_sample, jacrev(lambda x: model(x))(batch[0]), hessian(lambda x: loss(parameters, x))(batch[0])

    expected = program()
    (per_sample, jacobian, curvature), profile, _ = profiled(program)
    assert all(torch.equal(per_sample[name], expected[0][name]) for name in parameters)
    assert jacobian.shape == (4, 16) and torch.equal(curvature, expected[2])
    assert "aten::mm" in names_of(profile) or "aten::addmm" in names_of(profile)


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=["strided", "jagged"])
def test_nested(profiled, layout):
    model = network()

    def program():
        pieces = [torch.ones(n, 16) for n in (2, 5, 3)]
        nested = torch.nested.nested_tensor(pieces, layout=layout, requires_grad=True)
        out = model(nested)
        torch.nested.to_padded_tensor(out, 0.0).sum().backward()
        return nested.grad is not None

    result, profile, _ = profiled(program)
    assert result
    assert any("nested" in name for name in names_of(profile))


def test_sparse(profiled):
    dense = torch.eye(8) * torch.arange(8)

    def program():
        weights = torch.randn(8, 3, requires_grad=True, generator=None)
        coo, csr = dense.to_sparse(), dense.to_sparse_csr()
        product = torch.sparse.mm(coo, weights)
        product.sum().backward()
        embedding = torch.nn.Embedding(10, 4, sparse=True)
        embedding(torch.tensor([1, 2, 1])).sum().backward()
        torch.optim.SparseAdam(embedding.parameters()).step()
        return csr @ torch.ones(8, 3), weights.grad, embedding.weight.grad.is_sparse

    (product, gradient, is_sparse), profile, _ = profiled(program)
    assert torch.equal(product[:, 0], torch.arange(8.0)) and gradient.shape == (8, 3) and is_sparse
    assert {"aten::to_sparse", "aten::_sparse_mm"} <= names_of(profile)


def test_quantized(profiled):
    x = torch.randn(4, 16)

    def program():
        scaled = torch.quantize_per_tensor(x, scale=0.1, zero_point=8, dtype=torch.quint8)
        channels = torch.quantize_per_channel(
            x, torch.full((16,), 0.1), torch.zeros(16, dtype=torch.long), 1, torch.qint8
        )
        model = torch.ao.quantization.quantize_dynamic(network(), {torch.nn.Linear}, dtype=torch.qint8)
        return scaled.dequantize(), channels.dequantize(), model(x)

    expected = program()
    results, profile, _ = profiled(program)
    assert all(torch.equal(a, b) for a, b in zip(results, expected))
    assert {"aten::quantize_per_tensor", "quantized::linear_dynamic"} <= names_of(profile)


def test_checkpointing_and_amp(profiled):
    from torch.utils.checkpoint import checkpoint

    model = network()
    x = torch.randn(4, 16, requires_grad=True)

    def program():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = checkpoint(model, x, use_reentrant=False)
        out.float().sum().backward()
        return out.dtype

    dtype, profile, _ = profiled(program)
    assert dtype == torch.bfloat16
    assert sum(e.name == "aten::gelu" for e in profile.events()) == 2  # once more in the backward pass


def test_ddp_with_two_processes(tmp_path, perfetto):
    done = subprocess.run(
        [sys.executable, str(HERE / "ddp_program.py"), str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        path = tmp_path / f"rank{rank}.json"
        assert perfetto(path) == {}
        document = json.loads(path.read_text())
        info = document["distributedInfo"]
        assert (info["rank"], info["world_size"], info["backend"]) == (rank, 2, "gloo")
        names = {row["name"] for row in document["traceEvents"]}
        assert {"DistributedDataParallel.forward", "aten::addmm", "gloo:all_reduce", "ProfilerStep#2"} <= names
