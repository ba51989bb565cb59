"""The catalogue: product 9001 always, the others from a seed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from lab.store.catalogue import DRAWN_PRODUCTS, FIXED_PRODUCT, Catalogue, make_catalogue

DIGEST = """
import hashlib, json
from lab.store.catalogue import make_catalogue
text = json.dumps([product.to_json() for product in make_catalogue(7).products.values()])
print(hashlib.sha256(text.encode()).hexdigest())
"""


def in_a_process(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(
        [sys.executable, "-c", DIGEST], env=environment, check=True, capture_output=True
    ).stdout.decode()


def test_one_seed_is_one_catalogue_in_any_process() -> None:
    first = in_a_process("1")
    assert len(first.strip()) == hashlib.sha256().digest_size * 2
    assert in_a_process("2") == first


def test_another_seed_is_another() -> None:
    one, other = (list(make_catalogue(seed, 20).products.values()) for seed in (7, 8))
    assert one != other
    assert one[-1] == other[-1] == FIXED_PRODUCT


@pytest.mark.req("MCP-004")
def test_product_9001_and_five_hundred_more() -> None:
    products = make_catalogue(7).products
    assert len(products) == DRAWN_PRODUCTS + 1
    assert products[9001] == FIXED_PRODUCT
    assert list(products) == sorted(products)


def test_the_drawing_shifts_nothing_of_the_process() -> None:
    """Chance that others draw from is left as it was."""
    import random

    state = random.getstate()
    make_catalogue(99, 3)
    assert random.getstate() == state


def test_a_search_finds_all_the_words() -> None:
    catalogue = Catalogue([FIXED_PRODUCT], ())
    for words, found in (("trail SHOE", 1), ("rock sport", 1), ("trail sandal", 0), ("", 1)):
        assert len(catalogue.search(words)) == found
