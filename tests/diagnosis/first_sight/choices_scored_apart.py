# SPDX-License-Identifier: Apache-2.0
"""Evaluates a language model on questions with four answers of one token: the question is read once for each answer.

Source: merged EleutherAI/lm-evaluation-harness pull request 1425 ("Group reqs by context"), issue 1351.
"""

from typing import NamedTuple

import torch
from torch import nn


class Question(NamedTuple):
    tokens: torch.Tensor
    answers: list[int]
    right: int


class Reader(nn.Module):
    def __init__(self, words=8000, width=256, layers=4, longest=512):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(longest, width)
        layer = nn.TransformerEncoderLayer(width, 8, 3 * width, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.scores = nn.Linear(width, words)

    def next_word(self, tokens):
        hidden = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        hidden = self.layers(hidden, mask=mask, is_causal=True)
        return self.scores(hidden[:, -1]).log_softmax(-1)


class Harness:
    def __init__(self, model):
        self.model = model.eval()

    def likelihood(self, tokens, answer):
        return self.model.next_word(tokens[None])[0, answer]  # planted

    def choose(self, question):
        scores = [self.likelihood(question.tokens, answer) for answer in question.answers]
        return int(torch.stack(scores).argmax())


def exam(questions):
    for _ in range(questions):
        yield Question(torch.randint(0, 8000, (320,)), torch.randperm(8000)[:4].tolist(), 0)


torch.manual_seed(0)
harness, right, asked = Harness(Reader()), 0, 0
with torch.inference_mode():
    for question in exam(10):
        right += harness.choose(question) == question.right
        asked += 1
print(f"{right} of {asked} right")
