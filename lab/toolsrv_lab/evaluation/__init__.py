"""How well tasks are solved and functions chosen: strategies side by side, with intervals."""
