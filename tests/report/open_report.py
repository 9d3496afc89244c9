"""Opens reports in a browser and fails on what a reader would stumble over.

    open_report.py REPORT.html... [--screenshots DIR]

Each report is opened light and dark, at desktop and at phone width. A line per
failure, exit 1: messages on the console, requests to the network, charts
without visible marks, labels that are cut off or lie on each other, a page
wider than its window, a key or a reading that does not work. Exit 77 when
there is no chromium.
"""

import argparse
import base64
import pathlib
import sys

import chromium

# name, colour scheme, width, height
VIEWS = [
    ("light", "light", 1280, 900),
    ("dark", "dark", 1280, 900),
    ("phone", "light", 360, 780),
    ("phone-dark", "dark", 360, 780),
]

# Returns a list of sentences about what is wrong. The window's width comes from
# outside: a phone widens its own to fit a page that is too wide.
CHECK_LAYOUT = r"""
(width => {
  const wrong = [];
  const all = (query, element = document) => [...element.querySelectorAll(query)];
  all('details').forEach(d => d.open = true);
  const page = document.scrollingElement;
  if (page.scrollWidth > width)
    wrong.push(`the page is ${page.scrollWidth} wide in a window of ${width}`);
  const names = new Set();
  const meets = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 &&
                          a.top < b.bottom - 1 && b.top < a.bottom - 1;
  for (const chart of all('.chart')) {
    const name = chart.dataset.chart;
    if (!name || names.has(name)) wrong.push(`chart ${name}: its name is missing or not unique`);
    names.add(name);
    const picture = chart.querySelector('svg[role=img]');
    if (!picture) { wrong.push(`chart ${name}: no picture`); continue; }
    for (const part of ['title', 'desc'])
      if (!picture.querySelector(part)?.textContent) wrong.push(`chart ${name}: no ${part}`);
    const marks = all('.mark', chart);
    const visible = marks.filter(m => {
      const box = m.getBoundingClientRect(), style = getComputedStyle(m);
      const painted = style.fill !== 'none' || style.stroke !== 'none';
      return painted && Math.max(box.width, box.height) > 0 && +style.opacity > 0.3;
    });
    if (visible.length === 0) wrong.push(`chart ${name}: none of ${marks.length} marks is visible`);
    const frame = picture.getBoundingClientRect();
    const outside = box => box.left < frame.left - 1 || box.right > frame.right + 1 ||
                           box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
    for (const mark of marks)
      if (outside(mark.getBoundingClientRect())) { wrong.push(`chart ${name}: a mark lies outside`); break; }
    const texts = all('text', picture).filter(t => t.textContent)
        .map(t => ({text: t.textContent, box: t.getBoundingClientRect()}));
    texts.forEach((a, i) => {
      if (outside(a.box)) wrong.push(`chart ${name}: "${a.text}" is cut off`);
      if (a.box.height < 8) wrong.push(`chart ${name}: "${a.text}" is ${a.box.height} px high`);
      texts.slice(i + 1).forEach(b => {
        if (meets(a.box, b.box)) wrong.push(`chart ${name}: "${a.text}" lies on "${b.text}"`);
      });
    });
  }
  if (names.size === 0 && !document.querySelector('.missing')) wrong.push('no charts');
  for (const box of all('.panel, .chart, pre'))
    if (box.getBoundingClientRect().right > width + 1) wrong.push(`${box.className} is too wide`);
  return wrong;
})(WIDTH)
"""

CHECK_SCRIPT = r"""
(() => {
  const wrong = [];
  const item = document.querySelector('.main-key [data-key]');
  if (!item) return ['there is no key of the runs'];
  item.click();
  const dimmed = document.querySelectorAll('.mark.dim').length;
  if (document.querySelector(`.mark[data-run="${item.dataset.key}"]`) && dimmed === 0)
    wrong.push('a click on the key hides nothing');
  item.click();
  if (document.querySelectorAll('.mark.dim').length > 0) wrong.push('a second click does not undo the first');
  for (const chart of document.querySelectorAll('svg[data-plot]')) {
    const name = chart.closest('.chart').dataset.chart;
    const line = chart.querySelector('path.mark.line');
    if (!line) continue;
    const start = line.getAttribute('d').slice(1).split(' ')[0];
    const box = chart.getBoundingClientRect();
    const at = box.left + Math.min(+start + 1, 329) * box.width / chart.viewBox.baseVal.width;
    chart.dispatchEvent(new PointerEvent('pointermove',
      {clientX: at, clientY: box.top + box.height / 2}));
    const reading = document.getElementById('reading');
    const told = reading && !reading.hidden ? reading.textContent : '';
    if (!/^(step -?\d+|-?[\d.e-]+ [a-z ]+)\n.*: /.test(told) || told.includes('NaN'))
      wrong.push(`chart ${name}: tells no values: "${told}"`);
    chart.dispatchEvent(new PointerEvent('pointerleave'));
    if (reading && !reading.hidden) wrong.push('the reading stays after the pointer has left');
  }
  return wrong;
})()
"""

GROUND = "getComputedStyle(document.body).backgroundColor"


def messages_of(events, url):
    """What the console and the network had to say."""
    for event in events:
        params = event.get("params", {})
        if event["method"] == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            yield "exception: " + (details.get("exception", {}).get("description") or details["text"])
        elif event["method"] == "Runtime.consoleAPICalled":
            text = " ".join(str(a.get("value", a.get("description"))) for a in params["args"])
            yield f"console {params['type']}: {text}"
        elif event["method"] == "Log.entryAdded":
            yield f"log {params['entry']['level']}: {params['entry']['text']}"
        elif event["method"] == "Network.requestWillBeSent":
            asked = params["request"]["url"]
            if asked != url and not asked.startswith("data:"):
                yield f"asks for {asked}"


def take_screenshot(browser, path):
    height = browser.evaluate("document.documentElement.scrollHeight")
    width = browser.evaluate("innerWidth")
    picture = browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                           clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
    path.write_bytes(base64.b64decode(picture["data"]))


def problems_of_view(browser, url, view, screenshot):
    name, scheme, width, height = view
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=width < 600)
    browser.call("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.events.clear()
    answer = browser.call("Page.navigate", url=url)
    if "errorText" in answer:
        return [answer["errorText"]], None
    browser.wait_for("Page.loadEventFired")
    if screenshot:
        take_screenshot(browser, screenshot)
    problems = browser.evaluate(CHECK_LAYOUT.replace("WIDTH", str(width))) + browser.evaluate(CHECK_SCRIPT)
    problems += messages_of(browser.events, url)
    return problems, browser.evaluate(GROUND)


def problems_of_report(browser, path, screenshots):
    grounds = {}
    for view in VIEWS:
        picture = screenshots / f"{path.stem}-{view[0]}.png" if screenshots else None
        problems, ground = problems_of_view(browser, path.resolve().as_uri(), view, picture)
        grounds[view[0]] = ground
        for problem in problems:
            yield f"{path}: {view[0]}: {problem}"
    if grounds["light"] == grounds["dark"]:
        yield f"{path}: light and dark have the same background"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", type=pathlib.Path, metavar="REPORT.html")
    parser.add_argument("--screenshots", type=pathlib.Path, metavar="DIR")
    arguments = parser.parse_args()
    if arguments.screenshots:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
    path = chromium.find()
    if path is None:
        print("skipped: no chromium on this machine")
        return 77
    num_problems = 0
    try:
        with chromium.Chromium(path) as browser:
            for report in arguments.reports:
                for problem in problems_of_report(browser, report, arguments.screenshots):
                    print(" ".join(problem.split()))
                    num_problems += 1
    except chromium.BrowserError as error:
        print(f"the browser failed: {error}")
        return 1
    print(f"{len(arguments.reports)} reports in {len(VIEWS)} views: {num_problems} problems")
    return 1 if num_problems else 0


if __name__ == "__main__":
    sys.exit(main())
