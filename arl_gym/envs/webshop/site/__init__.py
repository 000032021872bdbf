"""The shop of WebShop as a real web site."""
