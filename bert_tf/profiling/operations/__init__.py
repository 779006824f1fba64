"""The operations of recorded steps, and tables of where their time went."""
