"""`lab up`: the partner leg as an environment that stays, for who writes a partner's server."""
