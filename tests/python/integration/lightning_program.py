# SPDX-License-Identifier: Apache-2.0
"""Trains a few steps with Lightning's PyTorchProfiler. Knows nothing of Opstrobe."""

import sys
from pathlib import Path

import lightning
import torch
from lightning.pytorch.profilers import PyTorchProfiler


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def training_step(self, batch, index):
        return self.layers(batch[0]).square().mean()

    def validation_step(self, batch, index):
        return self.layers(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main(folder):
    lightning.seed_everything(0)
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 16)), batch_size=8)
    profiler = PyTorchProfiler(
        dirpath=folder,
        filename="profile",
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=3),
        record_shapes=True,
        profile_memory=True,
        with_flops=True,
        with_stack=True,
        group_by_input_shapes=True,
        row_limit=-1,
        record_module_names=True,
        table_kwargs={"max_name_column_width": 80},
    )
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        profiler=profiler,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
    )
    trainer.fit(Model(), batches, batches)
    assert (Path(folder) / "fit-profile.txt").exists(), list(Path(folder).iterdir())


main(sys.argv[1])
