package main

func rulesOf(directory string) any { return nil }
