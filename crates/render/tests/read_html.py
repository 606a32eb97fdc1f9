"""Checks pages: read_html.py FILE... Prints how many are good; says what is wrong with the first that is not.

Elements nest, identifiers are unique and what refers to them exists, the policy has the hashes of style and script, nothing is loaded, and
the data is JSON."""

import base64
import hashlib
import json
import sys
from html.parser import HTMLParser
from urllib.parse import unquote_to_bytes

VOID = {"meta", "br", "hr", "img", "input", "link"}
# Elements whose end tag may be left out; memgauge never leaves it out.
ALLOWED = set(
    "html head title style script body a header main footer section article nav h1 h2 h3 small p b i span div dl dt dd pre code details "
    "summary figure figcaption table thead tbody tr th td meta svg rect line polyline circle polygon text image".split()
)
SVG_CLOSED = {"rect", "line", "polyline", "circle", "polygon", "image"}


class Page(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.references, self.addresses = [], set(), [], []
        self.content, self.policy, self.headings = {"style": "", "script": ""}, None, []

    def handle_starttag(self, tag, attributes):
        self.element(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag in SVG_CLOSED, f"<{tag}/> is not closed in HTML"
        self.element(tag, attributes)

    def element(self, tag, attributes):
        assert tag in ALLOWED, f"<{tag}> is not an element of these pages"
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        assert not [n for n in names if n.startswith("on") or n == "style"], f"<{tag}> has {names}"
        for name, value in attributes:
            if name == "id":
                assert value and value not in self.ids and not set(value) & set(" \t\n"), f"id '{value}'"
                self.ids.add(value)
            elif name in ("aria-labelledby", "aria-describedby", "headers"):
                self.references += value.split()
            elif name == "href" and value.startswith("#"):
                self.references.append(value[1:])
            elif name in ("href", "src", "xlink:href", "action"):
                self.addresses.append((tag, value))
        if tag == "meta" and ("http-equiv", "Content-Security-Policy") in attributes:
            self.policy = dict(attributes)["content"]
        if tag in ("h1", "h2", "h3"):
            level = int(tag[1])
            assert level <= (self.headings or [0])[-1] + 1, f"<{tag}> follows <h{self.headings[-1]}>"
            self.headings.append(level)
        if tag == "svg":
            assert dict(attributes).get("role") == "img" and dict(attributes).get("aria-labelledby"), "a picture without a name"
        if tag == "th":
            assert dict(attributes).get("scope") in ("row", "col"), "<th> without scope"

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> ends {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] in self.content:
            self.content[self.open[-1]] += data


def check(path):
    text = open(path, encoding="utf-8").read()
    page = Page()
    page.feed(text)
    page.close()
    assert text.startswith("<!doctype html>") and not page.open, f"open at the end: {page.open}"
    missing = [name for name in page.references if name not in page.ids]
    assert not missing, f"nothing has the id {missing}"
    for kind, content in page.content.items():
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in page.policy, f"the policy does not allow the {kind}"
    assert page.policy.startswith("default-src 'none';"), page.policy
    for tag, address in page.addresses:
        assert address.startswith("data:"), f"<{tag}> loads {address[:80]}"
        if address.startswith("data:application/json"):
            json.loads(unquote_to_bytes(address.split(",", 1)[1]))
    assert page.headings.count(1) == 1, "one <h1>"


for path in sys.argv[1:]:
    try:
        check(path)
    except AssertionError as error:
        sys.exit(f"{path}: {error}")
print(len(sys.argv) - 1)
