# SPDX-License-Identifier: Apache-2.0
"""Passage retrieval: the vectors of all passages are brought to unit length for each batch of questions.

Source: cos_sim of sentence-transformers normalises both operands in each call; its manual advises to normalise the corpus once.
"""

import torch
from torch import nn
from torch.nn import functional

PASSAGES, WIDTH = 120_000, 256


def cosine_scores(questions, passages):
    questions = functional.normalize(questions, dim=-1)
    passages = functional.normalize(passages, dim=-1)  # planted
    return questions @ passages.T


class QuestionEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20_000, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 512, batch_first=True, dropout=0.0)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, tokens):
        return self.layers(self.words(tokens)).mean(1)


torch.manual_seed(0)
encoder = QuestionEncoder().eval()
passages = torch.randn(PASSAGES, WIDTH)
answers = []
with torch.inference_mode():
    for batch in range(25):
        tokens = torch.randint(0, 20_000, (8, 24))
        best = cosine_scores(encoder(tokens), passages).topk(5)
        answers.append(best.indices)
