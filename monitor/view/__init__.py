"""`combo view`: a live page about a run on 127.0.0.1, and the same page as static files."""
