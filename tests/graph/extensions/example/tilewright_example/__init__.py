"""An example of an extension of tilewright: two operators, a pass and an importer."""
