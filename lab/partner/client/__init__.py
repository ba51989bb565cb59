"""The driver of the partner leg: what a partner's server does with any API of the contract."""
