"""The rules that laptop and host share. Pure, standard library, Python 3.8; imports nothing else of comborun."""
