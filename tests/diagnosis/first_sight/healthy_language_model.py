# SPDX-License-Identifier: Apache-2.0
"""A small language model with fused attention and one output layer for all positions, all of which are trained on."""

import torch
from torch import nn

torch.manual_seed(0)
embed = nn.Embedding(2000, 128)
body = nn.TransformerEncoder(nn.TransformerEncoderLayer(128, 4, 512, 0.0, batch_first=True, norm_first=True), 2)
head = nn.Linear(128, 2000)
mask = nn.Transformer.generate_square_subsequent_mask(64)
optimizer = torch.optim.AdamW([*embed.parameters(), *body.parameters(), *head.parameters()])
for step in range(12):
    text = torch.randint(0, 2000, (8, 65))
    logits = head(body(embed(text[:, :-1]), mask=mask, is_causal=True))
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
