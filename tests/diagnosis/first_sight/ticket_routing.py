# SPDX-License-Identifier: Apache-2.0
"""Route customer tickets to one of 14 teams with a small transformer encoder."""

import random
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, Sampler

VOCAB, MAX_LEN, N_TEAMS = 4000, 192, 14
BATCH, EPOCHS, N_TICKETS = 32, 2, 900


class Tickets(Dataset):
    def __init__(self, n, seed):
        gen = torch.Generator().manual_seed(seed)
        lengths = torch.randn(n, generator=gen).mul_(0.55).add_(3.7).exp_().long().clamp_(6, MAX_LEN)
        self.team = torch.randint(N_TEAMS, (n,), generator=gen)
        self.tokens = []
        for length, team in zip(lengths.tolist(), self.team.tolist()):
            words = torch.randint(1, VOCAB, (length,), generator=gen)
            jargon = torch.rand(length, generator=gen) < 0.15
            words[jargon] = 1 + team * 20 + words[jargon] % 20
            self.tokens.append(words)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return self.tokens[index], self.team[index]


class LengthBatches(Sampler):
    """Batches of tickets of similar length, in random order."""

    def __init__(self, lengths, batch_size, seed):
        self.lengths, self.batch_size = lengths, batch_size
        self.random = random.Random(seed)

    def __len__(self):
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self):
        order = list(range(len(self.lengths)))
        self.random.shuffle(order)
        order.sort(key=lambda i: self.lengths[i])
        batches = [order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)]
        self.random.shuffle(batches)
        return iter(batches)


def collate(samples):
    tokens, teams = zip(*samples)
    ids = torch.zeros(len(tokens), MAX_LEN, dtype=torch.long)  # planted
    for row, words in zip(ids, tokens):
        row[: len(words)] = words
    return ids, torch.stack(teams)


class Router(nn.Module):
    def __init__(self, width=96, heads=4, layers=2):
        super().__init__()
        self.word = nn.Embedding(VOCAB, width, padding_idx=0)
        self.place = nn.Parameter(0.02 * torch.randn(MAX_LEN, width))
        layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.team = nn.Linear(width, N_TEAMS)

    def forward(self, ids):
        padding = ids == 0
        hidden = self.word(ids) + self.place[: ids.shape[1]]
        hidden = self.encoder(hidden, src_key_padding_mask=padding)
        keep = (~padding).unsqueeze(2).float()
        return self.team((hidden * keep).sum(1) / keep.sum(1))


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)

    def epoch(self, loader):
        self.model.train()
        total = torch.zeros(())
        for ids, team in loader:
            loss = F.cross_entropy(self.model(ids), team)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
        return total.item() / len(loader)

    @torch.inference_mode()
    def accuracy(self, loader):
        self.model.eval()
        hits = sum((self.model(ids).argmax(1) == team).sum().item() for ids, team in loader)
        return hits / len(loader.dataset)


def make_loader(data, seed):
    batches = LengthBatches([len(words) for words in data.tokens], BATCH, seed)
    return DataLoader(data, batch_sampler=batches, collate_fn=collate)


def main():
    torch.manual_seed(0)
    train, held = make_loader(Tickets(N_TICKETS, 1), 11), make_loader(Tickets(192, 2), 12)
    trainer = Trainer(Router(), lr=2e-3)
    started = time.perf_counter()
    for epoch in range(EPOCHS):
        loss = trainer.epoch(train)
        print(f"epoch {epoch}  loss {loss:.4f}  accuracy {trainer.accuracy(held):.3f}")
    print(f"{EPOCHS * len(train)} updates in {time.perf_counter() - started:.2f} s")


if __name__ == "__main__":
    main()
