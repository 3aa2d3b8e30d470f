"""What a person would see at once, asked of the browser: unreadable colours, texts that are cut off."""

from __future__ import annotations

from typing import Any

CONTRAST = """() => {
  const numbers = colour => (colour.match(/[\\d.]+/g) || []).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const behind = element => {
    for (; element; element = element.parentElement) {
      const colour = numbers(getComputedStyle(element).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
  };
  const found = [];
  for (const element of document.querySelectorAll('body *:not(script):not(option):not(svg *)')) {
    const own = Array.from(element.childNodes).some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    if (element.disabled || style.clipPath !== 'none' || style.position === 'absolute') continue;
    found.push([contrast(numbers(style.color), behind(element)), element.tagName + ' ' + element.textContent]);
  }
  return found;
}"""

CUT_OFF = """() => Array.from(document.querySelectorAll('body *')).filter(one => {
  // What scrolls in a box of its own is not cut off, and what only screen readers see has no size.
  const aside = '.skip, .unseen, .unseen *, svg *, .scroll *, .links *';
  if (!one.checkVisibility() || one.matches(aside)) return false;
  const { left, right } = one.getBoundingClientRect();
  return left < -1 || right > innerWidth + 1;
}).map(one => one.outerHTML.slice(0, 120))"""


def overflow(page: Any) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))
