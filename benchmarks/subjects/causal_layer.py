"""A layer of a GPT, as a module of torch: attention to what came before, then two products."""

from __future__ import annotations

from torch import Tensor, nn


class CausalLayer(nn.Module):
    """Floats [n, length, width] -> the same, in so many heads; each part is behind a normalisation,
    and is added to what it read.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.taken, self.given = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.taken(self.before(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.given(seen.transpose(1, 2).flatten(2))
        made: Tensor = x + self.down(nn.functional.gelu(self.up(self.between(x))))
        return made
