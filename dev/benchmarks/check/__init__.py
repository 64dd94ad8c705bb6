"""How often does ``peakmark check`` name a healthy node, and how soon a slow one? See docs/method.md."""
