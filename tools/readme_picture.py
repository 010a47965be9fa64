"""Draw the picture of the README: a page of the atlas of a release, as the project's own commands make it.

    python tools/readme_picture.py docs/atlas-page.png

Needs Playwright and a Chromium. The census is synthetic. The noise is that of any release, so pictures differ a little.
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
    "phsafe run config.toml census release",
    "atlas release --to atlas",
)


def draw(picture: Path) -> None:
    """Run the commands in an empty folder, and take the picture of one table of California."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            subprocess.run(["yupana", *command.split()], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 560})
            page.goto((Path(folder) / "atlas" / "index.html").as_uri())
            page.get_by_role("link", name="PH7").click()
            page.locator("select:has(option:text-is('California'))").select_option(label="California")
            page.evaluate("scrollTo(0, 0)")
            page.wait_for_timeout(500)
            page.screenshot(path=os.fspath(picture))
            browser.close()


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
