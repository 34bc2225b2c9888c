"""A store: rows of one dtype and shape in one file, or in memory. Its names are in cdd itself."""
