# SPDX-License-Identifier: Apache-2.0
"""Vision and language: a small two-tower model learns to match pictures of bird plumage with captions, then sorts a
stream of camera pictures by the names of species, without any training on them. Prints the accuracy."""

import torch
import torch.nn.functional as F
from torch import nn

COLOURS, PARTS, WORDS, LENGTH, DIM = 8, 3, 64, 12, 96
TEMPLATES = 4


class TextTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, DIM)
        self.places = nn.Parameter(torch.randn(LENGTH, DIM) * 0.05)
        layer = nn.TransformerEncoderLayer(DIM, 4, 2 * DIM, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, captions):
        return F.normalize(self.body(self.words(captions) + self.places).mean(1), dim=-1)


class PictureTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 32, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(64, DIM, 3, stride=2, padding=1), nn.ReLU(),
        )  # fmt: skip
        self.out = nn.Linear(DIM * 24, DIM)

    def forward(self, pictures):
        return F.normalize(self.out(self.body(pictures).flatten(1)), dim=-1)


def palette():
    return torch.rand(COLOURS, 3, generator=torch.Generator().manual_seed(7))


def plumage(kinds, colours, generator):
    """Three bands (head, breast, tail) in the colours of the kind; kinds is (n, PARTS)."""
    bands = colours[kinds].permute(0, 2, 1)
    picture = bands.repeat_interleave(16, 2)[..., None].expand(-1, -1, -1, 32)
    return picture + 0.1 * torch.randn(len(kinds), 3, 48, 32, generator=generator)


def caption(kinds, template):
    """Template words around the words of the three parts."""
    text = torch.full((len(kinds), LENGTH), 40) + (torch.arange(LENGTH) + template) % 20
    for part in range(PARTS):
        text[:, 2 + 3 * part] = kinds[:, part] + COLOURS * part
    return text


def train(text_tower, picture_tower, colours, generator, rounds=20):
    both = [*text_tower.parameters(), *picture_tower.parameters()]
    optimizer = torch.optim.Adam(both, lr=1e-3)
    for number in range(rounds):
        kinds = torch.randint(COLOURS, (48, PARTS), generator=generator)
        pictures = picture_tower(plumage(kinds, colours, generator))
        texts = text_tower(caption(kinds, number % TEMPLATES))
        logits = pictures @ texts.t() * 10
        target = torch.arange(len(kinds))
        loss = F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def class_vectors(text_tower, species):
    """Mean of the caption vectors over the templates, one row per species."""
    vectors = [text_tower(caption(species, template)) for template in range(TEMPLATES)]
    return F.normalize(torch.stack(vectors).mean(0), dim=-1)


def main():
    torch.manual_seed(130)
    generator = torch.Generator().manual_seed(131)
    colours = palette()
    text_tower, picture_tower = TextTower(), PictureTower()
    loss = train(text_tower, picture_tower, colours, generator)
    text_tower.eval(), picture_tower.eval()
    species = torch.randint(COLOURS, (36, PARTS), generator=generator)
    hits = 0
    with torch.no_grad():
        for frame in range(60):
            truth = torch.randint(len(species), (96,), generator=generator)
            pictures = plumage(species[truth], colours, generator)
            classes = class_vectors(text_tower, species)  # planted
            guess = (picture_tower(pictures) @ classes.t()).argmax(1)
            hits += (guess == truth).sum().item()
    print(f"matching loss {loss:.2f}, accuracy {hits / (60 * 96):.3f}")


if __name__ == "__main__":
    main()
