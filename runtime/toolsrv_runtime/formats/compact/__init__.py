"""The compact format of the model that ships: what a task needs, which function, which arguments."""
