"""Level file formats, one a file: each module's text is the format."""
