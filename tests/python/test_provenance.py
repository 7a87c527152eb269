# SPDX-License-Identifier: Apache-2.0
"""What a recording says it was made with, and what it keeps to itself."""

import json
import os
import subprocess
import sys

import pytest
import torch

import opstrobe
from opstrobe.recording import provenance


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["train.py", "--lr", "0.1", "--max-tokens=100"], "train.py --lr 0.1 --max-tokens=100"),
        (["train.py", "--token", "abc", "--lr", "1"], "train.py --token *** --lr 1"),
        (["train.py", "--api-key=abc", "--hf-token=x", "DB_PASSWORD=y"], "train.py --api-key=*** --hf-token=*** DB_PASSWORD=***"),
        (["train.py", "--wandbApiKey", "abc"], "train.py --wandbApiKey ***"),
        (["train.py", "s3://user:pass@host/data"], "train.py s3://***@host/data"),
        (["train.py", "hf_abcdefghijklmnop", "x=sk-abcdefghijklmnop"], "train.py *** x=***"),
        (["train.py", "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY"], "train.py ***"),
        (["train.py", "/data/aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY/x"], "train.py /data/aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY/x"),
        (["train.py", "0123456789abcdef0123456789abcdef01234567"], "train.py 0123456789abcdef0123456789abcdef01234567"),
        (["python", "-c", "login('secret')"], "python -c ***"),
        (["train.py", "--auth", "--lr", "1"], "train.py --auth --lr 1"),
        (["train.py", "a b", "\udce4"], "train.py 'a b' '\\udce4'"),
    ],
)  # fmt: skip
def test_command_lines_are_masked(words, text):
    assert provenance.masked(words) == text


@pytest.mark.parametrize(
    ("line", "types"),
    [
        ("flags\t\t: fpu sse avx2 fma", ["bfloat16", "float16"]),
        ("flags\t\t: avx512f avx512_bf16", ["float16"]),
        ("flags\t\t: amx_tile amx_bf16 amx_int8 avx512_fp16", []),
        ("Features\t: fp asimd fphp asimdhp bf16", []),
        ("Hardware\t: unknown", []),
    ],
)
def test_types_without_instructions_are_noted(monkeypatch, line, types):
    monkeypatch.setattr(provenance, "_read", lambda path: f"processor\t: 0\n{line}\nbugs\t\t: none\n")
    provenance.emulated_types.cache_clear()
    try:
        assert json.loads(provenance.make_json({})).get("emulated_types", []) == types
    finally:
        provenance.emulated_types.cache_clear()


def git(folder, *words):
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_the_revision_is_that_of_git(tmp_path):
    repository = tmp_path / "repository"
    (repository / "deep").mkdir(parents=True)
    assert provenance.revision(str(repository)) is None
    git(repository, "init", "-q", "-b", "main")
    assert provenance.revision(str(repository)) is None  # no commit yet
    git(repository, "commit", "-q", "--allow-empty", "-m", "first")
    commit = git(repository, "rev-parse", "HEAD")
    assert provenance.revision(str(repository / "deep")) == commit
    git(repository, "pack-refs", "--all")
    assert provenance.revision(str(repository)) == commit
    git(repository, "worktree", "add", "-q", str(tmp_path / "other"))
    assert provenance.revision(str(tmp_path / "other")) == commit
    git(repository, "checkout", "-q", "--detach")
    assert provenance.revision(str(repository)) == commit


def test_every_recording_says_what_made_it(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_SECRET", "hunter2-in-the-environment")
    with opstrobe.profile(
        record_shapes=True, max_bytes=2**24, with_stack=opstrobe.StackOptions(max_depth=9, imports=False)
    ) as prof:
        torch.ones(2) + 1
    prof.export_chrome_trace(tmp_path / "t.json")
    text = (tmp_path / "t.json").read_text()
    made = json.loads(text)["recording"]
    assert made["opstrobe"] == opstrobe.__version__ and made["torch"] == torch.__version__
    assert made["threads"] == torch.get_num_threads() and made["cpu"]
    assert made["options"] == f"with_stack (max_depth=9, imports=False), record_shapes, max_bytes={2**24}"
    assert made["command"] == provenance.masked(sys.orig_argv)
    assert "hunter2" not in text


@pytest.mark.parametrize(
    "arguments, before, settings",
    [
        ([], "", None),
        (["-X", "tracemalloc"], "", ["tracemalloc"]),
        ([], "import tracemalloc; tracemalloc.start()", ["tracemalloc"]),
        ([], "import sys; sys.settrace(lambda *event: None)", ["trace_function"]),
        (["-X", "dev", "-W", "ignore"], "", ["debug_allocator"]),
    ],
)
def test_recordings_have_the_settings_that_slow_a_process_down(arguments, before, settings, tmp_path):
    program = f"""{before}
import opstrobe, torch
with opstrobe.profile() as prof:
    torch.ones(2) + 1
prof.export_chrome_trace({str(tmp_path / "t.json")!r})
"""
    subprocess.run([sys.executable, *arguments, "-c", program], check=True, stderr=subprocess.DEVNULL)
    assert json.loads((tmp_path / "t.json").read_text())["recording"].get("settings") == settings
