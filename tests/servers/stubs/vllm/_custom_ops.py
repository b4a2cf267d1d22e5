"""Rotary position embedding in plain torch, with the name and arguments of vLLM's kernel."""

from __future__ import annotations

import torch  # type: ignore[import-not-found]


def rotary_embedding(
    positions: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor | None,
    head_size: int,
    cos_sin_cache: torch.Tensor,
    is_neox: bool = True,
) -> None:
    """Turn `query` and `key`, [tokens, heads · head_size], in place by the angles of `positions`, [tokens].

    A row of `cos_sin_cache` holds the cosines, then the sines, of one position; pairs are (i, i + half) in the style
    of NeoX, else (2i, 2i + 1).
    """
    cosine, sine = cos_sin_cache[positions.reshape(-1)].float().unsqueeze(1).chunk(2, dim=-1)
    turned = 2 * cosine.shape[-1]
    for vectors in (query, key):
        if vectors is None:
            continue
        heads = vectors.view(positions.numel(), -1, head_size)[..., :turned]
        first, second = (
            (heads[..., : turned // 2], heads[..., turned // 2 :]) if is_neox else (heads[..., ::2], heads[..., 1::2])
        )
        x, y = first.float(), second.float()
        first.copy_(x * cosine - y * sine)
        second.copy_(y * cosine + x * sine)
