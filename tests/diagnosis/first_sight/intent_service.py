# SPDX-License-Identifier: Apache-2.0
"""In-process intent-classification service fed by simulated client threads."""

import queue
import threading
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

VOCAB, INTENTS = 20_000, 64


@dataclass
class ServiceConfig:
    max_batch: int = 1  # planted
    linger_seconds: float = 0.002
    hidden: int = 1024


class IntentModel(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.words = nn.EmbeddingBag(VOCAB, 256, mode="mean")
        self.layers = nn.Sequential(
            nn.Linear(256, hidden),
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, INTENTS),
        )

    def forward(self, tokens, offsets):
        return self.layers(self.words(tokens, offsets)).softmax(dim=1)


class IntentService(threading.Thread):
    def __init__(self, config):
        super().__init__(daemon=True)
        self.config = config
        self.model = IntentModel(config.hidden).eval()
        self.requests = queue.Queue()
        self.batches = 0

    def submit(self, tokens):
        reply = Future()
        self.requests.put((tokens, reply))
        return reply

    def collect(self):
        batch = [self.requests.get()]
        while len(batch) < self.config.max_batch and batch[-1] is not None:
            try:
                batch.append(self.requests.get(timeout=self.config.linger_seconds))
            except queue.Empty:
                break
        return batch

    @torch.inference_mode()
    def run(self):
        running = True
        while running:
            batch = self.collect()
            running = batch[-1] is not None
            batch = [request for request in batch if request is not None]
            if not batch:
                continue
            sizes = np.array([0] + [len(tokens) for tokens, _ in batch[:-1]])
            tokens = torch.from_numpy(np.concatenate([tokens for tokens, _ in batch]))
            scores, labels = self.model(tokens, torch.from_numpy(sizes.cumsum())).max(dim=1)
            for (_, reply), score, label in zip(batch, scores.tolist(), labels.tolist()):
                reply.set_result((label, score))
            self.batches += 1


def client(service, seed, bursts, answers):
    rng = np.random.default_rng(seed)
    for _ in range(bursts):
        pending = [service.submit(rng.integers(0, VOCAB, size=rng.integers(4, 30))) for _ in range(32)]
        answers.extend(reply.result() for reply in pending)


def main():
    torch.manual_seed(1)
    service = IntentService(ServiceConfig())
    service.start()
    answers = [[] for _ in range(4)]
    clients = [threading.Thread(target=client, args=(service, seed, 100, answers[seed])) for seed in range(4)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    service.requests.put(None)
    service.join()
    scores = torch.tensor([score for one in answers for _, score in one])
    labels = torch.tensor([label for one in answers for label, _ in one])
    print(
        f"{len(scores)} requests in {service.batches} model calls, mean confidence {scores.mean().item():.5f}, "
        f"label checksum {labels.sum().item()}"
    )


if __name__ == "__main__":
    main()
