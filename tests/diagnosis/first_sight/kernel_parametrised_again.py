# SPDX-License-Identifier: Apache-2.0
"""Copy task with an orthogonal recurrent kernel, which is computed from its parameter again at each moment.

Source: PyTorch's documentation of torch.nn.utils.parametrize.cached.
"""

import torch
from torch import nn
from torch.nn.utils import parametrizations


class OrthogonalCell(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.enter = nn.Linear(inputs, width)
        self.recur = parametrizations.orthogonal(nn.Linear(width, width, bias=False))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, moment, state):
        mixed = self.enter(moment) + self.recur(state)  # planted
        return mixed.sign() * (mixed.abs() + self.bias).relu()


class CopyNet(nn.Module):
    def __init__(self, symbols=10, width=128):
        super().__init__()
        self.symbols, self.width = symbols, width
        self.cell = OrthogonalCell(symbols, width)
        self.answer = nn.Linear(width, symbols)

    def forward(self, sequence):
        state = sequence.new_zeros(sequence.shape[1], self.width)
        states = []
        for moment in sequence:
            state = self.cell(moment, state)
            states.append(state)
        return self.answer(torch.stack(states[-10:]))


def copy_task(batch, blank=30, symbols=10):
    told = torch.randint(1, symbols - 1, (10, batch))
    sequence = torch.cat([told, torch.zeros(blank, batch, dtype=torch.long)])
    return nn.functional.one_hot(sequence, symbols).float(), told


torch.manual_seed(0)
model = CopyNet()
optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-4)
for step in range(12):
    sequence, told = copy_task(128)
    answers = model(sequence)
    loss = nn.functional.cross_entropy(answers.flatten(0, 1), told.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
