"""Words: what objects are called and what is in them. Nothing here touches the world."""
