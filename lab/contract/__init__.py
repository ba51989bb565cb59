"""The contract folders and the requirements ledger: reading them, and counting what the tests show of them."""
