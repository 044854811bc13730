"""Results as people read them: text, tables, HTML and pictures."""
