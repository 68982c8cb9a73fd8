"""What a controller answers, API by API."""
