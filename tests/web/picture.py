# SPDX-License-Identifier: GPL-3.0-or-later
"""Run by scripts/pictures as /usr/bin/python3 tests/web/picture.py REPORT PICTURE: what Chromium shows of a page of
allocprof html, down to its flame graph, where a span of the time line is chosen."""

import sys

import browser

FROM, UNTIL = 0.15, 0.75  # of the recording

with browser.Browser("chromium", width=1280, height=1200) as page:
    page.open(sys.argv[1])
    x, y, _, height = page.area("#timeline canvas")
    left, width = page.evaluate("(({ left, width }) => [+left, +width])(document.querySelector('#timeline canvas').dataset)")
    middle = y + height / 2
    page.drag(x + left + FROM * width, middle, x + left + UNTIL * width, middle)
    page.wait_until("document.querySelector('#choice-title').textContent.startsWith('From ')")
    # The pointer would have a line and a tip of its own.
    page.point(1, 1)
    bottom = page.evaluate("document.querySelector('#flame .flame-help').getBoundingClientRect().bottom")
    page.resize(1280, round(bottom) + 12)
    page.settle()
    page.screenshot(sys.argv[2])
