"""The promises of the partner leg: of the partner API, the driver that calls it, the store and the issuer of grants.

They read what the witnesses wrote down; nothing of the API's model, the driver or the store stands behind them.
"""
