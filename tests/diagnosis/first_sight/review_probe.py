# SPDX-License-Identifier: Apache-2.0
"""Sentiment probe on top of a frozen sentence encoder."""

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, LENGTH, WIDTH, REVIEWS, EPOCHS = 6000, 32, 128, 640, 18


class SentenceEncoder(nn.Module):
    """Stands in for a pretrained checkpoint; its weights stay as they are."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, WIDTH)
        self.positions = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 3 * WIDTH, dropout=0.1, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, tokens):
        return self.layers(self.words(tokens) + self.positions).mean(dim=1)


def reviews(count, generator):
    labels = torch.randint(0, 2, (count,), generator=generator)
    neutral = torch.randint(0, VOCAB - 400, (count, LENGTH), generator=generator)
    opinion = VOCAB - 400 + 200 * labels.unsqueeze(1) + torch.randint(0, 200, (count, LENGTH), generator=generator)
    loaded = torch.rand(count, LENGTH, generator=generator) < 0.12
    return torch.where(loaded, opinion, neutral), labels


@torch.inference_mode()
def accuracy(encoder, probe, tokens, labels):
    probe.eval()
    correct = sum(
        (probe(encoder(part)).argmax(1) == truth).sum() for part, truth in zip(tokens.split(128), labels.split(128))
    )
    return correct.item() / len(labels)


def train_probe(encoder, probe, tokens, labels, generator):
    optimizer = torch.optim.AdamW(probe.parameters(), lr=2e-3, weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for epoch in range(EPOCHS):
        probe.train()
        total = torch.zeros(())
        for chosen in torch.randperm(len(tokens), generator=generator).split(32):
            with torch.no_grad():
                sentence = encoder(tokens[chosen])  # planted
            loss = F.cross_entropy(probe(sentence), labels[chosen])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(chosen)
        schedule.step()
        print(f"epoch {epoch}: loss {total.item() / len(tokens):.4f}")


def main():
    torch.manual_seed(70)
    generator = torch.Generator().manual_seed(71)
    encoder = SentenceEncoder().eval().requires_grad_(False)
    probe = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, 2))
    tokens, labels = reviews(REVIEWS, generator)
    test_tokens, test_labels = reviews(256, generator)
    train_probe(encoder, probe, tokens, labels, generator)
    print(f"test accuracy {accuracy(encoder, probe, test_tokens, test_labels):.4f}")


if __name__ == "__main__":
    main()
