"""The programs as a user meets them; pytest runs each case in a folder of its own."""
