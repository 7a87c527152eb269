# SPDX-License-Identifier: Apache-2.0
"""Joint recognition of mood and language from call-center recordings.

A convolutional spectrogram model with two classifiers, trained on synthetic
log-mel patches.
"""

import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

MELS, FRAMES = 40, 96
MOODS, LANGUAGES = 5, 7


def recordings(count, generator):
    mood = torch.randint(0, MOODS, (count,), generator=generator)
    language = torch.randint(0, LANGUAGES, (count,), generator=generator)
    mel = torch.arange(MELS)[None, :, None]
    frame = torch.arange(FRAMES)[None, None, :]
    rate = (mood + 1).view(-1, 1, 1) * 0.08
    band = (language + 1).view(-1, 1, 1) * 5.0
    patch = torch.sin(frame * rate) * torch.exp(-(((mel - band) / 4.0) ** 2))
    patch = patch + 0.3 * torch.randn(count, MELS, FRAMES, generator=generator)
    return TensorDataset(patch[:, None], mood, language)


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.GroupNorm(8, outputs),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
    )


class VoiceModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(block(1, 16), block(16, 32), block(32, 64))
        self.mood_head = nn.Sequential(nn.Linear(320, 64), nn.ReLU(), nn.Linear(64, MOODS))
        self.language_head = nn.Sequential(nn.Linear(320, 64), nn.ReLU(), nn.Linear(64, LANGUAGES))

    def embed(self, patch):
        return self.layers(patch).mean(dim=3).flatten(1)

    def mood(self, patch):
        return self.mood_head(self.embed(patch))

    def language(self, patch):
        return self.language_head(self.embed(patch))

    def forward(self, patch):
        return self.mood(patch), self.language(patch)  # planted


class Trainer:
    def __init__(self, model, train_set, test_set, batch_size=32):
        self.model = model
        order = torch.Generator().manual_seed(1)
        self.train_loader = DataLoader(train_set, batch_size, shuffle=True, generator=order)
        self.test_loader = DataLoader(test_set, 100)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)

    def loss(self, patch, mood, language):
        mood_logits, language_logits = self.model(patch)
        return F.cross_entropy(mood_logits, mood) + F.cross_entropy(language_logits, language)

    def epoch(self):
        self.model.train()
        total = 0.0
        for batch in self.train_loader:
            loss = self.loss(*batch)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.inference_mode()
    def accuracy(self):
        self.model.eval()
        hits = torch.zeros(2)
        for patch, mood, language in self.test_loader:
            mood_logits, language_logits = self.model(patch)
            hits[0] += (mood_logits.argmax(1) == mood).sum()
            hits[1] += (language_logits.argmax(1) == language).sum()
        return (hits / len(self.test_loader.dataset)).tolist()


def main():
    torch.manual_seed(2)
    generator = torch.Generator().manual_seed(9)
    trainer = Trainer(VoiceModel(), recordings(576, generator), recordings(200, generator))
    start = time.perf_counter()
    for epoch in range(4):
        loss = trainer.epoch()
        mood, language = trainer.accuracy()
        print(f"epoch {epoch + 1}: loss {loss:.2f}, mood {mood:.2f}, language {language:.2f}")
    print(f"trained in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
