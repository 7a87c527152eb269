# SPDX-License-Identifier: Apache-2.0
"""Captions: a beam search sends each beam through the decoder on its own.

Source: fairseq and huggingface/transformers batch the beams; DLPerf, missing batching.
"""

import torch
from torch import nn

torch.manual_seed(0)
WORDS, BEAMS = 1000, 8


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(WORDS, 128)
        self.cell = nn.GRUCell(128, 256)
        self.head = nn.Linear(256, WORDS)

    def forward(self, word, state):
        state = self.cell(self.table(word), state)
        return self.head(state).log_softmax(-1), state


@torch.inference_mode()
def search(decoder, image):
    beams = [(0.0, [1], image)]
    for _ in range(8):
        grown = []
        for score, words, state in beams:
            scores, state = decoder(torch.tensor([words[-1]]), state)  # planted
            best, chosen = scores[0].topk(BEAMS)  # planted
            for value, word in zip(best.tolist(), chosen.tolist(), strict=True):
                grown.append((score + value, [*words, word], state))
        beams = sorted(grown, key=lambda beam: -beam[0])[:BEAMS]
    return beams[0][1]


decoder = Decoder().eval()
captions = []
for image in torch.randn(12, 1, 256):
    captions.append(search(decoder, image))
