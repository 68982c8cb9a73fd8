"""The console's views as values: what is asked, and a page that answers it. No HTML, and no I/O but the source's."""
