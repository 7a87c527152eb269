# SPDX-License-Identifier: Apache-2.0
"""Text generation: the output layer computes logits of all positions, of which only the last is read.

Source: karpathy/nanoGPT#42, huggingface/transformers#38977, meta-llama "only compute last logits".
"""

import torch
from torch import nn

torch.manual_seed(0)
VOCABULARY, WIDTH = 16000, 128


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 256, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        hidden = self.body(self.embed(tokens))
        return self.head(hidden)  # planted


model = Model().eval()
with torch.inference_mode():
    for prompt in range(12):
        tokens = torch.randint(0, VOCABULARY, (8, 48))
        logits = model(tokens)
        answer = logits[:, -1].argmax(-1)
