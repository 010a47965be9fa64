"""Draw the first picture of the README: a table of estimates, as the project's own commands publish it.

    python tools/readme_picture.py docs/first-picture.png

Needs Playwright and a Chromium. The census is synthetic, and the noise has a seed: the picture is the same again.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

COMMANDS = (
    "synth census --households 100000 --seed 2020",
    "phsafe init config.toml",
    "phsafe run config.toml census release --seed 2020",
    "phsafe estimate release tables",
)
STATE = "#S06/*"
"""California, everyone."""

TABLE = "section:has-text('PH2.')"


def draw(picture: Path) -> None:
    """Run the commands in an empty folder, and take the picture of one table."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    program = Path(sys.executable).with_name("yupana")
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            subprocess.run([program, *command.split()], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 860, "height": 900})
            page.goto((Path(folder) / "tables" / "index.html").as_uri() + STATE)
            page.locator(TABLE).last.screenshot(path=os.fspath(picture))
            browser.close()


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
