# SPDX-License-Identifier: Apache-2.0
"""Enzyme classes with adapters: the small factors are multiplied out to a full matrix in each layer and step.

Source: https://github.com/Stability-AI/stable-audio-3/pull/69, https://github.com/huggingface/peft/pull/1474
"""

import torch
from torch import nn

RESIDUES = 21
CLASSES = 7
LENGTH = 48
BATCH = 3
WIDTH = 320
HEADS = 8
RANK = 4
STEPS = 16


class AdaptedLinear(nn.Module):
    """A frozen layer of the trained encoder with a low-rank addition that is learned."""

    def __init__(self, inputs, outputs, alpha=8.0):
        super().__init__()
        weight = torch.empty(outputs, inputs)
        nn.init.xavier_uniform_(weight)
        self.register_buffer("weight", weight)
        self.down = nn.Parameter(torch.randn(RANK, inputs) / inputs**0.5)
        self.up = nn.Parameter(torch.zeros(outputs, RANK))
        self.scale = alpha / RANK

    def forward(self, x):
        adapted = self.weight + self.scale * (self.up @ self.down)  # planted
        return nn.functional.linear(x, adapted)  # planted


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first_norm = nn.LayerNorm(WIDTH, elementwise_affine=False)
        self.second_norm = nn.LayerNorm(WIDTH, elementwise_affine=False)
        self.mix = AdaptedLinear(WIDTH, 3 * WIDTH)
        self.leave = AdaptedLinear(WIDTH, WIDTH)
        self.wide = AdaptedLinear(WIDTH, 4 * WIDTH)
        self.narrow = AdaptedLinear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        mixed = self.mix(self.first_norm(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = mixed.permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(query, key, value)
        x = x + self.leave(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.narrow(nn.functional.gelu(self.wide(self.second_norm(x))))


class EnzymeModel(nn.Module):
    def __init__(self, layers=3):
        super().__init__()
        self.register_buffer("residue", 0.5 * torch.randn(RESIDUES, WIDTH))
        self.register_buffer("place", 0.1 * torch.randn(LENGTH, WIDTH))
        self.layers = nn.Sequential(*[EncoderLayer() for _ in range(layers)])
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, chain):
        x = self.residue[chain] + self.place
        return self.head(self.layers(x).mean(dim=1))


def draw_enzymes(motifs, generator):
    """Random chains with the motif of their class set in twice."""
    label = torch.randint(0, CLASSES, (BATCH,), generator=generator)
    chain = torch.randint(0, RESIDUES, (BATCH, LENGTH), generator=generator)
    for start in torch.randint(0, LENGTH // 2 - 6, (2,), generator=generator).tolist():
        chain[:, start : start + 6] = motifs[label]
    return chain, label


def main():
    generator = torch.Generator().manual_seed(43)
    torch.manual_seed(43)
    motifs = torch.randint(0, RESIDUES, (CLASSES, 6), generator=generator)
    model = EnzymeModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for step in range(STEPS):
        chain, label = draw_enzymes(motifs, generator)
        loss = nn.functional.cross_entropy(model(chain), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"enzymes: loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
