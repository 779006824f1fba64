"""Operations of recorded steps, and tables of their time."""
