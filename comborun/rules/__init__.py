"""What both halves decide by. Pure, standard library, Python 3.8; imports nothing else of comborun."""
