# SPDX-License-Identifier: Apache-2.0
"""Serving: an album service sends groups of photos to a tagging model that lives in its own thread. The service
prepares the next group, hands it over and waits for the tags. Prints how the tags are spread."""

import queue
import threading
import time

import torch
from torch import nn

TAGS = 20
REQUESTS = 80


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 24, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(48, 96, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )  # fmt: skip
        self.tags = nn.Linear(96, TAGS)

    def forward(self, photos):
        return self.tags(self.features(photos)).sigmoid()


class Job:
    def __init__(self, photos):
        self.photos = photos
        self.tags = None
        self.done = threading.Event()


class TaggingWorker(threading.Thread):
    """Takes one job after the other from the inbox, in the order of arrival."""

    def __init__(self, model, poll=0.05):
        super().__init__(daemon=True)
        self.model, self.poll = model.eval(), poll
        self.inbox = queue.Queue()

    def run(self):
        with torch.inference_mode():
            while True:
                while self.inbox.empty():  # planted
                    time.sleep(self.poll)  # planted
                job = self.inbox.get()
                if job is None:
                    return
                job.tags = self.model(job.photos)
                job.done.set()

    def submit(self, photos):
        job = Job(photos)
        self.inbox.put(job)
        return job


def prepare(generator, group):
    """Photos arrive as bytes: scale, flip at random, normalise by the mean of the photo."""
    raw = torch.randint(0, 256, (6, 3, 96, 96), generator=generator, dtype=torch.uint8)
    photos = raw.float() / 255
    photos[:, group % 3] *= 1.5
    if group % 2:
        photos = photos.flip(-1)
    return photos - photos.mean((2, 3), keepdim=True) + photos.mean((1, 2, 3), keepdim=True)


def main():
    torch.manual_seed(30)
    generator = torch.Generator().manual_seed(31)
    worker = TaggingWorker(Tagger())
    worker.start()
    total = torch.zeros(TAGS)
    for group in range(REQUESTS):
        photos = prepare(generator, group)
        job = worker.submit(photos)
        job.done.wait()
        total += job.tags.mean(0)
    worker.inbox.put(None)
    worker.join()
    mean = total / REQUESTS
    print(f"mean tag {mean.mean():.4f}, lowest {mean.min():.4f}, highest {mean.max():.4f}")


if __name__ == "__main__":
    main()
