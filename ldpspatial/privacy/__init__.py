"""What is promised, and whether it holds: claims, audit, attacks, exact noise."""
