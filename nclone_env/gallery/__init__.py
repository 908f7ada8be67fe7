"""Static web sites that show levels and replay recordings in the browser."""
