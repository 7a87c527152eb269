# SPDX-License-Identifier: Apache-2.0
"""Music transcription: tensors are made to text for a log whose level is off.

Source: Python logging manual (arguments are formatted lazily, f-strings are not), pytorch forum on slow print of tensors.
"""

import logging

import torch
from torch import nn

torch.manual_seed(0)
log = logging.getLogger("transcription")


class Transcriber(nn.Module):
    def __init__(self):
        super().__init__()
        self.listen = nn.GRU(64, 96, batch_first=True)
        self.notes = nn.Linear(96, 88)

    def forward(self, spectrum):
        heard, _ = self.listen(spectrum)
        notes = self.notes(heard)
        log.debug(f"heard {heard} as {notes}")  # planted
        return notes


model = Transcriber()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(15):
    spectrum, played = torch.randn(4, 20, 64), torch.rand(4, 20, 88).round()
    loss = nn.functional.binary_cross_entropy_with_logits(model(spectrum), played)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
