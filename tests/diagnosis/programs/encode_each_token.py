# SPDX-License-Identifier: Apache-2.0
"""A decoder that has its source encoded again for each token."""

import torch
from torch import nn

RULE = "repeated-work"


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(500, 64)
        self.enc = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2, enable_nested_tensor=False
        )
        self.q, self.out = nn.Linear(64, 64), nn.Linear(64, 500)

    def encode(self, src):
        return self.enc(self.emb(src))

    def decode(self, memory, last):
        h = self.q(self.emb(last))
        h = h + nn.functional.scaled_dot_product_attention(h, memory, memory)
        return self.out(h)


def build(fixed):
    model = Model().eval()
    src = torch.randint(0, 500, (4, 48))

    @torch.inference_mode()
    def step():
        memory = model.encode(src)
        last = torch.zeros(4, 1, dtype=torch.long)
        for _ in range(10):
            if not fixed:
                memory = model.encode(src)  # planted
            last = model.decode(memory, last)[:, -1].argmax(-1, keepdim=True)
        return last

    return step
