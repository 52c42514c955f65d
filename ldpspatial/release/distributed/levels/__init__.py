"""Maps published by levels of fixed resolution."""
