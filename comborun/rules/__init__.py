"""The rules that the laptop and the host share. Pure, standard library, Python 3.8; imports nothing else of comborun."""
