# SPDX-License-Identifier: Apache-2.0
"""The fixes that can be applied to a program from outside, between two of its steps or before its start.

A fix is refused if it may change what the program computes. Effects that cannot be known in advance are detected by the
results of the steps.
"""

from __future__ import annotations

import functools
import gc
import inspect
import os
from typing import Any

from opstrobe.proving.programs import WatchedProgram
from opstrobe.recording.host_info import processors


class Fix:
    """`prepare` is called at the import of torch, `refusal` after the first steps, `on` and `off` between steps, `off`
    first."""

    name = ""
    about = ""
    findings: tuple[str, ...] = ()  # the rules whose advice this is
    exact = True  # results are equal bit for bit; otherwise within a tolerance
    per_run = False  # applies to all steps of a run or to none
    changes_parallelism = False  # changes how many threads or processes run
    environment: dict[str, str] = {}  # environment variables of a run with the fix

    def __init__(self, program: WatchedProgram) -> None:
        self.program = program
        self.torch = program.torch

    def prepare(self) -> None:
        pass

    def refusal(self) -> str | None:
        """Returns why the fix cannot be applied to this program; None: it can."""
        return None

    def on(self) -> None:
        pass

    def off(self) -> None:
        pass


def _processor_count() -> int:
    """Returns how many CPUs this process may use."""
    return max(int(processors()), 1)


# --- between steps ------------------------------------------------------------------------------------------------------


class AnomalyOff(Fix):
    name = "anomaly-off"
    about = "anomaly detection is disabled"
    findings = ("anomaly-mode",)

    def prepare(self) -> None:
        self._is_on = False
        self._seen = False
        self._wanted = (False, True)  # the settings of the program: mode, check_nan
        inner = self.torch.set_anomaly_enabled

        def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
            self._seen |= mode
            self._wanted = mode, check_nan
            inner(mode and not self._is_on, check_nan)

        self._inner = inner
        self.torch.set_anomaly_enabled = set_anomaly_enabled
        self.torch.is_anomaly_enabled = lambda: self._wanted[0]

    def refusal(self) -> str | None:
        return None if self._seen else "the program does not enable anomaly detection"

    def on(self) -> None:
        self._is_on = True
        self._inner(False, True)

    def off(self) -> None:
        self._is_on = False
        self._inner(*self._wanted)


class GcOff(Fix):
    name = "gc-off"
    about = "no garbage is collected within steps: gc.disable(), and calls of gc.collect() do nothing"
    findings = ("gc-pauses",)

    def prepare(self) -> None:
        self._is_on = False
        self._collect = gc.collect
        self._was_enabled = gc.isenabled()

        @functools.wraps(gc.collect)
        def collect(*args: Any, **kwargs: Any) -> int:
            return 0 if self._is_on else self._collect(*args, **kwargs)

        gc.collect = collect

    def on(self) -> None:
        self._was_enabled = gc.isenabled()
        gc.disable()
        self._is_on = True

    def off(self) -> None:
        if self._is_on:
            self._collect()  # otherwise the other steps would collect the garbage of these
            if self._was_enabled:
                gc.enable()
        self._is_on = False


class SetToNone(Fix):
    name = "set-to-none"
    about = "zero_grad(set_to_none=True) in place of set_to_none=False"

    def prepare(self) -> None:
        self._is_on = self._seen = False
        for owner in (self.torch.optim.Optimizer, self.torch.nn.Module):
            owner.zero_grad = self._wrap(owner.zero_grad)

    def _wrap(self, inner: Any) -> Any:
        @functools.wraps(inner)
        def zero_grad(owner: Any, set_to_none: bool = True) -> None:
            self._seen |= not set_to_none
            inner(owner, set_to_none or self._is_on)

        return zero_grad

    def refusal(self) -> str | None:
        return None if self._seen else "the program does not call zero_grad(set_to_none=False)"

    def on(self) -> None:
        self._is_on = True

    def off(self) -> None:
        self._is_on = False


class NoGrad(Fix):
    name = "no-grad"
    about = "torch.no_grad() around steps without a backward pass, or around modules in evaluation mode"
    findings = ("autograd-unused",)

    def prepare(self) -> None:
        self._is_on = False
        self._outer: Any = None  # the module that runs without gradients

    def refusal(self) -> str | None:
        if not self.program.called_backward:
            return None if self.torch.is_grad_enabled() else "the program has disabled gradients"
        if not self.program.ran_evaluation:
            return "the steps need gradients, and no outermost module in evaluation mode runs with gradients enabled"
        self._wrap_evaluation()
        return None

    def _wrap_evaluation(self) -> None:
        modules = self.torch.nn.modules.module
        set_grad_enabled = self.torch._C._set_grad_enabled

        def before(module: Any, _: Any) -> None:
            if self._is_on and self._outer is None and not module.training and self.torch.is_grad_enabled():
                self._outer = module
                set_grad_enabled(False)

        def after(module: Any, *_: Any) -> None:
            if self._outer is module:
                self._outer = None
                set_grad_enabled(True)

        modules.register_module_forward_pre_hook(before)
        modules.register_module_forward_hook(after, always_call=True)

    def on(self) -> None:
        self._is_on = True
        if not self.program.called_backward:
            self.torch._C._set_grad_enabled(False)

    def off(self) -> None:
        if self._is_on and not self.program.called_backward:
            self.torch._C._set_grad_enabled(True)
        self._is_on = False


class _OptimizerOption(Fix):
    findings: tuple[str, ...] = ("optimizer-loop",)
    exact = False
    option = ""
    names: tuple[str, ...] = ()

    def refusal(self) -> str | None:
        if not self.program.optimizers:
            return "no optimizer of torch.optim steps"
        for optimizer in self.program.optimizers:
            kind = type(optimizer)
            if kind.__module__.partition(".")[0] != "torch" or self.option not in optimizer.defaults:
                return f"{kind.__name__} has no option {self.option}"
            if self.names and kind.__name__ not in self.names:
                return f"{kind.__name__} has no option {self.option} on every device"
            for group in optimizer.param_groups:
                if group.get("fused") or group.get("foreach"):
                    return f"{kind.__name__} is {'fused' if group.get('fused') else 'foreach'}"
                if group.get("differentiable") or group.get("capturable"):
                    return f"{kind.__name__} is differentiable or capturable"
                if any(not p.is_floating_point() or (p.grad is not None and p.grad.is_sparse) for p in group["params"]):
                    return f"{kind.__name__} has gradients that are sparse, or parameters that are not floating-point"
        return None

    def _switch(self, value: bool | None) -> None:
        for optimizer in self.program.optimizers:
            for group in optimizer.param_groups:
                group[self.option] = value

    def on(self) -> None:
        self._switch(True)

    def off(self) -> None:
        self._switch(None)


class FusedOptimizer(_OptimizerOption):
    name = "fused-optimizer"
    about = "the optimizer has fused=True"
    option = "fused"
    names = ("SGD", "Adam", "AdamW", "Adagrad")

    def _move_step_counts(self, to_device: bool) -> None:
        """The number of steps is a tensor, which a fused optimizer keeps on the device."""
        for optimizer in self.program.optimizers:
            for parameter, state in optimizer.state.items():
                if self.torch.is_tensor(state.get("step")):
                    state["step"] = state["step"].to(parameter.device if to_device else "cpu")

    def on(self) -> None:
        self._move_step_counts(True)
        super().on()

    def off(self) -> None:
        self._move_step_counts(False)
        super().off()


class ForeachOptimizer(_OptimizerOption):
    name = "foreach-optimizer"
    about = "the optimizer has foreach=True"
    option = "foreach"


class Threads(Fix):
    name = "threads"
    about = "as many threads as the process may use CPUs: torch.set_num_threads()"
    findings = ("thread-count",)
    exact = False  # sums have different partial sums
    changes_parallelism = True

    def refusal(self) -> str | None:
        self._before = self.torch.get_num_threads()
        self._count = _processor_count()
        return f"the program uses {self._count} threads" if self._before == self._count else None

    def on(self) -> None:
        self.torch.set_num_threads(self._count)

    def off(self) -> None:
        self.torch.set_num_threads(self._before)


class FlushDenormals(Fix):
    name = "flush-denormals"
    about = "denormal numbers are zero: torch.set_flush_denormal(True), in the thread of the steps alone"
    findings = ("denormals",)
    exact = False

    def refusal(self) -> str | None:
        if self.torch.set_flush_denormal(True):
            self.torch.set_flush_denormal(False)
            return None
        return "the CPU cannot flush denormal numbers"

    def on(self) -> None:
        self.torch.set_flush_denormal(True)

    def off(self) -> None:
        self.torch.set_flush_denormal(False)


class SparseEmbedding(Fix):
    name = "sparse-embedding"
    about = "embeddings have sparse=True"
    findings = ("dense-embedding-gradient",)
    exact = False  # gradients of a row are added to it one by one

    def refusal(self) -> str | None:
        nn = self.torch.nn
        self._tables = [
            module
            for root in self.program.roots
            for module in root.modules()
            if isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and not module.sparse and module.weight.requires_grad
        ]
        if not self._tables:
            return "no embedding has dense gradients"
        weights = {id(table.weight) for table in self._tables}
        for optimizer in self.program.optimizers:
            for group in optimizer.param_groups:
                if weights.isdisjoint(map(id, group["params"])):
                    continue
                kind = type(optimizer).__name__
                if not isinstance(optimizer, self.torch.optim.SGD) or group["momentum"] or group["weight_decay"]:
                    return f"{kind} also changes rows without gradients; only SGD without momentum and weight decay does not"
                if group.get("fused") or group.get("foreach"):
                    return f"a fused or foreach {kind} takes no sparse gradients"
        return None

    def on(self) -> None:
        for table in self._tables:
            table.sparse = True

    def off(self) -> None:
        for table in self._tables:
            table.sparse = False


class ChannelsLast(Fix):
    name = "channels-last"
    about = "modules with 2-d convolutions and their inputs have memory_format=torch.channels_last"
    findings = ("layout-conversions",)
    exact = False

    def refusal(self) -> str | None:
        self._modules = [
            root for root in self.program.roots if any(isinstance(m, self.torch.nn.Conv2d) for m in root.modules())
        ]
        if not self._modules:
            return "no outermost module has a 2-d convolution"
        if any(
            p.dim() == 4 and p.is_contiguous(memory_format=self.torch.channels_last) and not p.is_contiguous()
            for module in self._modules
            for p in module.parameters()
        ):
            return "the modules are in channels_last already"
        self._is_on = False
        for module in self._modules:
            module.register_forward_pre_hook(self._convert, with_kwargs=True)
        return None

    def _convert(self, _: Any, args: Any, kwargs: Any) -> Any:
        if not self._is_on:
            return None

        def converted(value: Any) -> Any:
            if self.torch.is_tensor(value) and value.dim() == 4:
                return value.to(memory_format=self.torch.channels_last)
            return value

        return tuple(map(converted, args)), {key: converted(value) for key, value in kwargs.items()}

    def _switch(self, memory_format: Any) -> None:
        for module in self._modules:
            module.to(memory_format=memory_format)

    def on(self) -> None:
        self._is_on = True
        self._switch(self.torch.channels_last)

    def off(self) -> None:
        if self._is_on:
            self._switch(self.torch.contiguous_format)
        self._is_on = False


class FusedAttention(Fix):
    name = "fused-attention"
    about = 'models of transformers have attn_implementation="sdpa"'
    findings = ("unfused-attention",)
    exact = False

    def refusal(self) -> str | None:
        self._models = [
            root
            for root in self.program.roots
            if hasattr(root, "set_attn_implementation") and root.config._attn_implementation == "eager"
        ]
        if not self._models:
            return "no outermost module is a model of transformers with eager attention; attention of the program itself must be changed there"
        if any(model.training and getattr(model.config, "attention_dropout", 0) for model in self._models):
            return "the fused attention draws other random numbers for its dropout"
        return None

    def on(self) -> None:
        for model in self._models:
            model.set_attn_implementation("sdpa")

    def off(self) -> None:
        for model in self._models:
            model.set_attn_implementation("eager")


class Compile(Fix):
    name = "compile"
    about = "the outermost module is compiled: torch.compile(module)"
    findings = ("many-small-operators", "unfused-pointwise")
    exact = False

    def refusal(self) -> str | None:
        import importlib

        roots = self.program.roots
        if len(roots) != 1:
            return f"the steps call {len(roots)} outermost modules" if roots else "the steps call no module"
        if any(type(module).__name__ == "OptimizedModule" for module in roots[0].modules()):
            return "the module is compiled"
        # Dropout then draws the numbers that it draws without the compiler.
        importlib.import_module("torch._inductor.config").fallback_random = True  # type: ignore[attr-defined]
        self._module = roots[0]
        self._compiled = self.torch.compile(self._module.forward)
        return None

    def on(self) -> None:
        self._module.forward = self._compiled

    def off(self) -> None:
        self._module.__dict__.pop("forward", None)


# --- in all of a run ----------------------------------------------------------------------------------------------------


class KeepMemory(Fix):
    name = "keep-memory"
    about = "the C library keeps memory that is freed: MALLOC_MMAP_MAX_=0, MALLOC_TRIM_THRESHOLD_=-1"
    findings = ("allocation-churn",)
    per_run = True
    environment = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "-1"}

    def refusal(self) -> str | None:
        return "another allocator is preloaded" if "malloc" in os.environ.get("LD_PRELOAD", "") else None


class _LoaderOption(Fix):
    per_run = True
    changes_parallelism = True

    def prepare(self) -> None:
        from torch.utils.data import DataLoader

        self._changed = 0
        self._reason = "the program makes no DataLoader"
        inner = DataLoader.__init__
        signature = inspect.signature(inner)

        @functools.wraps(inner)
        def init(loader: Any, *args: Any, **kwargs: Any) -> None:
            bound = signature.bind(loader, *args, **kwargs)
            bound.apply_defaults()
            reason = self.change(bound.arguments)
            if reason is None:
                self._changed += 1
            else:
                self._reason = reason
            inner(*bound.args, **bound.kwargs)

        DataLoader.__init__ = init  # type: ignore[method-assign, assignment]

    def change(self, options: dict[str, Any]) -> str | None:
        """Changes the options of a loader under construction, or returns why that is not possible."""
        raise NotImplementedError

    def refusal(self) -> str | None:
        return None if self._changed else self._reason


class Workers(_LoaderOption):
    name = "workers"
    about = "loaders without workers get one for each further CPU (at least one), and keep them"
    findings = ("loader-bound",)

    def change(self, options: dict[str, Any]) -> str | None:
        from torch.utils.data import IterableDataset

        if options["num_workers"]:
            return f"the loader has {options['num_workers']} workers"
        if isinstance(options["dataset"], IterableDataset):
            return "each worker would yield all data of the IterableDataset"
        options["num_workers"] = max(_processor_count() - 1, 1)
        options["persistent_workers"] = True
        return None


class PersistentWorkers(_LoaderOption):
    name = "persistent-workers"
    about = "loaders with workers have persistent_workers=True"
    findings = ("loader-restarts",)

    def change(self, options: dict[str, Any]) -> str | None:
        if not options["num_workers"]:
            return "the loader has no workers"
        if options["persistent_workers"]:
            return "the loader keeps its workers"
        options["persistent_workers"] = True
        return None


class PinMemory(_LoaderOption):
    name = "pin-memory"
    about = "loaders have pin_memory=True"
    findings = ("pageable-copies",)

    def change(self, options: dict[str, Any]) -> str | None:
        if not self.torch.cuda.is_available():
            return "CUDA is not available"
        if options["pin_memory"]:
            return "the loader pins memory"
        options["pin_memory"] = True
        return None


FIXES: dict[str, type[Fix]] = {
    kind.name: kind
    for kind in (
        AnomalyOff,
        ChannelsLast,
        Compile,
        FlushDenormals,
        ForeachOptimizer,
        FusedAttention,
        FusedOptimizer,
        GcOff,
        KeepMemory,
        NoGrad,
        PersistentWorkers,
        PinMemory,
        SetToNone,
        SparseEmbedding,
        Threads,
        Workers,
    )
}
