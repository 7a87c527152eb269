# SPDX-License-Identifier: Apache-2.0
"""Graph network of citations: the sparse matrix of the graph was never coalesced, and each product sorts its entries again.

Source: merged dmlc/dgl pull request 427 ("spmm with uncoalesced sparse matrix has bad performance"), torchdrug issue 173.
"""

import torch
from torch import nn

PAPERS, CITATIONS, TOPICS = 20_000, 200_000, 16


def citation_matrix(source, target):
    both = torch.stack([torch.cat([source, target]), torch.cat([target, source])])
    degree = torch.bincount(both[0], minlength=PAPERS).clamp(min=1).float()
    weights = (degree[both[0]] * degree[both[1]]).rsqrt()
    return torch.sparse_coo_tensor(both, weights, (PAPERS, PAPERS))  # planted


class GCN(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.first = nn.Linear(features, hidden)
        self.second = nn.Linear(hidden, TOPICS)

    def forward(self, matrix, papers):
        papers = torch.sparse.mm(matrix, self.first(papers)).relu()  # planted
        return torch.sparse.mm(matrix, self.second(papers))  # planted


torch.manual_seed(0)
matrix = citation_matrix(torch.randint(0, PAPERS, (CITATIONS,)), torch.randint(0, PAPERS, (CITATIONS,)))
papers = torch.rand(PAPERS, 128)
topics = torch.randint(0, TOPICS, (PAPERS,))
known = torch.rand(PAPERS) < 0.1
model = GCN(128, 32)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(15):
    scores = model(matrix, papers)
    loss = nn.functional.cross_entropy(scores[known], topics[known])
    optimizer.zero_grad()
    loss.backward()  # planted
    optimizer.step()
