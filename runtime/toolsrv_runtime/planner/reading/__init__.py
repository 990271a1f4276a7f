"""What the words of a task mean for the compact model; asks no model, knows no format."""
