"""The model that ships: its episodes, vocabulary, network, training and export."""
