"""What result files say: formats, readers, fields, rows, counts, proposals."""
