# SPDX-License-Identifier: Apache-2.0
"""Batch headline generation for a news desk with a recurrent decoder.

Every batch of article vectors is decoded by temperature sampling; a headline
is over at its end token and is cut there before it is scored.
"""

import time

import torch
from torch import nn

torch.manual_seed(8)

VOCAB, END, START = 8000, 1, 2
WIDTH, ARTICLE = 384, 256
LONGEST = 120
DESK = 12


class HeadlineDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, WIDTH)
        self.lower = nn.GRUCell(WIDTH + ARTICLE, WIDTH)
        self.upper = nn.GRUCell(WIDTH, WIDTH)
        self.begin = nn.Linear(ARTICLE, 2 * WIDTH)
        self.out = nn.Linear(WIDTH, VOCAB)
        with torch.no_grad():
            self.out.bias[END] = 5.6

    def prepare(self, article):
        return torch.tanh(self.begin(article)).chunk(2, dim=-1)

    def forward(self, token, article, state):
        low, high = state
        low = self.lower(torch.cat([self.words(token), article], dim=-1), low)
        high = self.upper(low, high)
        return self.out(high), (low, high)


class Writer:
    def __init__(self, decoder, temperature=0.9):
        self.decoder = decoder.eval()
        self.temperature = temperature

    @torch.inference_mode()
    def write(self, articles, generator):
        count = len(articles)
        token = torch.full((count,), START)
        over = torch.zeros(count, dtype=torch.bool)
        state = self.decoder.prepare(articles)
        steps = []
        while len(steps) < LONGEST:  # planted
            logits, state = self.decoder(token, articles, state)
            chance = torch.softmax(logits / self.temperature, dim=-1)
            token = torch.multinomial(chance, 1, generator=generator).squeeze(1)
            token = token.masked_fill(over, END)
            over = over | (token == END)
            steps.append(token)
        return torch.stack(steps, dim=1)


def cut(rows):
    """Token lists up to (not including) the end token."""
    headlines = []
    for row in rows.tolist():
        headlines.append(row[: row.index(END)] if END in row else row)
    return headlines


def summary(headlines):
    lengths = torch.tensor([len(h) for h in headlines], dtype=torch.float)
    distinct = len({word for h in headlines for word in h})
    return (
        f"{len(headlines)} headlines, mean length {lengths.mean():.2f}, "
        f"longest {int(lengths.max())}, {distinct} different words"
    )


def main():
    writer = Writer(HeadlineDecoder())
    inbox = torch.randn(12 * DESK, ARTICLE)
    generator = torch.Generator()
    written = []
    began = time.perf_counter()
    for number, articles in enumerate(inbox.split(DESK)):
        generator.manual_seed(100 + number)
        written += cut(writer.write(articles, generator))
        if number % 4 == 3:
            print(f"desk {number + 1}:", summary(written))
    ended = time.perf_counter()
    print(f"first headline: {written[0][:8]}")
    print(f"{(ended - began) / len(written) * 1e3:.1f} ms per headline")


if __name__ == "__main__":
    main()
