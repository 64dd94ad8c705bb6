"""What the tests of all HTML pages share."""

import base64
import hashlib
from html.parser import HTMLParser

HOSTILE = '<script>alert(1)</script>" onload="x" &amp; \' </style> ' + "long_" * 40
VOID = {"meta", "link", "img", "br", "input", "wbr"}


class Page(HTMLParser):
    """Every element with its attributes and its own text; wrong nesting is an error."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.elements = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        element = (tag, dict(attrs), list[str]())
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        for _, _, text in self.open:
            text.append(data)

    def texts(self, *tags):
        return ["".join(text) for tag, _, text in self.elements if tag in tags]


def must_need_nothing_else(page, links=()):
    """Check that a page loads and runs nothing from outside its file, and that its policy forbids it.

    Only ``links`` lead elsewhere.
    """
    policies = []
    for tag, attributes, _ in page.elements:
        for name in ("src", "href", "data", "poster", "srcset"):
            value = attributes.get(name)
            is_link = tag == "a" and value in links
            assert value is None or is_link or value.startswith(("data:", "#")), (tag, name)
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
        if attributes.get("http-equiv") == "Content-Security-Policy":
            policies.append(str(attributes["content"]))
    (policy,) = policies
    assert policy.startswith("default-src 'none'; img-src data:;")
    for tag in ("style", "script"):
        (content,) = page.texts(tag)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"sha256-{digest}" in policy
        assert "://" not in content and "@import" not in content
