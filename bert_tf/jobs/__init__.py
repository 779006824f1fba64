"""Jobs of the commands and the library: a frozen config in, a frozen result out."""
