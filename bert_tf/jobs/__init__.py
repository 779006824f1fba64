"""What the commands and the library do: a frozen config in, a frozen result out."""
