# SPDX-License-Identifier: Apache-2.0
"""Speech recognition: a collate function pads every batch to the longest utterance of the corpus.

Source: advice of Hugging Face's course on dynamic padding; merged changes such as "trim unnecessary padding chars".
"""

import torch
from torch import nn
from torch.utils.data import DataLoader

LONGEST = 600
torch.manual_seed(0)
corpus = [(torch.randn(int(n), 40), int(n)) for n in torch.randint(30, 90, (320,))]


def collate(samples):
    batch = torch.zeros(len(samples), LONGEST, 40)  # planted
    for row, (features, length) in enumerate(samples):
        batch[row, :length] = features
    return batch, torch.tensor([n for _, n in samples])


encoder = nn.Sequential(
    nn.Conv1d(40, 128, 5, padding=2), nn.ReLU(), nn.Conv1d(128, 128, 5, padding=2), nn.ReLU(), nn.Conv1d(128, 32, 1)
)
optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-3)
for features, lengths in DataLoader(corpus, batch_size=16, shuffle=True, collate_fn=collate):
    logits = encoder(features.transpose(1, 2)).transpose(1, 2)
    mask = torch.arange(LONGEST)[None] < lengths[:, None]
    loss = (logits.log_softmax(-1)[..., 0] * mask).sum() / -lengths.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
