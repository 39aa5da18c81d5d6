"""Tools for who works on this: not installed, and nothing of the product needs them."""
