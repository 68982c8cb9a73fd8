"""Command-line flags that several commands share: attrs classes whose fields are annotated options."""
