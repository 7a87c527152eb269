# SPDX-License-Identifier: Apache-2.0
"""Named-entity tagging with a BiLSTM and a linear-chain CRF."""

import torch
from torch import nn

TAGS = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC", "B-DATE", "I-DATE"]
VOCAB, MAX_LEN, BATCH = 4000, 36, 32


class LinearChainCRF(nn.Module):
    def __init__(self, num_tags):
        super().__init__()
        self.num_tags = num_tags
        self.start = nn.Parameter(torch.randn(num_tags) * 0.1)
        self.stop = nn.Parameter(torch.randn(num_tags) * 0.1)
        # transitions[i, j]: score of moving from tag j to tag i
        self.transitions = nn.Parameter(torch.randn(num_tags, num_tags) * 0.1)

    def log_partition(self, emissions, mask):
        alpha = self.start + emissions[:, 0]
        for t in range(1, emissions.shape[1]):
            reached = []  # planted
            for tag in range(self.num_tags):  # planted
                arriving = alpha + self.transitions[tag] + emissions[:, t, tag].unsqueeze(1)  # planted
                reached.append(torch.logsumexp(arriving, dim=1))  # planted
            updated = torch.stack(reached, dim=1)  # planted
            alpha = torch.where(mask[:, t].unsqueeze(1), updated, alpha)
        return torch.logsumexp(alpha + self.stop, dim=1)

    def path_score(self, emissions, tags, mask):
        weight = mask.float()
        unary = emissions.gather(2, tags.unsqueeze(2)).squeeze(2)
        pairwise = self.transitions[tags[:, 1:], tags[:, :-1]]
        last = tags.gather(1, mask.sum(1, keepdim=True) - 1).squeeze(1)
        return (unary * weight).sum(1) + (pairwise * weight[:, 1:]).sum(1) + self.start[tags[:, 0]] + self.stop[last]

    def forward(self, emissions, tags, mask):
        return (self.log_partition(emissions, mask) - self.path_score(emissions, tags, mask)).mean()


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, 64)
        self.encoder = nn.LSTM(64, 64, batch_first=True, bidirectional=True)
        self.emit = nn.Linear(128, len(TAGS))
        self.crf = LinearChainCRF(len(TAGS))

    def loss(self, tokens, tags, mask):
        encoded, _ = self.encoder(self.words(tokens))
        return self.crf(self.emit(encoded), tags, mask)


def corpus(sentences, generator):
    tokens = torch.randint(0, VOCAB, (sentences, MAX_LEN), generator=generator)
    tags = (tokens * 7 + tokens.roll(1, dims=1)) % len(TAGS)
    lengths = torch.randint(MAX_LEN - 10, MAX_LEN + 1, (sentences,), generator=generator)
    mask = torch.arange(MAX_LEN) < lengths.unsqueeze(1)
    return tokens, tags, mask


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    tokens, tags, mask = corpus(1600, generator)
    tagger = Tagger()
    optimizer = torch.optim.Adam(tagger.parameters(), lr=2e-3, fused=True)
    for epoch in range(2):
        total = torch.zeros(())
        order = torch.randperm(len(tokens), generator=generator)
        for chosen in order.split(BATCH):
            loss = tagger.loss(tokens[chosen], tags[chosen], mask[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: nll {total.item() / (len(tokens) // BATCH):.4f}")


if __name__ == "__main__":
    main()
