# SPDX-License-Identifier: Apache-2.0
"""Support tickets sorted by a language model: scores of the whole vocabulary are made at each place of the prompt.

Source: https://github.com/huggingface/transformers/pull/31292, https://github.com/NVIDIA/kvpress/pull/269
"""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

VOCABULARY = 16000
TEAMS = {"billing": 411, "delivery": 1290, "returns": 3077, "technical": 5620, "other": 9014}
INSTRUCTION = 24
PROMPT = 72
BATCH = 4
BATCHES = 14


def load_model():
    torch.manual_seed(61)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=256,
        use_cache=False,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config).eval()


class TicketDesk:
    """Hands out prompts: the instruction, the text of the ticket, and the word 'team'."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.instruction = self.tokens(INSTRUCTION)
        self.question = self.tokens(3)
        self.usual = torch.rand(VOCABULARY, generator=self.generator) ** 8

    def tokens(self, count):
        return torch.randint(0, VOCABULARY, (count,), generator=self.generator)

    def batch(self):
        words = PROMPT - INSTRUCTION - len(self.question)
        text = torch.multinomial(self.usual.expand(BATCH, -1), words, generator=self.generator)
        return torch.cat([self.instruction.expand(BATCH, -1), text, self.question.expand(BATCH, -1)], dim=1)


def choose_team(model, prompts):
    """The team whose word the model would say next, and how far ahead it is."""
    scores = model(input_ids=prompts).logits[:, -1]  # planted
    words = torch.tensor(list(TEAMS.values()))
    best = scores[:, words].log_softmax(dim=-1).topk(2, dim=-1)
    return best.indices[:, 0], best.values[:, 0] - best.values[:, 1]


def main():
    model = load_model()
    desk = TicketDesk(61)
    names = list(TEAMS)
    inbox = {name: 0 for name in names}
    margin = 0.0
    with torch.inference_mode():
        for batch in range(BATCHES):
            teams, lead = choose_team(model, desk.batch())
            for team in teams.tolist():
                inbox[names[team]] += 1
            margin += lead.sum().item()
    counts = ", ".join(f"{name} {count}" for name, count in inbox.items())
    print(f"tickets: {counts}, margin {margin:.4f}")


if __name__ == "__main__":
    main()
