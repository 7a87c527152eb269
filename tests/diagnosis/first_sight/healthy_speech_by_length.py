# SPDX-License-Identifier: Apache-2.0
"""Keywords: utterances of like length share a batch, so that next to nothing is padded, and the rest is masked."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(9)
utterances = sorted((torch.randn(int(n), 40) for n in torch.randint(60, 240, (192,))), key=len)
words = torch.randint(35, (192,))


class Spotter(nn.Module):
    def __init__(self):
        super().__init__()
        self.frames = nn.Sequential(
            nn.Conv1d(40, 128, 9, padding=4), nn.ReLU(), nn.Conv1d(128, 128, 9, padding=4), nn.ReLU()
        )
        self.word = nn.Linear(128, 35)

    def forward(self, x, lengths):
        valid = torch.arange(x.shape[1])[None] < lengths[:, None]
        h = self.frames(x.transpose(1, 2)) * valid[:, None]
        return self.word(h.sum(2) / lengths[:, None])


spotter = Spotter()
optimizer = torch.optim.AdamW(spotter.parameters(), lr=1e-3, foreach=True)
for epoch in range(2):
    for start in range(0, 192, 24):
        part = utterances[start : start + 24]
        batch, lengths = pad_sequence(part, batch_first=True), torch.tensor([len(u) for u in part])
        loss = nn.functional.cross_entropy(spotter(batch, lengths), words[start : start + 24])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
