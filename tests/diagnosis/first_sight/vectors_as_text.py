# SPDX-License-Identifier: Apache-2.0
"""Serves vectors of texts: a response writes out every number in decimal digits.

Source: merged michaelfeil/infinity pull request 350 (base64 for embeddings), merged
huggingface/huggingface-inference-toolkit pull request 129, merged tobocop2/lilbee pull request 601.
"""

import json

import torch
from torch import nn

WORDS, WIDTH, VECTOR = 8000, 256, 1024


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        self.layers = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 3, padding=1) for _ in range(2))
        self.leave = nn.Linear(WIDTH, VECTOR)

    def forward(self, words):
        x = self.words(words).transpose(1, 2)
        for layer in self.layers:
            x = x + layer(x).relu()
        return nn.functional.normalize(self.leave(x.mean(-1)), dim=-1)


class Endpoint:
    def __init__(self, embedder):
        self.embedder = embedder.eval()

    @torch.inference_mode()
    def respond(self, body):
        texts = json.loads(body)["input"]
        words = nn.utils.rnn.pad_sequence([torch.tensor(text) for text in texts], batch_first=True)
        vectors = self.embedder(words)
        return self.render(vectors)  # planted

    def render(self, vectors):
        data = []
        for index, vector in enumerate(vectors):
            data.append({"object": "embedding", "index": index, "embedding": vector.tolist()})  # planted
        return json.dumps({"object": "list", "data": data})  # planted


def bodies(count, texts=24):
    for _ in range(count):
        yield json.dumps({"input": torch.randint(1, WORDS, (texts, 48)).tolist()})


torch.manual_seed(0)
endpoint = Endpoint(Embedder())
sent = 0
for body in bodies(60):
    sent += len(endpoint.respond(body))
