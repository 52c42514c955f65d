"""After a collection: counting reports; the play of a whole collection."""
