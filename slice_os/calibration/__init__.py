"""What people do with labels of their own: the degree at which a precision is reached."""
