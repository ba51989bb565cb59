"""What the store sells: product 9001, the same in every run, and products drawn from a seed; and its orders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

DRAWN_PRODUCTS = 500
FIRST_DRAWN_ID = 1000
PROVEN_PRODUCT = 9001
"""MCP-004: the product of the proven call."""

_CATEGORIES = ("outdoor", "kitchen", "office", "garden", "sport")


@dataclass(frozen=True, slots=True)
class Product:
    """A product; the price is in cents of `currency`."""

    product_id: int
    name: str
    description: str
    category: str
    price_cents: int
    stock: int
    currency: str = "EUR"

    def to_json(self) -> dict[str, object]:
        """As a tool tells it."""
        return {
            "productId": self.product_id,
            "name": self.name,
            "description": self.description,
            "category": self.category,
            "priceCents": self.price_cents,
            "currency": self.currency,
            "stock": self.stock,
        }


@dataclass(frozen=True, slots=True)
class Order:
    """An order of one product."""

    order_id: str
    product_id: int
    quantity: int
    state: str

    def to_json(self) -> dict[str, object]:
        """As a tool tells it."""
        return {
            "orderId": self.order_id,
            "productId": self.product_id,
            "quantity": self.quantity,
            "state": self.state,
        }


class Catalogue:
    """Products by id, in the order of their ids, and orders by id."""

    def __init__(self, products: Iterable[Product], orders: Iterable[Order]) -> None:
        self.products: Mapping[int, Product] = {
            product.product_id: product for product in sorted(products, key=lambda product: product.product_id)
        }
        self.orders: Mapping[str, Order] = {order.order_id: order for order in orders}

    def search(self, words: str) -> list[Product]:
        """The products that have each of the words in name, description or category; case does not count."""
        wanted = words.casefold().split()
        return [
            product
            for product in self.products.values()
            if all(word in f"{product.name} {product.description} {product.category}".casefold() for word in wanted)
        ]


FIXED_PRODUCT = Product(
    product_id=PROVEN_PRODUCT,
    name="Ridgeline 2 trail shoe",
    description="Light trail running shoe with a rock plate; runs half a size small.",
    category="sport",
    price_cents=12_950,
    stock=17,
)

ORDERS = (
    Order("SO-7001", PROVEN_PRODUCT, 1, "shipped"),
    Order("SO-7002", PROVEN_PRODUCT, 2, "open"),
    Order("SO-7003", FIRST_DRAWN_ID, 1, "returned"),
)


@lru_cache(maxsize=16)
def make_catalogue(seed: int, drawn: int = DRAWN_PRODUCTS) -> Catalogue:
    """Product 9001 and `drawn` others; one seed gives one catalogue."""
    return Catalogue((FIXED_PRODUCT, *_draw(seed, drawn)), ORDERS)


def _draw(seed: int, count: int) -> list[Product]:
    if not count:
        return []
    # Its import takes longer than the rest of the lab's, and most commands need no store.
    from faker import Faker

    fake = Faker("en_US")
    fake.seed_instance(seed)
    return [
        Product(
            product_id=FIRST_DRAWN_ID + index,
            name=f"{fake.color_name()} {fake.word(part_of_speech='noun')}".capitalize(),
            description=fake.sentence(nb_words=8),
            category=fake.random_element(_CATEGORIES),
            price_cents=fake.random_int(199, 49_999),
            stock=fake.random_int(0, 400),
        )
        for index in range(count)
    ]
