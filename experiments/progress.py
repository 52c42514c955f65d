"""Progress bars of experiments."""

from functools import partial

from rich.progress import track

# Drawn after each step, and by no thread: a bar that a failed command left open may be collected
# while another one is drawn, and would then wait for a thread that waits for that drawing.
tracked = partial(track, auto_refresh=False)
