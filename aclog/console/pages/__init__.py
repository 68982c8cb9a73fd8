"""The console's views as values: parameters of requests, and pages. No HTML, and only the source's I/O."""
