"""The operations of the command line and the library, one module each."""
