"""Results for readers: text, tables, HTML and pictures."""
