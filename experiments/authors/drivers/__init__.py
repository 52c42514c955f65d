"""Programs that run authors' code in a process of its own and know nothing of this project."""
