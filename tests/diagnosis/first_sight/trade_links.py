# SPDX-License-Identifier: Apache-2.0
"""Missing links between firms: with a large register in memory, rubbish is collected after each batch.

Source: https://github.com/huggingface/peft/pull/2894, https://github.com/invoke-ai/InvokeAI/pull/5034
"""

import gc
import random

import torch
from torch import nn

FIRMS = 30000
KINDS = ("supplies", "owns", "insures", "lends")
WIDTH = 48
BATCH = 4096
REFUSED = 4
STEPS = 20
REGIONS = ("north", "east", "south", "west")


class Firm:
    """An entry of the register, with the firms it deals with."""

    def __init__(self, number, region):
        self.number = number
        self.name = f"firm {number:05d}"
        self.region = region
        self.links = []


def read_register(seed):
    """All firms, and their links in the order in which they were entered."""
    draw = random.Random(seed)
    firms = [Firm(number, draw.choice(REGIONS)) for number in range(FIRMS)]
    for firm in firms:
        for _ in range(4):
            other = (firm.number + draw.randrange(1, 400)) % FIRMS
            firm.links.append({"kind": draw.randrange(len(KINDS)), "to": other})
    return firms


def link_table(firms):
    rows = [(firm.number, link["kind"], link["to"]) for firm in firms for link in firm.links]
    return torch.tensor(rows)


class LinkModel(nn.Module):
    """Firms as points; a kind of link moves and stretches them."""

    def __init__(self):
        super().__init__()
        self.firm = nn.Embedding(FIRMS, WIDTH, sparse=True)
        self.move = nn.Embedding(len(KINDS), WIDTH)
        self.stretch = nn.Embedding(len(KINDS), WIDTH)
        nn.init.normal_(self.firm.weight, std=0.1)

    def forward(self, start, kind, end):
        moved = self.firm(start) * (1 + self.stretch(kind)) + self.move(kind)
        return 4.0 - (moved.unsqueeze(1) - self.firm(end)).abs().sum(dim=-1)


def ranking_loss(scores):
    """The first column holds the links that exist."""
    true, false = scores[:, :1], scores[:, 1:]
    return nn.functional.softplus(-true).mean() + nn.functional.softplus(false).mean()


def most_linked(firms):
    return max(firms, key=lambda firm: len(firm.links)).name


def main():
    generator = torch.Generator().manual_seed(79)
    torch.manual_seed(79)
    firms = read_register(79)
    table = link_table(firms)
    model = LinkModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(STEPS):
        rows = table[torch.randint(0, len(table), (BATCH,), generator=generator)]
        wrong = torch.randint(0, FIRMS, (BATCH, REFUSED), generator=generator)
        ends = torch.cat([rows[:, 2:], wrong], dim=1)
        loss = ranking_loss(model(rows[:, 0], rows[:, 1], ends))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        gc.collect()  # planted
    print(f"links: loss {loss.item():.6f}, most linked {most_linked(firms)}")


if __name__ == "__main__":
    main()
