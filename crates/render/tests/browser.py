"""Opens pages in headless Chromium: browser.py FILE... Prints how many checks passed.

Each page is opened without a network at the widths of a desk and of a phone. The console must be empty, the page must not scroll sideways, and
keys must sort, unfold and search. With script switched off, and on paper, the page must say the same; printing takes long, so that only the
first page is printed. A page that folds more on a phone than on a desk is loaded on both. Where MEMGAUGE_PAGES is set, all pages are printed,
and screenshots are put beside the files:
NAME-1280.png, NAME-390.png, NAME-390-dark.png, NAME-dark.png, NAME-phone.png, NAME-noscript.png, NAME.pdf."""

import base64
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

PDFTOTEXT = shutil.which("pdftotext")
LOOK = bool(os.environ.get("MEMGAUGE_PAGES"))
ENTER, TAB = "\ue007", "\ue004"
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
CONTRAST = """
  // Relative luminance by WCAG 2.1 of colours as computed styles have them.
  const light = (c) => { const v = c.map((x) => { x /= 255; return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
  const bad = [];
  for (const e of document.querySelectorAll("p,h1,h2,h3,dt,dd,td,th,small,summary,figcaption,a,b,span,i,code,svg.wide text[class]")) {
    if (!e.textContent.trim() || !e.getClientRects().length) continue;
    const style = getComputedStyle(e), svg = e.tagName === "text";
    const front = parse(svg ? style.fill : style.color).slice(0, 3);
    const [a, b] = [light(front), light(behind(svg ? e.ownerSVGElement : e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${e.tagName} '${e.textContent.trim().slice(0, 30)}' ${ratio.toFixed(2)}`);
  }
  return bad;
"""
# What of tables whose rows are stacked is beyond the edge of the page.
OUTSIDE = """
  return Array.from(document.querySelectorAll(".stacked th,.stacked td")).filter((e) => e.getBoundingClientRect().right > innerWidth)
    .map((e) => e.textContent);
"""


# Every text, whether folded or not, but for what only a screen needs.
CONTENT = """
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) {
    const text = walker.currentNode.nodeValue.replace(/\\s+/g, " ").trim();
    if (text && !walker.currentNode.parentElement.closest("svg,script,style,nav,.data,.search")) found.push(text);
  }
  return found;
"""


class Browser:
    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{port}"
        self.session = None

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            sys.exit(f"{method} {path}: {error.read().decode()[:800]}")

    def start(self):
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        # A name server that knows nothing: what is not in the page cannot be had.
        arguments.append("--host-resolver-rules=MAP * ~NOTFOUND")
        options = {"goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}
        for _ in range(100):
            try:
                with urllib.request.urlopen(self.base + "/status", timeout=5):
                    break
            except OSError:
                time.sleep(0.1)
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": options}})
        self.session = "/session/" + answer["sessionId"]

    def post(self, path, body):
        return self.call("POST", self.session + path, body)

    def devtools(self, command, **parameters):
        return self.post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def run(self, script, *arguments):
        return self.post("/execute/sync", {"script": script, "args": list(arguments)})

    def width(self, width, phone=False):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=phone)

    def dark(self, dark):
        value = "dark" if dark else "light"
        self.devtools("Emulation.setEmulatedMedia", media="screen", features=[{"name": "prefers-color-scheme", "value": value}])

    def press(self, script, key):
        """Focuses what the script returns, and presses a key there."""
        self.run(f"({script}).focus()")
        element = self.call("GET", self.session + "/element/active")[ELEMENT]
        self.post(f"/element/{element}/value", {"text": key})

    def screenshot(self, path):
        """For whoever wants to look: it is most of the time that a page takes."""
        if not LOOK:
            return
        picture = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))

    def print(self, path):
        pdf = self.devtools("Page.printToPDF", printBackground=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(pdf["data"]))

    def complaints(self):
        return [line["message"] for line in self.post("/se/log", {"type": "browser"})]

    def stop(self):
        if self.session:
            self.call("DELETE", self.session)
        self.driver.terminate()
        self.driver.wait()


def words(text):
    return re.findall(r"[A-Za-z]{4,}", text)


def without_script(browser, stem, paper, expect):
    """What the page says where its script does not run, and on paper with and without it."""
    browser.devtools("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": "light"}])
    browser.width(1280)
    browser.post("/refresh", {})
    said = browser.run(CONTENT)
    folded = browser.run("return document.querySelectorAll('details:not([open])').length")
    if paper:
        browser.print(f"{stem}.pdf")
    expect(browser.run("return document.querySelectorAll('details:not([open])').length") == folded, "printing unfolds the page for good")
    browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    browser.post("/refresh", {})
    expect(browser.run("return document.querySelector('.tip, .search, thead button') === null"), "the script ran")
    expect(browser.run(CONTENT) == said, "the page says something else without script")
    browser.screenshot(f"{stem}-noscript.png")
    if browser.run("return document.querySelector('details') !== null"):
        browser.press("document.querySelector('summary')", ENTER)
        expect(browser.run("return document.querySelector('details').open"), "Enter does not unfold without script")
        browser.post("/refresh", {})
    if paper:
        browser.print(f"{stem}-noscript.pdf")
    browser.devtools("Emulation.setScriptExecutionDisabled", value=False)
    browser.post("/refresh", {})
    if not paper:
        return
    for name in [f"{stem}.pdf", f"{stem}-noscript.pdf"]:
        printed = set(words(subprocess.run(["pdftotext", name, "-"], capture_output=True, text=True, check=True).stdout))
        # Words may be divided at the end of a line.
        wanted = {word for text in said for word in words(text) if len(word) < 12}
        missing = wanted - printed
        expect(len(missing) <= len(wanted) // 50, f"{name} lacks {sorted(missing)[:10]} of {len(wanted)} words")


def check(browser, path, paper):
    passed = 0

    def expect(good, what):
        nonlocal passed
        if not good:
            sys.exit(f"{path}: {what}")
        passed += 1

    stem = os.path.splitext(path)[0]
    browser.width(1280)
    browser.dark(False)
    browser.post("/url", {"url": "file://" + os.path.abspath(path)})
    expect(browser.run("return document.title") != "owned", "text from a result ran as script")
    for width, name in [(1280, "1280"), (390, "390")]:
        browser.width(width, phone=width < 500)
        wide = browser.run("return [document.documentElement.scrollWidth, innerWidth]")
        expect(wide[0] <= width, f"scrolls sideways at {width}: {wide}")
        browser.screenshot(f"{stem}-{name}.png")
    if browser.run("return document.querySelector('details.wide') !== null"):
        expect(browser.run("return document.querySelectorAll('details.wide:not([open])').length") == 0, "a wide page folds what has room")
        browser.width(390, phone=True)
        browser.post("/refresh", {})
        expect(browser.run("return document.querySelectorAll('details[open]').length") == 0, "a phone unfolds what has no room")
        height = browser.run("return document.documentElement.scrollHeight")
        expect(height < 3000, f"a phone has to scroll through {height} pixels")
        browser.screenshot(f"{stem}-phone.png")
        outside = browser.run(OUTSIDE)
        expect(not outside, f"a phone shows these in part only: {outside[:5]}")
        browser.width(1280)
        browser.post("/refresh", {})
    browser.width(1280)
    for dark in [False, True]:
        browser.dark(dark)
        bad = browser.run("document.querySelectorAll('details').forEach((d) => { d.open = true; });" + CONTRAST)
        expect(not bad, f"hard to read {'on dark' if dark else 'on light'}: {bad[:5]}")
        browser.run("document.querySelectorAll('details').forEach((d) => { d.open = false; });")
    browser.screenshot(f"{stem}-dark.png")
    browser.width(390, phone=True)
    browser.screenshot(f"{stem}-390-dark.png")
    browser.width(1280)
    browser.dark(False)
    if browser.run("return document.querySelector('details') !== null"):
        browser.press("document.querySelector('summary')", ENTER)
        expect(browser.run("return document.querySelector('details').open"), "Enter does not unfold")
    column = "document.querySelector('table.sorted thead th.n button')"
    if browser.run(f"document.querySelectorAll('details').forEach((d) => {{ d.open = true; }}); return {column} !== null"):
        values = f"""const head = {column}.parentElement, table = head.closest('table');
          return Array.from(table.tBodies[0].rows, (row) => parseFloat(row.cells[head.cellIndex].textContent.replace('~', '').replace('−', '-')));"""
        for direction, sign in [("ascending", 1), ("descending", -1)]:
            browser.press(column, ENTER)
            expect(browser.run(f"return {column}.parentElement.ariaSort") == direction, f"not sorted {direction}")
            numbers = [v * sign for v in browser.run(values) if v is not None]
            expect(numbers == sorted(numbers), f"not in order, {direction}: {numbers}")
    search = "document.querySelector('.search input')"
    if browser.run(f"return {search} !== null"):
        rows = "return Array.from(document.querySelector('.searched tbody').rows).filter((r) => !r.hidden).length"
        browser.press(search, "no number is called this")
        expect(browser.run(rows) == 0, "the search hides nothing")
    expect(browser.run("return document.querySelectorAll('svg').length") == 0
           or browser.run("return document.querySelector('.tip') !== null"), "no values under the pointer")
    without_script(browser, stem, paper, expect)
    complaints = [line for line in browser.complaints()]
    expect(not complaints, f"the console says: {complaints}")
    return passed


browser = Browser()
try:
    browser.start()
    files = sys.argv[1:]
    print(sum(check(browser, file, PDFTOTEXT and (LOOK or file == files[0])) for file in files))
finally:
    browser.stop()
