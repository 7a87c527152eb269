# SPDX-License-Identifier: Apache-2.0
"""Text: an LSTM cell is called for each character and layer from Python.

Source: PyTorch's documentation of nn.LSTM and cuDNN; DLPerf, API misuse.
"""

import torch
from torch import nn

torch.manual_seed(0)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(90, 64)
        self.cell = nn.LSTMCell(64, 128)
        self.head = nn.Linear(128, 90)

    def forward(self, text):
        state = None
        hidden = []
        for t in range(text.shape[1]):
            state = self.cell(self.embed(text[:, t]), state)  # planted
            hidden.append(state[0])
        return self.head(torch.stack(hidden, 1))


model = Reader()
optimizer = torch.optim.Adam(model.parameters())
for step in range(8):
    text = torch.randint(0, 90, (8, 101))
    loss = nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
