"""Household tasks in text: rooms, receptacles and objects, as ALFWorld plays them."""
