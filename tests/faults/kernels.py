"""A kernel in a file, so that its code is cached."""


def total(values):
    result = values[0]
    for index in range(1, len(values)):
        result += values[index]
    return result
