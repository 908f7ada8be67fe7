"""The networks of a policy: encoders, forward and backward passes by hand, through torch and on a device."""
