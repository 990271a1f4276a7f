"""From answer files to the text that models are trained on."""
