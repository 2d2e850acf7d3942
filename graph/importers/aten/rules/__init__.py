"""What each aten operator means; a module for each family."""
