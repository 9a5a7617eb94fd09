"""What a command says on a terminal, and how it ends."""
