# SPDX-License-Identifier: Apache-2.0
"""Phoneme recogniser: convolutional front end + GRU, CTC loss, error rate per epoch."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

N_PHONES, N_MELS, FRAMES, LENGTH = 20, 40, 160, 12


def synthesize(n, seed):
    g = torch.Generator().manual_seed(seed)
    prototypes = torch.randn(N_PHONES + 1, N_MELS, generator=torch.Generator().manual_seed(9))
    phones = torch.randint(1, N_PHONES + 1, (n, LENGTH), generator=g)
    stretched = phones.repeat_interleave(FRAMES // LENGTH, dim=1)
    stretched = torch.nn.functional.pad(stretched, (0, FRAMES - stretched.shape[1]))
    mels = prototypes[stretched] + 0.6 * torch.randn(n, FRAMES, N_MELS, generator=g)
    return TensorDataset(mels, phones)


class Recogniser(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(N_MELS, hidden, 5, padding=2),
            nn.ReLU(inplace=True),
            nn.Conv1d(hidden, hidden, 5, padding=2),
            nn.ReLU(inplace=True),
        )
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, N_PHONES + 1)

    def forward(self, mels):
        x = self.front(mels.transpose(1, 2)).transpose(1, 2)
        return self.out(self.rnn(x)[0]).log_softmax(dim=-1)


def collapse(path):
    """Remove repeats, then blanks (symbol 0)."""
    out, previous = [], 0
    for symbol in path:
        if symbol != previous and symbol != 0:
            out.append(int(symbol))
        previous = symbol
    return out


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


@torch.inference_mode()
def phone_error_rate(model, loader):
    model.eval()
    errors = total = 0
    for mels, phones in loader:
        paths = model(mels).argmax(dim=-1)  # planted
        for path, reference in zip(paths, phones.tolist()):
            errors += edit_distance(collapse(path), reference)
            total += len(reference)
    return errors / total


def train_epoch(model, loader, optimizer, ctc):
    model.train()
    running = torch.zeros(())
    for mels, phones in loader:
        log_probs = model(mels).transpose(0, 1)
        frames = torch.full((len(mels),), log_probs.shape[0])
        lengths = torch.full((len(mels),), phones.shape[1])
        loss = ctc(log_probs, phones, frames, lengths)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        running += loss.detach()
    return (running / len(loader)).item()


def main(epochs=10):
    torch.manual_seed(0)
    train = DataLoader(synthesize(192, seed=1), batch_size=16, shuffle=True)
    valid = DataLoader(synthesize(576, seed=2), batch_size=96)
    model = Recogniser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    ctc = nn.CTCLoss(blank=0, zero_infinity=True)
    start = time.perf_counter()
    for epoch in range(epochs):
        loss = train_epoch(model, train, optimizer, ctc)
        per = phone_error_rate(model, valid)
        print(f"epoch {epoch}: loss {loss:.4f}  PER {per:.4f}")
    print(f"loop {time.perf_counter() - start:.2f}s")


if __name__ == "__main__":
    main()
