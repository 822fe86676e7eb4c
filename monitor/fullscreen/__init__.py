"""The full-screen monitor. Only `app.py` needs textual: a picture is a pure function of what is known and its size."""
