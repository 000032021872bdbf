"""WebShop as a web site, with product pictures."""
