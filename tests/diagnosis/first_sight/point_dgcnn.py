# SPDX-License-Identifier: Apache-2.0
"""Point clouds: a dynamic graph network classifies solids. Every layer looks for the nearest neighbours again, since
they are neighbours in the features of that layer. Shapes come from point_dgcnn_shapes. Prints loss and accuracy."""

import torch
import torch.nn.functional as F
from point_dgcnn_shapes import KINDS, solids
from torch import nn

POINTS, NEAR, BATCH, STEPS = 256, 12, 16, 30


def neighbours(x):
    """Numbers of the NEAR closest points in feature space, (batch, points, NEAR)."""
    with torch.no_grad():
        norm = x.square().sum(-1)
        # the own norm shifts a whole row and does not change the order
        nearness = torch.baddbmm(norm[:, None], x, x.mT, beta=-1, alpha=2)
        return nearness.topk(NEAR, dim=-1, sorted=False).indices


class EdgeLayer(nn.Module):
    """relu(A x_i + mean of B x_j over the neighbours j); A and B act on points, before the gather over edges."""

    def __init__(self, inside, outside):
        super().__init__()
        self.own = nn.Linear(inside, outside)
        self.other = nn.Linear(inside, outside, bias=False)

    def forward(self, x):
        batch, points, _ = x.shape
        near = neighbours(x)
        rows = (near + torch.arange(batch).view(-1, 1, 1) * points).flatten()
        starts = torch.arange(0, rows.numel(), NEAR)
        other = F.embedding_bag(rows, self.other(x).flatten(0, 1), starts, mode="mean")
        return F.relu(self.own(x) + other.view(batch, points, -1))


class DynamicGraphNet(nn.Module):
    def __init__(self, widths=(48, 64, 96)):
        super().__init__()
        self.layers = nn.ModuleList(EdgeLayer(a, b) for a, b in zip((3, *widths), widths))
        self.mix = nn.Sequential(nn.Linear(sum(widths), 256), nn.ReLU())
        self.head = nn.Linear(256, KINDS)

    def forward(self, cloud):
        x, seen = cloud, []
        for layer in self.layers:
            x = layer(x)
            seen.append(x)
        return self.head(self.mix(torch.cat(seen, -1)).amax(1))


def main():
    torch.manual_seed(220)
    generator = torch.Generator().manual_seed(221)
    model = DynamicGraphNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    losses, hits = [], []
    for step in range(STEPS):
        cloud, kind = solids(BATCH, POINTS, generator)
        logits = model(cloud)
        loss = F.cross_entropy(logits, kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        hits.append((logits.argmax(1) == kind).float().mean().item())
    print(f"loss {sum(losses[-5:]) / 5:.3f}, accuracy {sum(hits[-8:]) / 8:.2f}")


if __name__ == "__main__":
    main()
