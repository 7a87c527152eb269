# SPDX-License-Identifier: Apache-2.0
"""Evaluates a language model: scores of all words are kept to the end, where the largest at each position is taken.

Source: merged huggingface/transformers pull request 15473 (preprocess_logits_for_metrics), issue 15466.
"""

import torch
from torch import nn


class LanguageModel(nn.Module):
    def __init__(self, words=6000, width=192, layers=3, length=64):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(0.02 * torch.randn(length, width))
        layer = nn.TransformerEncoderLayer(width, 6, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.scores = nn.Linear(width, words)
        self.register_buffer("causal", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, tokens):
        return self.scores(self.layers(self.words(tokens) + self.places, mask=self.causal, is_causal=True))


class Evaluation:
    """Collects predictions and labels over batches, then calls the metrics."""

    def __init__(self, model, metrics):
        self.model, self.metrics = model, metrics
        self.predictions, self.labels = None, None

    def gather(self, kept, new):
        return new if kept is None else torch.cat([kept, new])  # planted

    @torch.inference_mode()
    def run(self, batches):
        self.model.eval()
        for tokens, labels in batches:
            predictions = self.model(tokens)  # planted
            self.predictions = self.gather(self.predictions, predictions)
            self.labels = self.gather(self.labels, labels)
        return {name: metric(self.predictions, self.labels) for name, metric in self.metrics.items()}


def accuracy(predictions, labels):
    return (predictions.argmax(-1) == labels).float().mean().item()


def held_out(batches=20, size=8, words=6000, length=64):
    for _ in range(batches):
        text = torch.randint(0, words, (size, length + 1))
        yield text[:, :-1], text[:, 1:]


torch.manual_seed(0)
print(Evaluation(LanguageModel(), {"accuracy": accuracy}).run(held_out()))
