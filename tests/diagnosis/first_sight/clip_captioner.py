# SPDX-License-Identifier: Apache-2.0
"""Caption generator for short clips: an attentive LSTM decoder trained with teacher forcing."""

import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

VOCAB, PAD, BOS = 6000, 0, 1
REGIONS, FEATURES, WORDS = 30, 192, 22


class ClipCaptions(Dataset):
    """Frame features and captions; indexed with a whole batch of positions."""

    def __init__(self, clips, generator):
        self.features = torch.randn(clips, REGIONS, FEATURES, generator=generator)
        topic = self.features[:, :4, 0].gt(0).long() @ torch.tensor([1, 2, 4, 8])
        words = torch.randint(2, VOCAB // 16, (clips, WORDS), generator=generator) + topic[:, None] * (VOCAB // 16)
        length = torch.randint(WORDS - 6, WORDS + 1, (clips, 1), generator=generator)
        self.captions = words.masked_fill(torch.arange(WORDS) >= length, PAD)

    def __len__(self):
        return len(self.captions)

    def __getitem__(self, rows):
        rows = torch.as_tensor(rows)
        return self.features[rows], self.captions[rows]


class Attention(nn.Module):
    def __init__(self, hidden, attend):
        super().__init__()
        self.query = nn.Linear(hidden, attend)
        self.score = nn.Linear(attend, 1)

    def forward(self, h, keys, values):
        energy = self.score(torch.tanh(keys + self.query(h)[:, None])).squeeze(-1)
        return torch.bmm(energy.softmax(1)[:, None], values).squeeze(1)


class Captioner(nn.Module):
    def __init__(self, hidden=256, attend=128, word_dim=160):
        super().__init__()
        self.words = nn.Embedding(VOCAB, word_dim, padding_idx=PAD, sparse=True)
        self.key = nn.Linear(FEATURES, attend)
        self.attention = Attention(hidden, attend)
        self.init = nn.Linear(FEATURES, 2 * hidden)
        self.cell = nn.LSTMCell(word_dim + FEATURES, hidden)
        self.drop = nn.Dropout(0.2)
        self.vocab = nn.Linear(hidden, VOCAB)

    def forward(self, features, captions):
        keys = self.key(features)
        h, c = self.init(features.mean(1)).chunk(2, dim=1)
        given = F.pad(captions[:, :-1], (1, 0), value=BOS)
        embedded = self.drop(self.words(given))
        logits = []
        for word in embedded.unbind(1):
            context = self.attention(h, keys, features)
            h, c = self.cell(torch.cat([word, context], dim=1), (h, c))
            logits.append(self.vocab(h))  # planted
        return torch.stack(logits, dim=1)  # planted


def main(clips=400, batch=16, epochs=2):
    torch.manual_seed(31)
    data = ClipCaptions(clips, torch.Generator().manual_seed(31))
    sampler = BatchSampler(RandomSampler(data), batch, drop_last=True)
    loader = DataLoader(data, sampler=sampler, batch_size=None)
    model = Captioner()
    dense = [p for name, p in model.named_parameters() if name != "words.weight"]
    optimizers = [torch.optim.Adam(dense, lr=1e-3, fused=True), torch.optim.SGD([model.words.weight], lr=0.5)]
    start = time.perf_counter()
    for epoch in range(epochs):
        total = 0.0
        for features, captions in loader:
            logits = model(features, captions)
            loss = F.cross_entropy(logits.flatten(0, 1), captions.flatten(), ignore_index=PAD)
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(dense, 5.0)
            for optimizer in optimizers:
                optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(sampler):.6f}")
    print(f"loop {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
