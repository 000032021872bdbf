"""Shopping in text: search, open products, choose options, buy once, as in WebShop."""
