"""From a change in the explorer to its redraw, as a ratio to 100 ms: `benchmarks/explorer.py`. Needs Chromium."""

import shutil
import statistics
import subprocess

from playwright.sync_api import sync_playwright

PAGES = (
    *("phsafe/s-dhc-2020-us", "safetab-p/ddhc-2020-us", "safetab-h/ddhc-2020-us"),
    *("topdown/pl94-2020-us", "topdown/h1-2020-us", "tables-own"),
)
LIMIT = 100
TIMES = 14
MOVE = """async (step) => {
  const range = document.querySelector(".whole input[type=range]"), shown = document.querySelector(".glance-numbers");
  const before = shown.innerText, began = performance.now();
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(
    range, String(Number(range.value) + step * (Number(range.max) - Number(range.min)) / 50));
  range.dispatchEvent(new Event("input", {bubbles: true}));
  while (shown.innerText === before && performance.now() - began < 4000) await new Promise(requestAnimationFrame);
  return performance.now() - began;
}"""


def main() -> None:
    """Move the total up and down on every page, and print the median and the largest ratio."""
    command = ["yupana", "explore", "--no-browser", "--tables", "people-and-homes"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as driver:
        assert server.stdout is not None  # noqa: S101
        address = server.stdout.readline().strip()
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for page in PAGES:
            opened = browser.new_page(viewport={"width": 1280, "height": 800})
            opened.goto(f"{address}#{page}")
            opened.wait_for_timeout(3000)
            took = []
            for number in range(TIMES):
                took.append(opened.evaluate(MOVE, 1 if number % 2 else -1) / LIMIT)
                opened.wait_for_timeout(800)
            print(f"{page}: median {statistics.median(took):.2f} of {LIMIT} ms, largest {max(took):.2f}", flush=True)
            opened.close()
        browser.close()
        server.terminate()


if __name__ == "__main__":
    main()
