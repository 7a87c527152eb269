# SPDX-License-Identifier: Apache-2.0
"""Land-cover classification of four-band satellite patches on two ranks."""

import os
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

CLASSES, BANDS, SIZE = 6, 4, 24


def patches(count, seed):
    g = torch.Generator().manual_seed(seed)
    cover = torch.randint(CLASSES, (count,), generator=g)
    signature = torch.randn(CLASSES, BANDS, generator=torch.Generator().manual_seed(99))
    texture = torch.randn(count, BANDS, SIZE, SIZE, generator=g)
    coarse = F.interpolate(torch.randn(count, 1, 6, 6, generator=g), size=SIZE, mode="bilinear")
    return 0.25 * signature[cover][:, :, None, None] + texture + coarse, cover


def backbone(width=24):
    return nn.Sequential(
        nn.Conv2d(BANDS, width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(2 * width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * width, CLASSES),
    )


def train_epoch(model, optimizer, images, cover, epoch, rank, world, batch=32):
    model.train()
    order = torch.randperm(len(cover), generator=torch.Generator().manual_seed(epoch))
    for rows in order[rank::world].split(batch):
        loss = F.cross_entropy(model(images[rows]), cover[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def validate(model, images, cover, rank, world, batch=128):
    """Accuracy per class, from counts summed over the ranks."""
    model.eval()
    net = model.module
    seen, right = torch.zeros(CLASSES), torch.zeros(CLASSES)
    mine = torch.arange(len(cover))  # planted
    for rows in mine.split(batch):
        truth = cover[rows]
        hit = net(images[rows]).argmax(dim=1) == truth
        seen += torch.bincount(truth, minlength=CLASSES)
        right += torch.bincount(truth[hit], minlength=CLASSES)
    tally = torch.stack([right, seen])
    dist.all_reduce(tally)
    return tally[0] / tally[1].clamp_min(1)


def work(rank, world, rendezvous):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=world)
    torch.manual_seed(40)
    images, cover = patches(640, seed=1)
    region_images, region_cover = patches(2560, seed=2)
    model = DistributedDataParallel(backbone())
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    start = time.perf_counter()
    for epoch in range(8):
        train_epoch(model, optimizer, images, cover, epoch, rank, world)
        per_class = validate(model, region_images, region_cover, rank, world)
        if rank == 0:
            worst = int(per_class.argmin())
            print(f"epoch {epoch}: accuracy {per_class.mean().item():.4f}, weakest class {worst}", flush=True)
    if rank == 0:
        print(f"{world} ranks trained in {time.perf_counter() - start:.1f} s", flush=True)
    dist.destroy_process_group()


def main(world=2):
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, args=(world, os.path.join(folder, "meet")), nprocs=world)


if __name__ == "__main__":
    main()
