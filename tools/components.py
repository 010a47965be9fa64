"""Draw every part of the pages on one page: in light and dark, on a desk and on a telephone.

    python tools/components.py OUT

The parts are cut from real pages of a small synthetic census, so what is shown is what readers see. Needs Chromium.
"""

import html
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Error, Page, sync_playwright

COMMANDS = (
    "synth census --households 5000 --states 06,44 --seed 2020",
    "phsafe init config.toml",
    'phsafe run config.toml census release --set state_filter=["06","44"]',
    'phsafe run config.toml census other --set state_filter=["06","44"]',
    "atlas release --to atlas --with other --boundaries shapes.json",
    "audit certificate release certificate",
    "phsafe estimate release estimates",
)
STATE = "atlas/index.html#table=PH7&area=STATE:06"
PARTS = (
    (STATE, "header, .banner", "status, title and search"),
    (STATE, "nav", "list of tables"),
    (STATE, ".controls", "choices of a table"),
    (STATE, "table.reading", "table with intervals on one axis"),
    (STATE, ".note.save", "what is seen, as files"),
    (f"{STATE}&beside=STATE:44", "table.reading", "areas side by side"),
    (f"{STATE}&other=1", "table.reading", "releases side by side"),
    (f"{STATE}&view=areas", "main", "map, legend and list of areas"),
    ("atlas/index.html#view=about", "main", "the promise in words"),
    ("certificate/certificate.html", ".status", "status of a page"),
    ("certificate/certificate.html", "dl.key", "key numbers"),
    ("certificate/certificate.html", "#attack", "chart with its legend"),
    ("certificate/certificate.html", "#guarantee", "table of a report"),
    ("estimates/index.html", "#choice", "choices of estimates"),
    ("estimates/index.html", "main section", "table of estimates"),
    ("EXPLORER", ".question", "the question"),
    ("EXPLORER", ".glance", "what follows, at a glance"),
    ("EXPLORER", ".fields", "fields"),
    ("EXPLORER", ".rest", "frontier, scenarios and answers"),
)
VIEWS = ((1280, "light"), (1280, "dark"), (390, "light"))
TALLEST = 700
"""Of a part, in pixels; the rest is cut off."""


def draw(out: Path) -> None:
    """Make the pages in an empty folder, and cut their parts out."""
    out.mkdir(parents=True)
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver, explorer() as address:
        shapes = [square(code, place) for place, code in enumerate(("06", "44"))]
        (Path(folder) / "shapes.json").write_text(json.dumps({"type": "FeatureCollection", "features": shapes}))
        for command in COMMANDS:
            subprocess.run(["yupana", *command.split()], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        places = {"EXPLORER": address}
        rows = "".join(
            f"<h2>{html.escape(words)}</h2>{pictures(browser, places.get(at) or f'file://{folder}/{at}', part, out)}"
            for at, part, words in PARTS
        )
        browser.close()
    style = "body{font:16px system-ui;margin:1rem} img{max-width:100%;border:1px solid #ccc;margin:.3rem}"
    head = f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Parts of pages</title><style>{style}</style>'
    (out / "index.html").write_text(f"{head}<h1>Parts of the pages</h1>{rows}\n", encoding="utf-8")


def square(code: str, place: int) -> dict[str, object]:
    """The boundary of an invented state."""
    ring = [[3 * place, 0], [3 * place + 2, 0], [3 * place + 2, 2], [3 * place, 2], [3 * place, 0]]
    return {"type": "Feature", "properties": {"GEOID": code}, "geometry": {"type": "Polygon", "coordinates": [ring]}}


def pictures(browser: Browser, address: str, part: str, out: Path) -> str:
    """A part in every view, as images."""
    found = []
    for width, scheme in VIEWS:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        page.goto(address)
        name = f"{len(list(out.iterdir())):03d}.png"
        cut(page, part, out / name)
        found.append(f'<img src="{name}" alt="{width} pixels, {scheme}">')
        page.close()
    return "".join(found)


def cut(page: Page, part: str, picture: Path) -> None:
    """The picture of the first element that a selector finds."""
    element = page.locator(part).first
    try:
        element.wait_for(timeout=10_000)
    except Error:
        sys.exit(f"{page.url} has no {part}")
    place = element.bounding_box()
    assert place is not None  # noqa: S101
    page.screenshot(path=os.fspath(picture), full_page=True, clip={**place, "height": min(TALLEST, place["height"])})


@contextmanager
def explorer() -> Iterator[str]:
    """A running explorer, by its address."""
    with subprocess.Popen(["yupana", "explore", "--no-browser"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None  # noqa: S101
        yield server.stdout.readline().strip()
        server.terminate()


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
