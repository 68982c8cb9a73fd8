"""The functions of Terraform's language: those that depend on nothing but their arguments and the files of the tree."""
