"""Sequences that one framework runs where the other runs one operation."""

from __future__ import annotations


def test_one_row_a_sequence_of_known_words(ask) -> None:
    found = ask("diff/fusions").rows()
    assert len({(fused, tuple(parts)) for fused, parts in found}) == len(found)
    assert ("linear", ["matmul", "biasadd"]) in found
    words = {word for fused, parts in found for word in (fused, *parts)}
    assert all(word.isalnum() and word.islower() for word in words)
