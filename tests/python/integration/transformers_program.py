# SPDX-License-Identifier: Apache-2.0
"""Trains a small GPT-2 and a small BERT, weights random, with transformers' Trainer and a callback that profiles. Knows
nothing of Opstrobe."""

import sys
from pathlib import Path

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)


class Profiling(TrainerCallback):
    def __init__(self, profile):
        self.profile = profile

    def on_train_begin(self, *_, **__):
        self.profile.start()

    def on_step_end(self, *_, **__):
        self.profile.step()

    def on_train_end(self, *_, **__):
        self.profile.stop()


class Words(torch.utils.data.Dataset):
    def __init__(self, labels):
        self.labels = labels

    def __len__(self):
        return 24

    def __getitem__(self, index):
        words = torch.arange(12) + index
        return {"input_ids": words, "labels": words if self.labels == "words" else torch.tensor(index % 2)}


def train(model, labels, folder, name):
    def ready(profile):
        profile.export_chrome_trace(f"{folder}/{name}.json")
        profile.export_stacks(f"{folder}/{name}.stacks", "self_cpu_time_total")
        table = profile.key_averages(group_by_stack_n=5).table(sort_by="self_cpu_time_total", row_limit=20)
        Path(folder, f"{name}.txt").write_text(table)

    profile = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=ready,
        record_shapes=True,
        profile_memory=True,
        with_flops=True,
        with_stack=True,
        with_modules=True,
    )
    arguments = TrainingArguments(
        output_dir=folder,
        max_steps=5,
        per_device_train_batch_size=4,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
    )
    Trainer(model=model, args=arguments, train_dataset=Words(labels), callbacks=[Profiling(profile)]).train()


def main(folder):
    torch.manual_seed(0)
    train(
        GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=64, bos_token_id=0, eos_token_id=0)),
        "words",
        folder,
        "gpt2",
    )
    bert = BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, vocab_size=64)
    train(BertForSequenceClassification(bert), "classes", folder, "bert")


main(sys.argv[1])
