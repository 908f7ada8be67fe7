"""Policies: their networks by hand and in torch, their files, and how they act."""
