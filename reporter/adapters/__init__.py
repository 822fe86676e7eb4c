"""From result files to records. `formats` knows every format and reads a file of any of them."""
