"""A small language model on blocks of a text held in memory."""

import torch
from torch import nn

VOCABULARY, LENGTH, WIDTH = 512, 128, 128


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 3)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens, mask):
        x = self.tokens(tokens) + self.places.weight
        return self.head(self.layers(x, mask=mask, is_causal=True))


torch.manual_seed(0)
text = torch.randint(0, VOCABULARY, (100_000,))
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
for _ in range(24):
    starts = torch.randint(0, len(text) - LENGTH - 1, (16, 1))
    block = text[starts + torch.arange(LENGTH + 1)]
    logits = model(block[:, :-1], mask)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), block[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
