"""The page with 20,000 photos: how many elements it has and how long its frames take while it is scrolled.

    python benchmarks/page.py                     # needs a browser, as the tests of the page do

Makes the library of the tests of long lists, serves it, and scrolls its photos in a browser on a desktop and
on a phone, 60 pixels per frame. Prints the most elements that were in the page at a time; the processor time
of the browser's main thread per frame and of its longest task, from a trace; and the time between frames,
which also tells how busy the machine was.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.live_server import server_on
from tests.support.many_photos import PHOTOS, make_library

DEVICES: dict[str, dict[str, Any]] = {
    "desktop, 1440 x 900": {"viewport": {"width": 1440, "height": 900}},
    "phone, 390 x 844": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}

# Scrolls for some seconds; resolves to the times of the frames and the most elements seen.
SCROLL = """async (seconds) => {
    const [frames, most] = [[], { nodes: 0 }];
    const begun = performance.now();
    await new Promise((done) => {
        const frame = (now) => {
            frames.push(now);
            if (frames.length % 10 === 0) most.nodes = Math.max(most.nodes, document.querySelectorAll("*").length);
            if (now - begun > 1000 * seconds) { done(); return; }
            scrollBy({ top: 60, behavior: "instant" });
            requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
    });
    return { frames, nodes: most.nodes };
}"""


def main_thread_tasks(trace: dict[str, Any]) -> list[float]:
    """Return the processor time of each task of the page's main thread, the busiest of its name, in milliseconds."""
    events = trace["traceEvents"]
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event.get("name") == "thread_name" and event["args"].get("name") == "CrRendererMain"
    }
    tasks: dict[tuple[int, int], list[float]] = {thread: [] for thread in threads}
    for event in events:
        thread = (event.get("pid"), event.get("tid"))
        if event.get("ph") == "X" and event["name"].endswith("RunTask") and thread in tasks:
            tasks[thread].append(event.get("tdur", 0) / 1000)
    return max(tasks.values(), key=sum)


def measure(browser: Any, url: str, options: dict[str, Any], seconds: float) -> str:
    """Return what scrolling costs on one device, in one line."""
    page = browser.new_context(**options).new_page()
    page.goto(url)
    page.locator(".tile[data-photo] img").first.wait_for()
    browser.start_tracing(page=page, categories=["toplevel", "devtools.timeline"])
    scrolled = page.evaluate(SCROLL, seconds)
    trace = json.loads(browser.stop_tracing())
    page.context.close()
    times = scrolled["frames"]
    between = [after - before for before, after in pairwise(times)]
    tasks = main_thread_tasks(trace)
    return (
        f"{scrolled['nodes']} elements at most; {len(between)} frames; main thread "
        f"{sum(tasks) / len(between):.1f} ms per frame, {max(tasks):.0f} ms at most at a time; between frames "
        f"{statistics.median(between):.0f} ms (median), {statistics.quantiles(between, n=20)[-1]:.0f} ms (95 %)"
    )


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photos", type=int, default=PHOTOS)
    parser.add_argument("--seconds", type=float, default=6.0, help="of scrolling on each device")
    given = parser.parse_args()
    program = os.environ.get("SETNET_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        sys.exit("no browser: install chromium (apt-get install chromium), or set SETNET_BROWSER")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        place = Path(folder)
        library = make_library(place, given.photos)
        with server_on(library) as server:
            browser = playwright.chromium.launch(
                executable_path=program, args=["--no-sandbox", "--disable-gpu"]
            )
            load = os.getloadavg()[0]
            print(
                f"{given.photos:,} photos, {given.seconds:g} s of scrolling; {os.cpu_count()} cores, load {load:.1f}"
            )
            for name, options in DEVICES.items():
                print(f"{name}: {measure(browser, server.url, options, given.seconds)}")
            browser.close()


if __name__ == "__main__":
    main()
