"""What is saved and predicts."""
