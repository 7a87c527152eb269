# SPDX-License-Identifier: Apache-2.0
"""Music: a recurrent network learns folk melodies with scheduled sampling, that is, it often continues from the
note that it guessed itself instead of the true note. Prints the loss."""

import torch
import torch.nn.functional as F
from torch import nn

NOTES, LENGTH, BATCH, STEPS = 64, 48, 96, 34


def melodies(generator):
    """Walks over the steps of a scale with a return to the first note at the end of every bar of 8 notes."""
    home = torch.randint(20, 44, (BATCH, 1), generator=generator)
    moves = torch.tensor([-2, -1, 0, 1, 2])[torch.randint(5, (BATCH, LENGTH), generator=generator)]
    walk = home + moves.cumsum(1)
    bar = torch.arange(LENGTH) % 8 == 0
    tune = torch.where(bar, home, walk).clamp(0, NOTES - 1)
    spread = moves.abs().float().mean(1)
    style = torch.stack([home.squeeze(1) / NOTES, spread, torch.rand(BATCH, generator=generator)], 1)
    return tune, style


class Fiddler(nn.Module):
    def __init__(self, dim=256):
        super().__init__()
        self.notes = nn.Embedding(NOTES, dim)
        self.beats = nn.Embedding(8, dim)
        self.theme = nn.Linear(3, dim)
        self.cell = nn.GRUCell(dim, dim)
        self.out = nn.Linear(dim, NOTES)

    def forward(self, tune, style, truth_share, generator):
        state = torch.zeros(len(tune), self.cell.hidden_size)
        note, theme = tune[:, 0], self.theme(style)
        scores = []
        # the next input depends on the note drawn from the last output: one place at a time
        for at in range(tune.size(1) - 1):
            heard = torch.tanh(self.notes(note) + self.beats.weight[at % 8] + theme)
            state = self.cell(heard, state)
            score = self.out(state)
            scores.append(score)
            own = torch.multinomial(score.detach().softmax(-1), 1, generator=generator).squeeze(1)
            teach = torch.rand(len(tune), generator=generator) < truth_share
            note = torch.where(teach, tune[:, at + 1], own)
        return torch.stack(scores, 1)


def main():
    torch.manual_seed(200)
    generator = torch.Generator().manual_seed(201)
    model = Fiddler()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for step in range(STEPS):
        tune, style = melodies(generator)
        scores = model(tune, style, 1 - 0.5 * step / STEPS, generator)
        loss = F.cross_entropy(scores.flatten(0, 1), tune[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    print(f"loss {losses[0]:.3f} at the start, {sum(losses[-5:]) / 5:.3f} at the end")


if __name__ == "__main__":
    main()
