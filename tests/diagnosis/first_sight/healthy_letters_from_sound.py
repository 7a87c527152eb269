# SPDX-License-Identifier: Apache-2.0
"""Speech to letters: a GRU in one call, CTC loss, and utterances that are padded to their batch."""

import torch
from torch import nn

torch.manual_seed(0)


class Writer(nn.Module):
    def __init__(self, letters=28, width=128):
        super().__init__()
        self.enter = nn.Conv1d(40, width, 5, stride=2, padding=2)
        self.recurrent = nn.GRU(width, width, num_layers=2, batch_first=True)
        self.leave = nn.Linear(width, letters + 1)

    def forward(self, frames):
        hidden = torch.relu(self.enter(frames.transpose(1, 2))).transpose(1, 2)
        return self.leave(self.recurrent(hidden)[0]).log_softmax(-1)


lengths = torch.randint(180, 200, (160,)).sort().values
model = Writer()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
for batch in lengths.split(8):
    frames = torch.randn(8, int(batch.max()), 40)
    letters = torch.randint(1, 29, (8, 20))
    chances = model(frames).transpose(0, 1)
    loss = nn.functional.ctc_loss(chances, letters, (batch + 1) // 2, torch.full((8,), 20))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
print(f"loss {loss.item():.3f}")
