# SPDX-License-Identifier: Apache-2.0
"""Deterministic torch programs for tests that profile the same thing with torch and with Opstrobe."""

import torch


class Block(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(channels)
        self.conv2 = torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(channels)

    def forward(self, x):
        out = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(out)) + x)


class Resnet(torch.nn.Module):
    """The layers of a ResNet, few and small."""

    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 7, stride=2, padding=3),
            torch.nn.BatchNorm2d(8),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(3, 2, 1),
        )
        self.blocks = torch.nn.Sequential(Block(8), Block(8))
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x):
        return self.head(torch.flatten(torch.nn.functional.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1), 1))


class Programs:
    """Each method, given the range to mark parts with, is one program; `setup` runs before, unprofiled."""

    def __init__(self):
        torch.manual_seed(0)
        self.resnet = Resnet()
        self.image = torch.randn(2, 3, 32, 32)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
        self.optimizer = torch.optim.SGD(self.mlp.parameters(), lr=0.1, momentum=0.9)
        self.x, self.y = torch.randn(4, 6), torch.tensor([0, 1, 2, 0])

    def forward(self, mark):
        with torch.no_grad(), mark("inference"):
            self.resnet(self.image)

    def forward_backward(self, mark):
        with mark("forward"):
            loss = self.resnet(self.image).square().mean()
        with mark("backward"):
            loss.backward()
        self.resnet.zero_grad()

    def training(self, mark):
        for i in range(3):
            with mark(f"step {i}"):
                self.optimizer.zero_grad()
                torch.nn.functional.cross_entropy(self.mlp(self.x), self.y).backward()
                self.optimizer.step()

    def all_kinds_of_inputs(self, mark):
        with mark("inputs"):
            a, b = torch.ones(3, 4), torch.ones(3, 4, dtype=torch.float64)
            torch.cat([a, a, a], dim=1)
            torch.stack([a] * 40)
            torch.add(a, a, alpha=2.5)
            a.add_(True)
            a.sum(dim=[0, 1], keepdim=True)
            a.to(torch.bfloat16).to(torch.float16)
            torch.full((2, 2), 1 + 2j)
            torch.arange(0, 10, 2)
            torch.zeros([1] * 12)
            torch.empty(0)
            torch.clamp(b, min=None, max=2.0)
            torch.tensor(3).item()
            a.t().contiguous()[1:, ::2].clone()
            torch.index_select(a, 0, torch.tensor([0, 2], dtype=torch.int32))
            torch.where(a > 1, a, torch.zeros_like(a))
            torch._foreach_add([a, a], 1.0)
            torch.nn.functional.interpolate(torch.ones(1, 1, 4, 4), scale_factor=2)
            torch.nn.functional.pad(a, (1, 1))
            torch.einsum("ij,kj->ik", a, a)
            torch.ones(2, 3).to_sparse()

    def nested_ranges(self, mark):
        for _ in range(2):
            with mark("outer"):
                with mark("outer"):
                    with mark("inner"):
                        torch.ones(2)
                with mark('quote " tab\t umlaut ü'):
                    pass
            torch.ones(2).mul_(2)

    def memory(self, mark):
        kept = [torch.empty(1000) for _ in range(3)]
        with mark("free one"):
            del kept[0]
        a = torch.ones(100)
        with mark("grow"):
            kept.append(torch.empty(5000))
            a = a + a
        kept.clear()
        del a
        torch.ones(10).add(1).sum()

    NAMES = ("forward", "forward_backward", "training", "all_kinds_of_inputs", "nested_ranges", "memory")
