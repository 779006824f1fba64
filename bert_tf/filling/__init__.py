"""Words for [MASK]: texts with places to fill, and the words that a model of masked words puts there."""
