"""The store by HTTPS: who trusts its authority reaches it, nobody else does."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest

from lab.grants.seal import Seal
from lab.store.catalogue import make_catalogue
from lab.store.certificate import Certificate, make_certificate
from lab.store.core import StoreCore
from lab.store.server import StoreServer
from lab.store.settings import StoreSettings
from lab.store.tools import ToolSet, store_tools
from tests.run.made import context

MCP_WITHOUT_KEY = 401


def made(seed: int = 1) -> Certificate:
    return make_certificate(bytes([seed]) * 32, bytes(16), int(datetime.now(UTC).timestamp() * 1000))


def written(folder: Path, certificate: Certificate) -> Path:
    path = folder / "ca.pem"
    path.write_text(certificate.pem)
    return path


@asynccontextmanager
async def serving(certificate: Certificate) -> AsyncIterator[StoreServer]:
    core = StoreCore(
        StoreSettings(),
        ToolSet(store_tools(make_catalogue(1, 0))),
        static_credential="static",
        seal=Seal(b"k" * 32),
        is_revoked=lambda _grant: False,
        session_ids=lambda: "s-1",
    )
    server = StoreServer(context(), "store", core, tls=certificate.server_context())
    await server.start()
    try:
        yield server
    finally:
        await server.close()


async def status(url: str, trust: ssl.SSLContext) -> int:
    connector = aiohttp.TCPConnector(ssl=trust)
    async with aiohttp.ClientSession(connector=connector) as http, http.post(url, json={}) as response:
        return response.status


@pytest.mark.req("MCP-007")
async def test_a_client_that_trusts_it_is_served_and_another_fails_the_handshake(tmp_path: Path) -> None:
    async with serving(made()) as server:
        assert server.url.startswith("https://127.0.0.1:")
        trusting = ssl.create_default_context(cafile=str(written(tmp_path, made())))
        assert await status(server.url, trusting) == MCP_WITHOUT_KEY
        assert await status(server.url.replace("127.0.0.1", "localhost"), trusting) == MCP_WITHOUT_KEY
        for other in (ssl.create_default_context(), ssl.create_default_context(cadata=made(2).pem)):
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await status(server.url, other)


@pytest.mark.req("MCP-007", "FX-015")
async def test_node_trusts_it_by_a_variable_of_its_process(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node here")
    path = written(tmp_path, made())

    async def printed(**variables: str) -> str:
        asks = f"fetch({server.url!r}).then((r) => console.log(r.status), (e) => console.log(e.cause.code))"
        process = await asyncio.create_subprocess_exec(node, "-e", asks, env=variables, stdout=subprocess.PIPE)
        return (await process.communicate())[0].decode().strip()

    async with serving(made()) as server:
        assert await printed(NODE_EXTRA_CA_CERTS=str(path)) == str(MCP_WITHOUT_KEY)
        assert await printed() == "DEPTH_ZERO_SELF_SIGNED_CERT"


def test_it_is_one_that_others_read(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl here")
    path = str(written(tmp_path, made()))
    text = subprocess.run(
        [openssl, "x509", "-in", path, "-noout", "-text"], capture_output=True, text=True, check=True
    ).stdout
    for words in ("DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1", "CA:TRUE", "ED25519"):
        assert words in text
    done = subprocess.run(
        [openssl, "verify", "-x509_strict", "-CAfile", path, path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_its_key_is_shown_nowhere() -> None:
    assert made().key_pem not in repr(made())
    assert "PRIVATE KEY" not in made().pem
    assert made().pem != made(2).pem
