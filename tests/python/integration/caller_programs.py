# SPDX-License-Identifier: Apache-2.0
"""Calls of torch.profiler as well-known libraries make them: the same arguments, methods and private names, in code of our own.
Knows nothing of Opstrobe. `caller_programs.py OUT` runs every caller in a separate folder below OUT and writes what each saw
to OUT/facts.json: files, rows, columns, steps and exceptions, but nothing that differs from run to run."""

import collections
import contextlib
import functools
import gzip
import json
import os
import re
import runpy
import sys
import tempfile
import time
import warnings
from pathlib import Path

import torch
from torch.profiler import ProfilerAction, ProfilerActivity, record_function

CPU = [ProfilerActivity.CPU]
CALLERS = {}


def caller(function):
    CALLERS[function.__name__] = function
    return function


class Trainer:
    """Steps are taken in a method, as libraries do: a Python frame is cut by the end of a step."""

    def __init__(self):
        self.model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def batch(self):
        self.optimizer.zero_grad()
        self.model(torch.ones(4, 16)).sum().backward()
        self.optimizer.step()

    def run(self, steps, profiler):
        for _ in range(steps):
            self.batch()
            profiler.step()


# --- what is compared -----------------------------------------------------------------------------------------------------


def read_json(path):
    with (gzip.open if path.name.endswith(".gz") else open)(path, "rt") as file:
        return json.load(file)


def trace_facts(document):
    events = document["traceEvents"]
    rows = [event for event in events if event["ph"] == "X"]
    keys = collections.defaultdict(set)
    for row in rows:
        keys[row.get("cat")] |= set(row.get("args", ()))
    names = collections.Counter(row["name"] for row in rows if row.get("cat") in ("cpu_op", "user_annotation"))
    return {
        "keys": sorted(document),
        "args": {str(category): sorted(names) for category, names in keys.items()},
        "steps": [row["name"] for row in sorted(rows, key=lambda row: row["ts"]) if "ProfilerStep" in row["name"]],
        "memory": any(event.get("name") == "[memory]" for event in events),
        "modules": sorted({re.sub(r"_\d+$", "", r["name"]) for r in rows if r["name"].startswith("nn.Module")}),
        "names": names,
    }


def table_facts(text):
    """The titles of a table and the names of its operators."""
    lines = text.splitlines()
    rules = [i for i, line in enumerate(lines) if line.startswith("---")]
    titles = re.split(r"\s{2,}", re.sub(r"[KMGT]FLOPs", "FLOPs", lines[rules[0] + 1].strip()))
    names = {line.split("  ")[0].strip() or line.strip().split("  ")[0] for line in lines[rules[1] + 1 : rules[2]]}
    return {"titles": titles, "operators": sorted(name for name in names if name.startswith(("aten::", "Optimizer")))}


def file_facts(folder):
    facts = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = re.sub(
            r"(?<=HOST_)\d+|\d{4,}", "N", path.relative_to(folder).as_posix().replace(os.uname().nodename, "HOST")
        )
        while name in facts:
            name += "+"
        document = read_json(path) if re.search(r"\.json(\.gz)?$", path.name) else None
        is_trace = isinstance(document, dict) and "traceEvents" in document
        facts[name] = trace_facts(document) if is_trace else path.stat().st_size > 0
    return facts


def plain(value):
    """As JSON has it."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def failure(call, *args, **kwargs):
    """The name of the exception that a call raises, None without one."""
    try:
        call(*args, **kwargs)
    except Exception as error:
        return type(error).__name__
    return None


# --- serving engines --------------------------------------------------------------------------------------------------------


@caller
def vllm_worker(folder):
    handler = torch.profiler.tensorboard_trace_handler(str(folder), worker_name="rank0", use_gzip=True)
    profiler = torch.profiler.profile(
        activities=CPU,
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_flops=True,
        on_trace_ready=handler,
    )
    trainer = Trainer()
    profiler.start()
    trainer.batch()
    profiler.stop()
    return table_facts(profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=-1))


@caller
def vllm_worker_delayed(folder):
    """Waits and warms up by a schedule, then stops at a number of iterations."""
    profiler = torch.profiler.profile(
        activities=CPU,
        schedule=torch.profiler.schedule(skip_first=0, wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=torch.profiler.tensorboard_trace_handler(str(folder), worker_name="r", use_gzip=True),
    )
    trainer = Trainer()
    profiler.start()
    with record_function("execute_context_1(2)_generation_0(0)"):
        trainer.batch()
    trainer.run(5, profiler)
    profiler.stop()
    return {"step_num": profiler.step_num, "action": str(profiler.current_action)}


@caller
def vllm_layerwise(folder):
    from torch._C._profiler import _EventType, _ExperimentalConfig, _TensorMetadata

    def show(value):
        if value is None or type(value) in (float, int, bool, str):
            return str(value)
        if isinstance(value, (list, tuple)):
            return [show(item) for item in value]
        assert isinstance(value, _TensorMetadata)
        return f"{value.dtype}{value.sizes}"

    class layerwise(torch.profiler.profile):
        def __init__(self):
            super().__init__(
                activities=CPU,
                record_shapes=True,
                with_stack=True,
                with_modules=True,
                experimental_config=_ExperimentalConfig(verbose=True),
            )

        def __enter__(self):
            return super().__enter__()

        def __exit__(self, *exception):
            super().__exit__(*exception)
            self.results = self.profiler.kineto_results

    trainer = Trainer()
    with layerwise() as prof:
        trainer.model(torch.ones(4, 16))
    correlated = collections.defaultdict(list)
    for event in prof.results.events():
        correlated[event.correlation_id()].append(event)
    found = []

    def visit(event, module):
        kind, fields = event.typed
        if event.start_tid != 1:
            return
        if kind == _EventType.PyCall and fields.module is not None:
            module = fields.module.cls_name
            found.append([module, [[name, show(tensor)] for name, tensor, *_ in fields.module.parameters]])
        elif kind == _EventType.TorchOp and module and not event.children:
            same = [other for other in correlated[event.correlation_id] if other.name() == event.name]
            found.append([event.name, show(fields.inputs), len(same), event.duration_time_ns >= 0])
        for child in event.children:
            visit(child, module)

    for root in prof.results.experimental_event_tree():
        visit(root, None)
    return {"layers": found}


@caller
def sglang(folder):
    seen = {}
    for stage in ("prefill", "decode"):
        profiler = torch.profiler.profile(activities=CPU, with_stack=True, record_shapes=False)
        trainer = Trainer()
        profiler.start()
        for _ in range(2):
            with record_function(f"step[{stage}]"):
                trainer.batch()
        profiler.stop()
        path = folder / f"{time.time()}-TP-0-{stage}.trace.json.gz"
        profiler.export_chrome_trace(str(path))
        rows = [event for event in read_json(path)["traceEvents"] if event["ph"] == "X"]
        seen[stage] = sum(row["name"] == f"step[{stage}]" and row["dur"] > 0 for row in rows)
        path.rename(folder / f"TP-0-{stage}.trace.json.gz")
    return seen


# --- trainers ------------------------------------------------------------------------------------------------------------------


@caller
def torchtitan(folder):
    def write(prof):
        target = folder / f"iteration_{prof.step_num}"
        target.mkdir(parents=True, exist_ok=True)
        prof.export_chrome_trace(str(target / "rank0_trace.json"))

    @contextlib.contextmanager
    def profiling(step):
        with torch.profiler.profile(
            activities=CPU,
            schedule=torch.profiler.schedule(wait=1, warmup=1, active=1),
            on_trace_ready=write,
            record_shapes=True,
            with_stack=True,
            with_modules=True,
        ) as prof:
            prof.step_num = step
            yield prof

    with profiling(0) as prof:
        Trainer().run(7, prof)
    return {"none_among_activities": failure(torch.profiler.profile, activities=[ProfilerActivity.CPU, None])}


@caller
def torchtune(folder):
    from torch._C._profiler import _ExperimentalConfig

    tables = []

    def handler(prof, rank=0):
        torch.profiler.tensorboard_trace_handler(
            str(folder / f"iteration_{prof.step_num}"), worker_name="r0", use_gzip=True
        )(prof)
        prof.export_memory_timeline(str(folder / f"rank{rank}_memory-timeline.json"))
        prof.export_stacks(str(folder / f"rank{rank}_stacks.txt"), metric="self_cpu_time_total")
        averages = prof.key_averages(group_by_input_shape=True, group_by_stack_n=5)
        tables.append(averages.table(sort_by="self_cpu_time_total", row_limit=25))

    with torch.profiler.profile(
        activities=CPU,
        profile_memory=True,
        with_stack=True,
        record_shapes=True,
        with_flops=True,
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
        experimental_config=_ExperimentalConfig(verbose=True),
        on_trace_ready=functools.partial(handler, rank=0),
    ) as prof:
        Trainer().run(5, prof)
    return {"tables": len(tables), "titles": sorted(table_facts(tables[0])["titles"])}


@caller
def megatron(folder):
    start, end = 2, 4
    prof = torch.profiler.profile(
        schedule=torch.profiler.schedule(
            wait=max(start - 1, 0), warmup=1 if start > 0 else 0, active=end - start, repeat=1
        ),
        on_trace_ready=torch.profiler.tensorboard_trace_handler(str(folder)),
        record_shapes=True,
        with_stack=True,
    )
    trainer = Trainer()
    prof.start()
    for iteration in range(6):
        prof.step()
        trainer.batch()
        if iteration == end:
            prof.stop()
            break
    return {"step_num": prof.step_num}


@caller
def nemo(folder):
    observer = torch.profiler.ExecutionTraceObserver()
    observer.register_callback(str(folder / "rank-0.json"))

    def write(prof):
        prof.export_chrome_trace(str(folder / f"rank-0-trace-{prof.step_num}.json.gz"))

    prof = torch.profiler.profile(
        activities=CPU,
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1),
        on_trace_ready=write,
        execution_trace_observer=observer,
        record_shapes=True,
        with_stack=True,
    )
    prof.start()
    Trainer().run(4, prof)
    prof.stop()
    observer.unregister_callback()
    nodes = {node["name"] for node in read_json(folder / "rank-0.json")["nodes"]}
    return {"observed": sorted(name for name in nodes if name.startswith("aten::"))}


@caller
def composer(folder):
    """A schedule that asks its own state, and the memory timeline by torch's private class."""
    from torch.profiler._memory_profiler import MemoryProfileTimeline

    actions = [ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE]
    batches = []
    changes = []

    def schedule(step):
        return actions[min(len(batches), step) % len(actions)]

    def handler(prof):
        prof.export_chrome_trace(str(folder / f"ep0-ba{len(batches)}-rank0.trace.json"))
        timeline = MemoryProfileTimeline(prof._memory_profile())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            timeline.export_memory_timeline_raw(str(folder / "raw.json"), "cpu")
        changes.append(sorted({action for _, action, _, _ in read_json(folder / "raw.json")}))

    prof = torch.profiler.profile(
        activities=CPU,
        schedule=schedule,
        on_trace_ready=handler,
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_flops=True,
    )
    prof.__enter__()
    trainer = Trainer()
    for _ in range(8):
        trainer.batch()
        prof.add_metadata_json("global_rank", "0")
        batches.append(1)
        prof.step()
    prof.__exit__(None, None, None)
    return {"changes": changes}


@caller
def verl(folder):
    prof = torch.profiler.profile(
        activities=CPU,
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1),
        record_shapes=True,
        with_stack=True,
    )
    prof.start()
    Trainer().run(3, prof)
    prof.stop()
    prof.export_chrome_trace(str(folder / "prof_start_1_end_3_rank_0.trace.json"))
    return {}


@caller
def torchao(folder):
    trainer = Trainer()
    with torch.profiler.profile(activities=CPU, record_shapes=True, with_stack=True) as prof:
        for _ in range(3):
            trainer.batch()
    prof.export_chrome_trace(str(folder / "trace.json"))
    averages = prof.key_averages()
    rows = {event.key: [event.count, event.self_device_time_total, str(event.device_type)] for event in averages}
    return {
        "rows": {key: row for key, row in rows.items() if key.startswith("aten::")},
        "total": averages.total_average().key,
        "shapes": sorted(
            {str(e.input_shapes) for e in prof.key_averages(group_by_input_shape=True) if e.key == "aten::addmm"}
        ),
    }


@caller
def mmengine(folder):
    tables = []

    def finish(prof):
        tables.append(prof.key_averages(group_by_input_shape=False).table(sort_by="cpu_time_total", row_limit=20))
        prof.export_chrome_trace(str(folder / "trace.json"))

    prof = torch.profiler.profile(
        activities=CPU,
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=finish,
        record_shapes=False,
        profile_memory=True,
        with_stack=True,
        with_flops=False,
    )
    prof.__enter__()
    Trainer().run(5, prof)
    prof.__exit__(None, None, None)
    return {"titles": table_facts(tables[0])["titles"]}


@caller
def fairseq2(folder):
    def handler(prof):
        torch.profiler.tensorboard_trace_handler(str(folder), worker_name="rank_0", use_gzip=True)(prof)

    prof = torch.profiler.profile(
        activities=CPU,
        schedule=torch.profiler.schedule(skip_first=1, wait=0, warmup=1, active=2, repeat=1),
        on_trace_ready=handler,
        record_shapes=True,
        with_stack=True,
    )
    trainer = Trainer()
    prof.start()
    for step in range(5):
        with record_function(f"step_{step}"):
            trainer.batch()
        prof.step()
    prof.stop()
    return {}


@caller
def detectron2(folder):
    prof = torch.profiler.profile(
        activities=CPU,
        on_trace_ready=torch.profiler.tensorboard_trace_handler(str(folder)),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_flops=True,
    )
    trainer = Trainer()
    prof.__enter__()
    trainer.batch()
    prof.__exit__(None, None, None)
    older = torch.autograd.profiler.profile(use_device=None)
    older.__enter__()
    trainer.batch()
    older.__exit__(None, None, None)
    with tempfile.TemporaryDirectory() as other:
        older.export_chrome_trace(os.path.join(other, "tmp.json"))
        (folder / "iter0.trace.json").write_text(Path(other, "tmp.json").read_text())
    return {"operators": sorted({event.name for event in older.function_events if event.name.startswith("aten::")})}


@caller
def ray(folder):
    """A window for each worker, forwarded to the driver from the handler."""
    done = []

    def handler(prof):
        path = folder / f"worker-{len(done)}.trace.json"
        prof.export_chrome_trace(str(path))
        done.append(path.name)

    prof = torch.profiler.profile(
        activities=CPU,
        schedule=torch.profiler.schedule(wait=0, warmup=0, active=1),
        on_trace_ready=handler,
        record_shapes=True,
        with_stack=True,
    )
    trainer = Trainer()
    with prof:
        for name in ("train.torch.forward", "train.torch.backward"):
            with record_function(name):
                trainer.batch()
            prof.step()
    return {"done": len(done)}


@caller
def distributed_debug(folder):
    config = torch.profiler._ExperimentalConfig(profile_all_threads=True)
    with torch.profiler.profile(record_shapes=True, experimental_config=config) as prof:
        Trainer().batch()
    with tempfile.NamedTemporaryFile(prefix="torch_debug", suffix=".json") as file:
        prof.export_chrome_trace(file.name)
        (folder / "trace.json").write_bytes(Path(file.name).read_bytes())
    return {}


@caller
def xformers(folder):
    """FLOPs of the outermost operators that have some, by their type, from private events."""
    trainer = Trainer()
    prof = torch.profiler.profile(
        schedule=torch.profiler.schedule(skip_first=0, wait=0, warmup=1, active=2),
        on_trace_ready=torch.profiler.tensorboard_trace_handler(dir_name=str(folder), use_gzip=True),
        profile_memory=True,
        record_shapes=True,
        with_stack=True,
        with_flops=True,
        activities=CPU,
    )
    prof.__enter__()
    trainer.run(4, prof)
    prof.__exit__(None, None, None)
    with torch.profiler.profile(activities=CPU, record_shapes=True, with_flops=True) as prof:
        trainer.batch()
    names = ("aten::addmm", "aten::mm")
    events = [e for e in prof.profiler.kineto_results.events() if e.device_type().name == "CPU" and e.name() in names]
    methods = sorted(name for name in dir(events[0]) if not name.startswith("_"))
    assert events
    flops = collections.Counter()
    for event in sorted(events, key=lambda e: (e.start_ns(), -e.duration_ns())):
        flops[event.dtypes()[0], event.start_thread_id(), event.fwd_thread_id()] += event.flops()
    values = [[getattr(event, name)() is not None for name in methods] for event in events]
    return {"methods": methods, "flops": flops, "values": values}


# --- libraries that are here -------------------------------------------------------------------------------------------------


def run_program(name, folder):
    arguments, sys.argv = sys.argv, [name, str(folder)]
    try:
        runpy.run_path(str(Path(__file__).parent / name), run_name="__main__")
    finally:
        sys.argv = arguments


@caller
def lightning(folder):
    run_program("lightning_program.py", folder)
    report = (folder / "fit-profile.txt").read_text()
    return {"report": sorted(set(re.findall(r"\[pl\]\[(?:profile|module)\][\w.]+: [\w.]+", report)))}


@caller
def accelerate(folder):
    run_program("accelerate_program.py", folder)
    return {}


def main(out):
    facts = {}
    for name, function in CALLERS.items():
        folder = Path(out) / name
        folder.mkdir(parents=True)
        torch.manual_seed(0)
        seen = {"error": None}
        try:
            seen.update(function(folder))
        except Exception as error:
            seen["error"] = type(error).__name__ + ": " + str(error)[:200]
        seen["files"] = file_facts(folder)
        facts[name] = plain(seen)
    Path(out, "facts.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main(sys.argv[1])
