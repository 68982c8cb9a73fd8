"""The console as a web application: pages as HTML, JSON and CSV, and their live updates."""
