"""Pictures: glyphs rasterised once, frames composed from them."""
