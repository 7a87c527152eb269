# SPDX-License-Identifier: Apache-2.0
"""Generates captions with a GRU: scores of words that occurred before are lowered one word at a time.

Source: merged huggingface/transformers pull request 8598 ("Vectorize RepetitionPenaltyLogitsProcessor"), issue 8596.
"""

import torch
from torch import Tensor, nn

VOCABULARY = 12_000


class Captioner(nn.Module):
    def __init__(self, width: int = 384):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, width)
        self.memory = nn.GRU(width, width, num_layers=2, batch_first=True)
        self.scores = nn.Linear(width, VOCABULARY)

    def forward(self, last: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        seen, state = self.memory(self.words(last), state)
        return self.scores(seen[:, -1]), state


def penalise(scores: Tensor, captions: Tensor, penalty: float) -> None:
    for row in range(len(captions)):
        for word in set(captions[row].tolist()):
            if scores[row, word] < 0:  # planted
                scores[row, word] *= penalty  # planted
            else:
                scores[row, word] /= penalty  # planted


torch.manual_seed(3)
captioner = Captioner().eval()
pictures = 16
state = torch.randn(2, pictures, 384)
captions = torch.randint(0, VOCABULARY, (pictures, 48))  # captions of similar pictures
with torch.inference_mode():
    for position in range(40):
        scores, state = captioner(captions[:, -1:], state)
        penalise(scores, captions, 1.3)
        best, words = scores.topk(40)
        picked = torch.multinomial((best / 0.8).softmax(-1), 1)
        captions = torch.cat([captions, words.gather(1, picked)], dim=1)
