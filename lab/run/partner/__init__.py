"""The partner leg of a run: partner API, store, issuer and driver are started, driven, judged and ended."""
