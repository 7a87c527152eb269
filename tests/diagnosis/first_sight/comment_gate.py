# SPDX-License-Identifier: Apache-2.0
"""Serving: a moderation gate scores pages of user comments before a web site shows them.

The site passes the comments of a page one by one and waits until all of them are scored, then comes the
next page. The gate runs in the main thread and answers through events.
"""

import random
import threading
import time
import zlib
from collections import deque

import torch
from torch import nn

PAGES, PER_PAGE, LENGTH, WORDS = 100, 16, 64, 8192
ROUND_TRIP = 0.004  # seconds between the site and the gate, there and back
VOCABULARY = [
    "fine",
    "thanks",
    "great",
    "you",
    "are",
    "a",
    "the",
    "idiot",
    "spam",
    "buy",
    "cheap",
    "pills",
    "I",
    "agree",
    "with",
    "this",
    "post",
    "awful",
    "click",
    "here",
    "now",
    "very",
    "good",
    "point",
]


class Comment:
    def __init__(self, text):
        self.text = text
        self.score = None
        self.done = threading.Event()


class Inbox:
    """Comments that wait for the gate."""

    def __init__(self):
        self.waiting = deque()
        self.arrived = threading.Condition()

    def put(self, comment):
        with self.arrived:
            self.waiting.append(comment)
            self.arrived.notify()

    def take(self, count):
        while len(self.waiting) < count:
            time.sleep(0.04)  # planted
        with self.arrived:
            return [self.waiting.popleft() for _ in range(count)]


class Site(threading.Thread):
    """Renders pages: it can go on only when every comment of the page has its score."""

    def __init__(self, inbox):
        super().__init__(daemon=True)
        self.inbox = inbox
        self.random = random.Random(7)
        self.hidden = 0

    def run(self):
        for _ in range(PAGES):
            page = []
            for _ in range(PER_PAGE):
                words = self.random.choices(VOCABULARY, k=self.random.randint(5, LENGTH))
                page.append(Comment(" ".join(words)))
            time.sleep(ROUND_TRIP)
            for comment in page:
                self.inbox.put(comment)
            for comment in page:
                comment.done.wait()
            self.hidden += sum(comment.score > 0.5 for comment in page)


class Scorer(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.verdict = nn.Linear(width, 1)

    def forward(self, tokens):
        hidden = self.encoder(self.embed(tokens))
        return torch.sigmoid(4 * self.verdict(hidden.mean(dim=1))).squeeze(1)


def tokenise(comments):
    rows = []
    for comment in comments:
        ids = [zlib.crc32(word.encode()) % WORDS for word in comment.text.split()][:LENGTH]
        rows.append(ids + [0] * (LENGTH - len(ids)))
    return torch.tensor(rows)


def serve():
    torch.manual_seed(23)
    scorer = Scorer().eval()
    inbox = Inbox()
    site = Site(inbox)
    site.start()
    total = 0.0
    for page in range(PAGES):
        comments = inbox.take(PER_PAGE)
        with torch.inference_mode():
            scores = scorer(tokenise(comments))
        for comment, score in zip(comments, scores.tolist()):
            comment.score = score
            comment.done.set()
        total += float(scores.sum())
    site.join()
    return total / (PAGES * PER_PAGE), site.hidden


if __name__ == "__main__":
    mean, hidden = serve()
    print(f"mean score {mean:.4f} hidden {hidden}")
