"""A tag for each word of a sentence: names of persons and places, parts of speech."""
