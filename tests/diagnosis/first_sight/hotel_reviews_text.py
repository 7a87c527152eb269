# SPDX-License-Identifier: Apache-2.0
"""Synthetic hotel reviews for hotel_reviews.py."""

import random

PAD, UNKNOWN = 0, 1
GOOD = ["clean", "quiet", "friendly", "bright", "lovely", "fresh", "helpful", "cosy"]
BAD = ["dirty", "noisy", "rude", "dark", "broken", "stale", "slow", "cold"]
PLAIN = [f"word{n}" for n in range(400)]


class Vocabulary:
    def __init__(self):
        self.number = {word: n + 2 for n, word in enumerate(GOOD + BAD + PLAIN)}

    def __len__(self):
        return len(self.number) + 2

    def encode(self, text, limit):
        return [self.number.get(word, UNKNOWN) for word in text.split()][:limit]


def write_reviews(count, seed):
    """Most reviews are short, a few are long; stars follow the share of good words."""
    rng = random.Random(seed)
    reviews = []
    for _ in range(count):
        mood = rng.random()
        length = min(200, int(rng.lognormvariate(2.9, 0.5)) + 4)
        words = [
            rng.choice(PLAIN) if rng.random() < 0.6 else rng.choice(GOOD if rng.random() < mood else BAD)
            for _ in range(length)
        ]
        reviews.append((" ".join(words), int(mood * 5)))
    return reviews
