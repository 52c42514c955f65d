"""Two servers that do not collude: shares of checked reports, and noise of each of them."""
