"""After a collection: counting reports; simulating a whole collection."""
