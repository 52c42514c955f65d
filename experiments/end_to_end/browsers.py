"""People who take part in a browser: Chromium on the service's own page, a profile each.

Every one has a storage of its own, and with it a ledger of its own, and a position that the browser
tells the page when it asks. The page's client puts it into a cell, draws, waits and sends.
"""

import asyncio
import importlib.util
import os
import shutil
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from experiments.end_to_end.devices import ARRIVED
from experiments.progress import tracked

Array = NDArray[np.float64]

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
AT_A_TIME = 32  # most of them wait: up to 5 s before a report is sent
PATIENCE_MS = 120_000.0  # on a machine that does other things, too


def missing() -> str:
    """Return what is missing for browsers to take part, or nothing."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed"
    return "" if _chromium() else "chromium is not installed"


def take_part(origin: str, digest: str, positions: Array) -> Counter[str]:
    """Let a browser take part from each of (n, 2) positions; return what became of the reports."""
    return asyncio.run(_all(f"{origin}/participate/{digest}", positions))


def _chromium() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


async def _all(page: str, positions: Array) -> Counter[str]:
    from playwright.async_api import Browser, Error, async_playwright  # noqa: PLC0415  (may be missing)

    turns = asyncio.Semaphore(AT_A_TIME)

    async def one(browser: Browser, lat: float, lon: float) -> str:
        async with turns:
            profile = await browser.new_context(
                geolocation={"latitude": lat, "longitude": lon}, permissions=["geolocation"]
            )
            try:
                shown = await profile.new_page()
                shown.set_default_timeout(PATIENCE_MS)
                await shown.goto(page)
                await shown.click("#here")
                await shown.click("#take:enabled")
                await shown.wait_for_selector("#sent:has-text('the service has your report')")
                return ARRIVED
            except Error as error:
                return f"failed in the browser ({error.message.splitlines()[0]})"
            finally:
                await profile.close()

    flags = [*FLAGS, "--no-sandbox"] if os.geteuid() == 0 else list(FLAGS)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=_chromium(), args=flags)
        people = [one(browser, *position) for position in positions.tolist()]
        done = tracked(asyncio.as_completed(people), "browsers report", total=len(people))
        found = Counter([await each for each in done])
        await browser.close()
    return found
