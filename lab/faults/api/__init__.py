"""Toxiproxy's HTTP API over the engine of this package: statuses, bodies and habits are those of server 2.12.0.

What differs, on purpose:

    values that crash the Go server     400 with a sentence, and nothing changes
    changes under back-pressure         answered at once; the Go server hangs
    POST /proxies with `toxics`         creates both in one step; the Go server ignores them
    GET /proxies/{p}/connections        the live connections, and which toxics touch each
    no `listen`, or an empty one        a free port of 127.0.0.1; the Go server listens for everybody
    an update to an empty upstream      400
    a listen beyond loopback            500, unless the API itself was started beyond loopback
    a listen that is no address         500 also where the proxy is created disabled
    a stream in other letters           shown in small ones
    a body above 1 MiB                  413
    the header `Server`                 names the lab, since /version names Toxiproxy
"""
